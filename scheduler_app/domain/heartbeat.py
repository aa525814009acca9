"""A heartbeat: something outside, such as a cron job or a backup, that reports to us by a rule.

It is missed where the rule says that a ping was due, its grace has passed, and none came; where a run that
has begun does not end; and where a ping says that a run has failed. The next ping of a success ends that. A
heartbeat is a frozen value; its verbs return what it becomes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from scheduler_app.domain.calendars import CalendarUse
from scheduler_app.domain.cause import CauseKey, CauseKind, Tally, found
from scheduler_app.domain.errors import InvalidField, InvalidRecurrence
from scheduler_app.domain.ids import WholeId, tenant_of
from scheduler_app.domain.instants import shown_instant
from scheduler_app.domain.triggers import Trigger
from scheduler_app.domain.url_token import is_token_of

#: For each tenant.
MAX_HEARTBEATS: Final = 1_000
LEAST_GRACE, MAX_GRACE = 1.0, 30 * 86_400.0
DEFAULT_GRACE: Final = 300.0
#: The newest pings are kept, and the beginning of what the last one said.
MAX_PINGS: Final = 20
MAX_OUTPUT: Final = 10 * 1024
#: Exit statuses of processes.
MAX_EXIT_STATUS: Final = 255
#: A ping that comes so much before its time, by clocks that differ a little, is that of this time.
EARLY: Final = timedelta(seconds=5)
#: It is looked at so often at least: its calendar may have changed.
_LOOKED_AT: Final = timedelta(hours=1)
#: What makes its causes others than those of a schedule of the same name.
OF_HEARTBEAT: Final = "heartbeat"


class PingKind(StrEnum):
    """What a ping says of a run."""

    SUCCESS = "success"
    START = "start"
    FAIL = "fail"


class HeartbeatState(StrEnum):
    """What is known of a heartbeat."""

    NEW = "new"
    """No ping has come yet."""
    UP = "up"
    STARTED = "started"
    """A run has begun and has not ended."""
    MISSED = "missed"
    """No ping came in time, or a run has failed."""


@dataclass(frozen=True, slots=True)
class Ping:
    """One report."""

    at: datetime
    kind: PingKind
    exit_status: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """A heartbeat as it is stored."""

    id: WholeId
    trigger: Trigger
    calendar: CalendarUse | None = None
    grace_seconds: float = DEFAULT_GRACE
    note: str | None = None
    tags: tuple[str, ...] = ()
    secret_sha256: str = field(repr=False)
    """Of the token in its URL."""
    created_at: datetime
    since: datetime
    """What was due before is not asked for: when its rule was given."""
    revision: int = 1
    """Counts the edits by people."""
    writes: int = 0
    """Counts the writes of its document."""
    pings: tuple[Ping, ...] = ()
    """The newest ones, the oldest first."""
    output: str | None = None
    """What the last one said that said something."""
    succeeded_at: datetime | None = None
    started_at: datetime | None = None
    """When the run that has not ended began."""
    due_at: datetime | None = None
    """When the next ping is due; None: none is."""
    missed_at: datetime | None = None
    missed_why: str = ""
    is_told: bool = False
    """Whether a cause tells of it."""
    look_at: datetime | None = None
    """When beats look at it again."""

    @property
    def tenant(self) -> str:
        return tenant_of(self.id)

    @property
    def state(self) -> HeartbeatState:
        if self.missed_at is not None:
            return HeartbeatState.MISSED
        if self.started_at is not None:
            return HeartbeatState.STARTED
        return HeartbeatState.UP if self.succeeded_at is not None else HeartbeatState.NEW

    @property
    def grace(self) -> timedelta:
        return timedelta(seconds=self.grace_seconds)

    @property
    def deadline(self) -> datetime | None:
        """When it is missed, unless a ping comes before."""
        if self.missed_at is not None:
            return None
        due = self.due_at if self.started_at is None else self.started_at
        return None if due is None else due + self.grace

    @property
    def well_since(self) -> datetime:
        """Of one that is not missed. What is missed after that is another cause than what was before."""
        return max(self.succeeded_at or self.since, self.since)

    @property
    def cause_key(self) -> CauseKey:
        return CauseKey(self.tenant, CauseKind.MISSED, self.id, OF_HEARTBEAT)

    def opened_by(self, token: str) -> bool:
        """Whether that is its token."""
        return is_token_of(token, self.secret_sha256)

    def due_after(self, at: datetime) -> datetime | None:
        """When the ping after one at `at` is due. An interval counts from each ping. Raises
        InvalidRecurrence where the rule or its calendar can no longer be evaluated."""
        every = self.trigger.written.get("every_seconds")
        if isinstance(every, int | float) and self.calendar is None and self.succeeded_at is not None:
            return at + timedelta(seconds=every)
        recurrence = self.trigger.recurrence(self.created_at)
        if self.calendar is not None:
            recurrence = self.calendar.observed_by(recurrence)
        return recurrence.after(at + min(self.grace, EARLY) if self.succeeded_at is not None else at)

    def pinged(self, ping: Ping) -> "Heartbeat":
        """What a ping makes of it, apart from the pings themselves. Whether beats have to look is decided
        where it is written, with what they have told meanwhile."""
        if ping.kind is PingKind.START:
            began = self.started_at if self.started_at is not None else ping.at
            return replace(self, started_at=began)
        if ping.kind is PingKind.FAIL:
            status = "" if ping.exit_status is None else f" with exit status {ping.exit_status}"
            return replace(
                self,
                started_at=None,
                missed_at=self.missed_at or ping.at,
                missed_why=f"its run failed{status} at {shown_instant(ping.at)}",
            )
        well = replace(self, succeeded_at=ping.at, started_at=None, missed_at=None, missed_why="")
        return replace(well, due_at=well._due_or_unknown())

    def judged(self, now: datetime) -> "Heartbeat":
        """What a beat that looks at it finds: missed, or when to look again."""
        if self.missed_at is not None:
            return replace(self, look_at=None)
        try:
            current = replace(self, due_at=self.due_after(self.succeeded_at or self.since))
        except InvalidRecurrence as error:
            why = f"its rule cannot be evaluated: {error.message}"
            return replace(self, missed_at=now, missed_why=why, look_at=None)
        deadline = current.deadline
        if deadline is None:
            return replace(current, look_at=None)
        if deadline > now:
            return replace(current, look_at=min(deadline, now + _LOOKED_AT))
        if current.started_at is not None:
            why = f"its run began at {shown_instant(current.started_at)} and has not ended"
        else:
            why = f"a ping was due at {shown_instant(deadline - current.grace)}, and none has come"
        return replace(current, missed_at=deadline, missed_why=why, look_at=None)

    def edited(self, changed: "Heartbeat", now: datetime) -> "Heartbeat":
        """With what a person has given; itself where nothing changes. Another rule counts from `now`. Beats
        look at once."""
        same_time = changed.trigger == self.trigger and changed.calendar == self.calendar
        after = replace(
            self,
            trigger=changed.trigger,
            calendar=changed.calendar,
            grace_seconds=changed.grace_seconds,
            note=changed.note,
            tags=changed.tags,
        )
        if after == self:
            return self
        after = replace(after, revision=self.revision + 1, look_at=now)
        if same_time:
            return after
        fresh = replace(after, since=now, started_at=None, missed_at=None, missed_why="")
        return replace(fresh, due_at=fresh.due_after(now))

    def tally(self) -> Tally:
        """What its cause is opened with, of one that is missed."""
        at = self.missed_at or self.since
        tally = found(self.cause_key, at, at, f"heartbeat: {self.missed_why}")
        tally.tags |= dict.fromkeys(self.tags)
        return tally

    def _due_or_unknown(self) -> datetime | None:
        """A beat that looks says what is wrong with the rule."""
        try:
            return self.due_after(self.succeeded_at or self.since)
        except InvalidRecurrence:
            return None


def new_heartbeat(heartbeat: Heartbeat, now: datetime) -> Heartbeat:
    """The same as it is first stored. Raises InvalidField where no ping is ever due."""
    due = heartbeat.due_after(now)
    if due is None:
        name = heartbeat.trigger.kind.name
        raise InvalidField(name, "names no time from now on: give one that recurs, or is to come")
    return replace(heartbeat, due_at=due, look_at=min(due + heartbeat.grace, now + _LOOKED_AT))


def look_after_ping(heartbeat: Heartbeat, now: datetime) -> datetime:
    """When beats look at it after a ping, where no cause tells of it."""
    deadline = heartbeat.deadline
    return now if deadline is None else min(deadline, now + _LOOKED_AT)


#: A ping's last part of the path: a word, or the exit status of a run.
_WORDS: Final[Mapping[str, PingKind]] = {"": PingKind.SUCCESS, "start": PingKind.START, "fail": PingKind.FAIL}


def ping_of(said: str, at: datetime) -> Ping | None:
    """The ping that a path asks for; None for none."""
    if said in _WORDS:
        return Ping(at, _WORDS[said])
    if not (said.isascii() and said.isdigit() and len(said) <= 3 and int(said) <= MAX_EXIT_STATUS):
        return None
    status = int(said)
    return Ping(at, PingKind.FAIL if status else PingKind.SUCCESS, status)

"""A cause: what failures have in common, from the first one until it is over.

Failures of one receiver with one answer or error are one cause, however many events and schedules they touch.
So are the occurrences that are late, stalled, missed, or in a queue that nobody serves, and each part of the
machinery that does not work. A cause is a frozen value; its verbs return what it becomes.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Final

from scheduler_app.domain.errors import Conflict
from scheduler_app.domain.http_action import destination_of_key
from scheduler_app.domain.ids import WholeId, compact, name_of, schedule_of, tenant_of, whole_id
from scheduler_app.domain.masking import one_line

#: So many schedules, tags and tenants are named; further ones are counted.
MAX_NAMED: Final = 100
#: Counting is exact up to this number.
MAX_COUNTED: Final = 5_000
#: A cause is over after its receiver has answered for so long without such a failure.
ANSWERING: Final = timedelta(minutes=5)
#: Failed attempts are counted in parts of this length, of which the last ones are kept.
TREND_PART: Final = timedelta(minutes=5)
MAX_TREND: Final = 36
MAX_FAILURE = 80
MAX_ERROR = 300
MAX_NOTE = 500


class CauseKind(StrEnum):
    """What is wrong."""

    FAILING = "failing"
    """A receiver answers with one error, or not at all."""
    LATE = "late"
    """Events are due and not attempted."""
    STALLED = "stalled"
    """A schedule is active, and has no occurrence for more than a year."""
    UNSERVED = "unserved"
    """Events wait in a queue that no worker serves."""
    MISSED = "missed"
    """Occurrences expired before an attempt was made."""
    OVERRUNNING = "overrunning"
    """A run takes longer than its schedule expects."""
    NOT_COMPLETED = "not_completed"
    """A run was not completed within the time that its schedule expects."""
    NO_SUCCESS = "no_success"
    """No run of a schedule has succeeded for longer than it expects."""
    KEY_EXPIRING = "key_expiring"
    """A key of the API opens nothing in a few days, or already."""
    PAUSED_BY_FAILURES = "paused_by_failures"
    """A schedule was paused because its events failed."""
    BREAKER = "breaker"
    """A destination is not called, because it failed."""
    SET_ASIDE = "stored_document_set_aside"
    """A schedule makes no events any more: what is stored of it cannot be used."""
    FINISHED = "finished"
    """A schedule has no occurrence any more."""
    KILL_SWITCH = "kill_switch"
    """A person has stopped something."""
    MACHINERY = "machinery"
    """A part of the installation does not work."""


#: Facts: told once, no failures, no reasons of the status, and in no list of failures.
FACTS: Final = frozenset({CauseKind.FINISHED, CauseKind.KILL_SWITCH})


class CauseState(StrEnum):
    """A cause that is over is open no longer; a dismissed one a person has taken out of the verdict."""

    OPEN = "open"
    OVER = "over"
    DISMISSED = "dismissed"


@dataclass(frozen=True, slots=True)
class CauseKey:
    """What makes two failures the same cause."""

    tenant: str
    kind: CauseKind
    subject: str
    """The receiver (a destination's or an origin's key), the id of the schedule or the key, the queue or the
    part."""
    failure: str = ""
    """The answer or the error, without what differs from one to the next."""

    @property
    def id(self) -> WholeId:
        """A hash of it: each event whose last attempt failed carries it as its mark."""
        return _key_id(self)


@lru_cache(maxsize=4096)
def _key_id(key: CauseKey) -> WholeId:
    said = "\n".join((key.kind, key.subject, key.failure))
    return whole_id(key.tenant, hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()[:16])


def failing_key(event_id: str, receiver: str, status: int | None, error: str | None) -> CauseKey:
    """The key of a failed attempt."""
    return CauseKey(tenant_of(event_id), CauseKind.FAILING, receiver, failure_of(status, error))


#: What follows a colon or a quotation mark, and numbers, differ from one error to the next.
_DETAIL = re.compile(r"[:;'\"(\[{<].*")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)*")


@lru_cache(maxsize=4096)
def failure_of(status: int | None, error: str | None) -> str:
    """What a failed attempt has in common with others of its cause."""
    if status is not None:
        return f"status {status}"
    said = one_line((error or "")[:MAX_ERROR]).strip()
    kind = _NUMBER.sub("#", _DETAIL.sub("", said)).strip() or _NUMBER.sub("#", said)
    return kind[:MAX_FAILURE] or "no reason given"


@dataclass(frozen=True, slots=True)
class Touched:
    """What a cause has touched: the first ones by name, and how many there are."""

    names: tuple[str, ...] = ()
    others: frozenset[bytes] = frozenset()
    """Hashes of further ones, by which each is counted once."""

    @property
    def count(self) -> int:
        return len(self.names) + len(self.others)

    @property
    def is_exact(self) -> bool:
        """Whether there are no more than the count says."""
        return self.count < MAX_COUNTED

    def has(self, name: str) -> bool:
        """Whether it is one of those that were named or counted."""
        return name in self.names or _short_hash(name) in self.others

    def with_names(self, names: Iterable[str]) -> "Touched":
        known, found, others = set(self.names), list(self.names), set(self.others)
        for name in names:
            if name in known or not name:
                continue
            if len(found) < MAX_NAMED:
                known.add(name)
                found.append(name)
            elif len(found) + len(others) < MAX_COUNTED:
                others.add(_short_hash(name))
        if len(found) == len(self.names) and len(others) == len(self.others):
            return self
        return Touched(tuple(found), frozenset(others))


def _short_hash(name: str) -> bytes:
    return hashlib.sha256(name.encode("utf-8", "replace")).digest()[:6]


@dataclass(slots=True)
class Tally:
    """Failures of one cause that are counted in memory and not written yet."""

    key: CauseKey
    first: datetime
    last: datetime
    attempts: int = 0
    """Attempts that failed."""
    failed: int = 0
    """Events whose first attempt failed."""
    gave_up: int = 0
    """Events that failed for good."""
    dead: int = 0
    """Those of them that are dead letters."""
    error: str = ""
    event_id: str = ""
    schedules: dict[str, datetime] = field(default_factory=dict)
    """When each failed last."""
    tags: dict[str, None] = field(default_factory=dict)
    tenants: dict[str, None] = field(default_factory=dict)

    def add(
        self,
        event_id: str,
        schedule_id: str,
        at: datetime,
        error: str,
        *,
        tags: Collection[str] = (),
        is_first: bool = False,
        gave_up: bool = False,
        is_dead: bool = False,
    ) -> None:
        """Counts a failed attempt. An event gave up where no other one follows; in error it is dead."""
        self.attempts += 1
        self.failed += is_first
        self.gave_up += gave_up
        self.dead += is_dead
        self.first = min(self.first, at)
        if at >= self.last:
            self.last, self.error, self.event_id = at, one_line(error)[:MAX_ERROR], event_id
        if schedule_id and (schedule_id in self.schedules or len(self.schedules) < MAX_COUNTED):
            self.schedules[schedule_id] = max(at, self.schedules.get(schedule_id, at))
        for tag in tags:
            if len(self.tags) < MAX_COUNTED:
                self.tags[tag] = None
        if len(self.tenants) < MAX_COUNTED:
            self.tenants[tenant_of(event_id)] = None

    def merge(self, other: "Tally") -> None:
        """Takes what was counted elsewhere."""
        self.attempts += other.attempts
        self.failed += other.failed
        self.gave_up += other.gave_up
        self.dead += other.dead
        self.first = min(self.first, other.first)
        if other.last >= self.last:
            self.last, self.error, self.event_id = other.last, other.error, other.event_id
        for schedule_id, at in other.schedules.items():
            if schedule_id in self.schedules or len(self.schedules) < MAX_COUNTED:
                self.schedules[schedule_id] = max(at, self.schedules.get(schedule_id, at))
        self.tags |= other.tags
        self.tenants |= other.tenants


@dataclass(frozen=True, slots=True)
class FailingSchedule:
    """A schedule whose last event failed."""

    schedule_id: str
    failed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A cause as it is stored. A later one with the same key is another one."""

    id: WholeId
    key: CauseKey
    since: datetime
    last: datetime
    """When the newest of its failures was."""
    failed: int = 0
    gave_up: int = 0
    schedules: Touched = Touched()
    tags: Touched = Touched()
    tenants: Touched = Touched()
    failing: tuple[FailingSchedule, ...] = ()
    """The first schedules that still fail."""
    more_failing: bool = False
    """Whether more schedules have failed than `failing` holds."""
    trend: tuple[tuple[datetime, int], ...] = ()
    """Failed attempts by the beginnings of the last parts in which there were any."""
    error: str = ""
    """The last one, in words."""
    event_id: str = ""
    """Of the event that failed last."""
    answering_since: datetime | None = None
    """When its receiver first succeeded after the last failure."""
    over_at: datetime | None = None
    dismissed_at: datetime | None = None
    dismissed_by: str = ""
    note: str = ""
    resent: int = 0
    """Dead letters that a person has sent again."""
    resent_at: datetime | None = None
    has_dead_letters: bool = False
    """Whether dead letters of it may be left."""
    writes: tuple[str, ...] = ()
    """The tokens of the last writes of its document: of two that change it at once, one begins anew."""

    @property
    def tenant(self) -> str:
        return self.key.tenant

    @property
    def state(self) -> CauseState:
        if self.dismissed_at is not None:
            return CauseState.DISMISSED
        return CauseState.OPEN if self.over_at is None else CauseState.OVER

    @property
    def is_living(self) -> bool:
        """Whether failures still count for it; a dismissed one is told of no more, and goes on."""
        return self.over_at is None

    def touched(self, tally: Tally) -> "Cause":
        """With further failures."""
        known = {each.schedule_id: each.failed_at for each in self.failing}
        more = self.more_failing
        for schedule_id, at in tally.schedules.items():
            if schedule_id in known or len(known) < MAX_NAMED:
                known[schedule_id] = max(at, known.get(schedule_id, at))
            else:
                more = True
        newest = tally.last >= self.last
        succeeded = self.answering_since
        return replace(
            self,
            since=min(self.since, tally.first),
            last=max(self.last, tally.last),
            failed=self.failed + tally.failed,
            gave_up=self.gave_up + tally.gave_up,
            schedules=self.schedules.with_names(tally.schedules),
            tags=self.tags.with_names(tally.tags),
            tenants=self.tenants.with_names(tally.tenants),
            failing=tuple(FailingSchedule(*each) for each in known.items()),
            more_failing=more,
            trend=_trend(self.trend, tally),
            error=tally.error if newest else self.error,
            event_id=tally.event_id if newest else self.event_id,
            answering_since=None if succeeded is None or succeeded <= tally.last else succeeded,
            has_dead_letters=self.has_dead_letters or tally.dead > 0,
        )

    def observed(self, tally: Tally) -> "Cause":
        """What an inspection sees at its present look; itself where nothing but the time has changed."""
        seen = replace(self.touched(tally), failed=tally.failed, failing=self.failing)
        return self if replace(seen, last=self.last) == self else seen

    def answered(self, at: datetime) -> "Cause":
        """Its receiver has succeeded; itself where that is known, or older than its last failure."""
        if self.answering_since is not None or at <= self.last or not self.is_living:
            return self
        return replace(self, answering_since=at)

    def recovered(self, succeeded: Mapping[str, datetime | None]) -> "Cause":
        """Without the schedules that succeeded after their last failure, or are gone (None)."""
        left = tuple(
            each
            for each in self.failing
            if each.schedule_id not in succeeded
            or ((at := succeeded[each.schedule_id]) is not None and at <= each.failed_at)
        )
        return self if len(left) == len(self.failing) else replace(self, failing=left)

    def ends(self, now: datetime, *, waits: bool, is_dead: bool) -> bool:
        """Whether a failing receiver's cause is over. `waits`: an event that failed so waits for its next
        attempt; `is_dead`: one that did is a dead letter."""
        if waits or not self.is_living:
            return False
        if self.answering_since is not None and now - self.answering_since >= ANSWERING:
            return True
        if self.failing or self.more_failing:
            return False
        # Messages have no schedule whose next run could succeed.
        return bool(self.schedules.count) or self.answering_since is not None or not is_dead

    def over(self, now: datetime) -> "Cause":
        return replace(self, over_at=max(now, self.since), failing=(), more_failing=False)

    def dismissed(self, now: datetime, by: str, note: str) -> "Cause":
        """Out of the verdict. Raises Conflict where it is already."""
        if self.dismissed_at is not None:
            raise Conflict("the failure is dismissed already")
        return replace(self, dismissed_at=now, dismissed_by=by, note=note)

    def sent_again(self, count: int, now: datetime) -> "Cause":
        """A person has sent dead letters of it again."""
        return replace(self, resent=self.resent + count, resent_at=now)

    def with_dead_letters(self) -> "Cause":
        return replace(self, has_dead_letters=True)

    def without_dead_letters(self) -> "Cause":
        return replace(self, has_dead_letters=False)

    def touched_among(self, schedules: Sequence[str]) -> list[str]:
        """Those of these schedules that it touches and may be shown of to whoever sees these alone: failures
        of a receiver that they share with others, and what is about one of them."""
        if self.key.kind is not CauseKind.FAILING:
            return [each for each in schedules if each == self.key.subject]
        named = frozenset(self.schedules.names)
        hashed = bool(self.schedules.others)
        return [each for each in schedules if each in named or (hashed and self.schedules.has(each))]

    def narrowed(self, touched: Sequence[str], tags: Collection[str], *, waiting: int, dead: int) -> "Cause":
        """What these schedules and tags show of it. What its receiver does is the same for all: when it began
        to fail and when that ended. Counts and words of others are left out: how many events failed is known
        of those alone that wait or are dead letters."""
        own_tags = Touched(tuple(tag for tag in self.tags.names if tag in tags))
        if self.key.kind is not CauseKind.FAILING:
            return replace(self, tags=own_tags)
        is_own = schedule_of(self.event_id) in touched
        return replace(
            self,
            schedules=Touched().with_names(touched),
            tags=own_tags,
            failed=waiting + dead,
            gave_up=dead,
            trend=(),
            error=self.error if is_own else "",
            event_id=self.event_id if is_own else "",
            resent=0,
            resent_at=None,
            dismissed_by="",
            note="",
        )


def _trend(known: tuple[tuple[datetime, int], ...], tally: Tally) -> tuple[tuple[datetime, int], ...]:
    """A tally covers a second or so: it counts for the part in which it ends."""
    if not tally.attempts:
        return known
    begin = tally.last - (tally.last - datetime.min.replace(tzinfo=UTC)) % TREND_PART
    counts = dict(known)
    counts[begin] = counts.get(begin, 0) + tally.attempts
    return tuple(sorted(counts.items())[-MAX_TREND:])


def opened(tally: Tally) -> Cause:
    """The cause that begins with these failures."""
    key = tally.key
    return Cause(
        id=WholeId(f"{key.id}-{compact(tally.first)}"), key=key, since=tally.first, last=tally.first
    ).touched(tally)


def found(key: CauseKey, since: datetime, now: datetime, message: str) -> Tally:
    """What an inspection has found, as failures that a cause can begin with or be touched by."""
    tally = Tally(key, min(since, now), now, error=one_line(message)[:MAX_ERROR])
    tally.tenants[key.tenant] = None
    return tally


def receiver_name(key: str) -> str:
    """A destination by its name, or an origin."""
    destination = destination_of_key(key)
    return key if destination is None else name_of(destination)


def subject_shown(cause: Cause) -> str:
    """What a cause is about, as people call it."""
    destination = destination_of_key(cause.key.subject)
    if destination is not None:
        return name_of(destination)
    is_origin = cause.key.kind in (CauseKind.FAILING, CauseKind.LATE)
    return cause.key.subject if is_origin else name_of(cause.key.subject)

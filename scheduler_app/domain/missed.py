"""What a schedule missed while no beat expanded it: occurrences that are too late before they are events.

The newest of them become events one by one, which say why they expired. Older ones are counted: one record
tells of all of them. Both are made in steps, each of which moves the cursor of its schedule, or of what an
edit left to beats.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from scheduler_app.domain.event import Event, due, scheduled
from scheduler_app.domain.ids import compact
from scheduler_app.domain.instants import shown_instant
from scheduler_app.domain.lateness import Expiry, Lateness
from scheduler_app.domain.recurrence import AnyRecurrence

#: The newest missed occurrences of a schedule that become events; older ones are counted in a record.
MAX_SINGLES: Final = 1_000
#: The most occurrences that a step looks at, and after how many of them it checks whether its time is over.
OCCURRENCES_A_STEP: Final = 50_000
OCCURRENCES_A_LOOK: Final = 2_000


def missed_id(schedule_id: str, first: datetime) -> str:
    """The id of the record of missed occurrences that begins with `first`. An instant belongs to one
    revision, so that two records of a schedule never begin with the same."""
    return f"{schedule_id}-missed-{compact(first)}"


@dataclass(frozen=True, slots=True)
class Missed:
    """Missed occurrences that one record tells of; both ends are among them."""

    first: datetime
    last: datetime
    count: int

    def sentence(self, expiry: Expiry) -> str:
        """A sentence for the record's history; `expiry` is why the last one expired."""
        first, last = shown_instant(self.first), shown_instant(self.last)
        return (
            f"Missed: {self.count} occurrences from {first} to {last}, which this record tells of together."
            f" Of the last one: {expiry.message}"
        )


@dataclass(frozen=True, slots=True)
class MissedRange:
    """Occurrences of one revision of a schedule that are not expanded yet."""

    schedule_id: str
    revision: int
    recurrence: AnyRecurrence
    start: datetime
    """The first of them."""
    lateness: Lateness
    origin: str
    queue: str
    end: datetime | None = None
    """The first instant that no longer belongs to the revision; None if it still holds."""
    jitter_seconds: float = 0.0

    def event(self, instant: datetime) -> Event:
        """The event of an occurrence."""
        made = scheduled(self.schedule_id, self.revision, instant, self.origin, self.queue)
        return made._replace(due_since=self.due(instant)) if self.jitter_seconds else made

    def due(self, instant: datetime) -> datetime:
        """When the callback of an occurrence falls due."""
        return due(self.schedule_id, instant, self.jitter_seconds)


@dataclass(frozen=True, slots=True)
class MissedStep:
    """What a step writes, and where the cursor stands after it."""

    schedule_id: str
    revision: int
    expired: tuple[tuple[Event, Expiry], ...]
    """Occurrences that become events; empty where a record is written."""
    record: Missed | None
    expiry: Expiry | None
    """Of the last occurrence of the record."""
    last: datetime
    """The newest occurrence of the step."""
    following: datetime | None
    """The next one to expand; None if the rule, or the range, ends before."""
    checkpoint: Mapping[str, Any] | None

    @property
    def documents(self) -> int:
        """How many it writes at the most."""
        return len(self.expired) + (self.record is not None)


def missed_step(of: MissedRange, now: datetime, spent: Callable[[], bool]) -> MissedStep | None:
    """The next step for what was missed of a range; None if nothing was.

    Looks at up to OCCURRENCES_A_STEP occurrences, and at fewer once `spent`: then what is left are later
    steps. Raises InvalidRecurrence.
    """
    limit = of.lateness.expires_before(now)
    if limit is None:
        return None
    # What its jitter may still keep from being too late becomes an event, and is judged by its worker.
    limit -= timedelta(seconds=of.jitter_seconds)
    if of.start >= limit:
        return None
    stop = limit if of.end is None else min(limit, of.end)
    found: list[datetime] = []
    following: datetime | None = of.start
    while following is not None and following < stop:
        if len(found) >= OCCURRENCES_A_STEP or (len(found) > MAX_SINGLES and spent()):
            break
        some, following = of.recurrence.between_and_next(following, stop, OCCURRENCES_A_LOOK)
        found += some
    if following is None or following >= stop:
        if following is not None and of.end is not None and following >= of.end:
            following = None
        newest = found[-1]
        if _expiry(of, newest, following, now) is None:
            # The newest one that is due is still sent.
            following = found.pop()
        if not found:
            return None
        if len(found) <= MAX_SINGLES:
            after = (*found[1:], following)
            judged = [
                (of.event(each), _expiry(of, each, later, now))
                for each, later in zip(found, after, strict=True)
            ]
            expired = tuple((event, expiry) for event, expiry in judged if expiry is not None)
            return _step(of, expired, None, None, found[-1], following)
    found, following = found[:-MAX_SINGLES], found[-MAX_SINGLES]
    record = Missed(found[0], found[-1], len(found))
    return _step(of, (), record, _expiry(of, found[-1], following, now), found[-1], following)


def _expiry(of: MissedRange, instant: datetime, following: datetime | None, now: datetime) -> Expiry | None:
    later = following if following is not None and of.due(following) <= now else None
    return of.lateness.expiry(of.event(instant), now, lambda: later)


def _step(
    of: MissedRange,
    expired: tuple[tuple[Event, Expiry], ...],
    record: Missed | None,
    expiry: Expiry | None,
    last: datetime,
    following: datetime | None,
) -> MissedStep:
    checkpoint = None if following is None else of.recurrence.checkpoint(last)
    return MissedStep(of.schedule_id, of.revision, expired, record, expiry, last, following, checkpoint)

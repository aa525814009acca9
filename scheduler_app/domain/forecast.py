"""A forecast: how many callbacks fall due in each stretch of time, by receiver and source."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from scheduler_app.domain.blackout import BlackoutOutlook
from scheduler_app.domain.event import due, jitter_of
from scheduler_app.domain.schedule import Schedule

MAX_BUCKETS = 500
#: How many occurrences of one schedule are counted one by one; beyond them, how many stand for each bucket.
COUNTED_ONE_BY_ONE = 1_000
JUDGED_BY = 100
#: Where there are blackouts, each part of such a bucket is judged by itself.
PARTS_JUDGED = 60


class ForecastSource:
    """Where a callback to come is known from."""

    RULES = "rules"
    """A schedule's rule: there is no event yet."""
    EVENTS = "events"
    """An occurrence, a retry or a call by hand that waits."""
    MESSAGES = "messages"


class Cell(NamedTuple):
    """What is counted together."""

    bucket: int
    receiver: str
    """The origin, or the destination with its prefix."""
    source: str


@dataclass(frozen=True, slots=True)
class Buckets:
    """The stretch of time that is asked about, in equal parts; the last one may be shorter."""

    start: datetime
    end: datetime
    width: timedelta

    def __len__(self) -> int:
        return -((self.start - self.end) // self.width)

    def of(self, instant: datetime) -> int | None:
        """The bucket of an instant; None outside of the stretch."""
        return (instant - self.start) // self.width if self.start <= instant < self.end else None

    def since(self, bucket: int) -> datetime:
        return self.start + bucket * self.width

    def until(self, bucket: int) -> datetime:
        return min(self.end, self.since(bucket) + self.width)


class Withheld(StrEnum):
    """What a blackout makes of a callback that falls due within it."""

    SKIPPED = "skipped"
    """It is not sent, and not counted."""
    POSTPONED = "postponed"
    """It is counted where the blackout ends."""


@dataclass(slots=True)
class Forecast:
    """The counts so far."""

    buckets: Buckets
    cells: Counter[Cell] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    """Why the counts are estimates; empty where they are exact."""
    overdue: int = 0
    """Callbacks that were due before the stretch begins and still wait."""
    withheld: Counter[Withheld] = field(default_factory=Counter)
    """Callbacks that fall due within a blackout, and within the stretch by then or by now."""


@dataclass(slots=True)
class Counts:
    """How many callbacks of one schedule, or of what waits, are sent in each bucket."""

    buckets: Buckets
    outlook: BlackoutOutlook | None = None
    """What blackouts say of them; None if no blackout is of them."""
    sent: Counter[int] = field(default_factory=Counter)
    withheld: Counter[Withheld] = field(default_factory=Counter)
    exact: bool = True
    """Whether they were counted one by one."""

    def add(self, run_time: datetime | None, due_at: datetime) -> None:
        """Counts one that falls due then. `run_time` is None for what no blackout skips."""
        sent_at = due_at if self.outlook is None else self.outlook.sent_at(run_time, due_at)
        bucket = None if sent_at is None else self.buckets.of(sent_at)
        if bucket is not None:
            self.sent[bucket] += 1
        if sent_at != due_at and (bucket is not None or self.buckets.of(due_at) is not None):
            self.withheld[Withheld.SKIPPED if sent_at is None else Withheld.POSTPONED] += 1

    def estimate(self, number: float, since: datetime, until: datetime, shift: timedelta) -> None:
        """Counts `number` occurrences that run from `since` to `until`, and fall due `shift` later."""
        parts = 1 if self.outlook is None else PARTS_JUDGED
        some = Counts(self.buckets, self.outlook)
        for part in range(parts):
            at = since + (until - since) * part / parts
            some.add(at, at + shift)
        for bucket, count in some.sent.items():
            self.sent[bucket] += round(number * count / parts)
        for became, count in some.withheld.items():
            self.withheld[became] += round(number * count / parts)


def occurrences_by_bucket(
    schedule: Schedule,
    buckets: Buckets,
    outlook: BlackoutOutlook | None = None,
    since: datetime | None = None,
) -> Counts:
    """How many callbacks of an active schedule that are not events yet are sent in each bucket. What falls
    due from `since` on, which is before the buckets, may be postponed into them. Raises InvalidRecurrence."""
    counts = Counts(buckets, outlook)
    if schedule.next_run_at is None:
        return counts
    jitter = schedule.jitter_seconds
    earliest = buckets.start if since is None or outlook is None else min(since, buckets.start)
    start = max(schedule.next_run_at, earliest - timedelta(seconds=jitter))
    recurrence = schedule.recurrence()
    instants, following = recurrence.between_and_next(start, buckets.end, COUNTED_ONE_BY_ONE)
    for instant in instants:
        counts.add(instant, due(schedule.id, instant, jitter))
    if following is None or following >= buckets.end or len(instants) < COUNTED_ONE_BY_ONE:
        return counts
    counts.exact = False
    # The jitter of those that are not looked at one by one moves all of a bucket alike.
    shift = jitter_of(schedule.id, following, jitter)
    first = buckets.of(max(following, buckets.start)) or 0
    parts = [
        (max(buckets.since(each), following), buckets.until(each)) for each in range(first, len(buckets))
    ]
    before = [(following, buckets.start)] if following < buckets.start else []
    for begins, ends in (*before, *parts):
        found, beyond = recurrence.between_and_next(begins, ends, JUDGED_BY)
        count = float(len(found))
        if beyond is not None and beyond < ends:
            count *= (ends - begins) / (beyond - begins)
        if count:
            counts.estimate(count, begins, ends, shift)
    return counts

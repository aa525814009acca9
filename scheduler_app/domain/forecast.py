"""A forecast: how many callbacks fall due in each stretch of time, by receiver and source."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from scheduler_app.domain.jitter import due, jitter_of
from scheduler_app.domain.schedule import Schedule

MAX_BUCKETS = 500
#: Of one schedule so many occurrences are counted one by one. Beyond them, each bucket is judged by so many.
COUNTED_ONE_BY_ONE = 1_000
JUDGED_BY = 100


class Source:
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


@dataclass(slots=True)
class Forecast:
    """The counts so far."""

    buckets: Buckets
    cells: Counter[Cell] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    """Why the counts are estimates; empty where they are exact."""
    overdue: int = 0
    """Callbacks that were due before the stretch begins and still wait."""


def occurrences_by_bucket(schedule: Schedule, buckets: Buckets) -> tuple[Counter[int], bool]:
    """How many callbacks of an active schedule, which are no events yet, fall due in each bucket; and whether
    that was counted one by one. Raises InvalidRecurrence."""
    counts: Counter[int] = Counter()
    if schedule.next_run_at is None:
        return counts, True
    jitter = schedule.jitter_seconds
    start = max(schedule.next_run_at, buckets.start - timedelta(seconds=jitter))
    recurrence = schedule.recurrence()
    instants, following = recurrence.between_and_next(start, buckets.end, COUNTED_ONE_BY_ONE)
    for instant in instants:
        bucket = buckets.of(due(schedule.id, instant, jitter))
        if bucket is not None:
            counts[bucket] += 1
    if following is None or following >= buckets.end or len(instants) < COUNTED_ONE_BY_ONE:
        return counts, True
    # The jitter of those that are not looked at one by one moves all of a bucket alike.
    shift = jitter_of(schedule.id, following, jitter)
    for bucket in range(buckets.of(max(following, buckets.start)) or 0, len(buckets)):
        since, until = max(buckets.since(bucket), following), buckets.until(bucket)
        found, beyond = recurrence.between_and_next(since, until, JUDGED_BY)
        number = float(len(found))
        if beyond is not None and beyond < until:
            number *= (until - since) / (beyond - since)
        at = buckets.of(since + shift)
        if at is not None and number:
            counts[at] += round(number)
    return counts, False

"""A forecast: how many callbacks fall due in each stretch of time, by receiver and source."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final, NamedTuple

from scheduler_app.domain.blackout import BlackoutOutlook
from scheduler_app.domain.calendars import CalendarUse
from scheduler_app.domain.event import due, jitter_of
from scheduler_app.domain.recurrence import AnyRecurrence
from scheduler_app.domain.schedule import Schedule
from scheduler_app.domain.triggers import Trigger

MAX_BUCKETS = 500
#: How many occurrences of one schedule are counted one by one; beyond them, how many stand for each bucket.
COUNTED_ONE_BY_ONE = 1_000
JUDGED_BY = 100
#: Where there are blackouts, each part of such a bucket is judged by itself.
PARTS_JUDGED = 60
#: Of a bucket as long as this, more occurrences are counted without listing them; of shorter ones that would
#: cost more than all else.
COUNTED_BY_DAYS = timedelta(hours=1)
#: The sending times of one schedule that are kept, so that what runs rarely can be named.
MOST_NAMED = 11


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
class ForecastChoice:
    """Which callbacks a forecast is of: all that is given must be so; nothing given means all of a tenant."""

    schedule_id: str | None = None
    tag: str | None = None
    """One of the schedule's tags. Messages have none."""
    destination: str | None = None
    """The id of the one that the schedule, or the message, names."""

    def __bool__(self) -> bool:
        return self != EVERY_CALLBACK


EVERY_CALLBACK = ForecastChoice()


@dataclass(frozen=True, slots=True)
class Buckets:
    """The stretch of time that is asked about, in equal parts; the first and the last may be shorter."""

    start: datetime
    end: datetime
    width: timedelta
    first: datetime | None = None
    """Where the first part begins, if that is before `start`: the parts are numbered from there."""

    @property
    def origin(self) -> datetime:
        """From where the parts are numbered."""
        return self.start if self.first is None else self.first

    def __len__(self) -> int:
        return -((self.origin - self.end) // self.width)

    @property
    def numbers(self) -> range:
        """Those of the parts that have some of the stretch."""
        return range((self.start - self.origin) // self.width, len(self))

    def of(self, instant: datetime) -> int | None:
        """The bucket of an instant; None outside of the stretch."""
        return (instant - self.origin) // self.width if self.start <= instant < self.end else None

    def since(self, bucket: int) -> datetime:
        return max(self.start, self.origin + bucket * self.width)

    def until(self, bucket: int) -> datetime:
        return min(self.end, self.origin + (bucket + 1) * self.width)


@dataclass(slots=True)
class PlannedRule:
    """When schedules fire that have this in common. It has the creation of one of them."""

    tenant: str
    trigger: Trigger
    created_at: datetime
    checkpoint: Mapping[str, Any] | None
    calendar: CalendarUse | None

    def recurrence(self) -> AnyRecurrence:
        """As `Schedule.recurrence`."""
        found = self.trigger.recurrence(self.created_at, self.checkpoint)
        return found if self.calendar is None else self.calendar.observed_by(found)


_DTSTART: Final = re.compile(r"(DTSTART[^:\n]*:)[0-9]{8}T[0-9]{6}(Z?)\n")
#: Before any that share a text: the start of one that begins next week would hide the runs of the others.
_LONG_AGO: Final = "19700101T000000"
#: Everything that is smaller than the frequency is written out, and nothing is counted from the start.
_RULE: Final = re.compile(
    r"RRULE:FREQ=(?:(?:(?:(?:WEEKLY(?=[^\n]*;BYDAY=)|MONTHLY(?=[^\n]*;BY(?:MONTH)?DAY=)|DAILY)"
    r"(?=[^\n]*;BYHOUR=)|HOURLY)(?=[^\n]*;BYMINUTE=)|MINUTELY)(?=[^\n]*;BYSECOND=))"
    r"(?:;(?:BYMONTH|BYMONTHDAY|BYDAY|BYHOUR|BYMINUTE|BYSECOND|UNTIL)=[^;\n]+)+"
)


def with_common_start(text: str) -> str:
    """A pinned text with a DTSTART of long ago, if its rules fire at the same instants whenever they began:
    from its own DTSTART on it has the same occurrences, and schedules that were made at different times share
    what is computed of one. Most cron lines are such. Any other text as it is."""
    start = _DTSTART.match(text)
    if start is None or not _are_start_free(rules := text[start.end() :]):
        return text
    return f"{start[1]}{_LONG_AGO}{start[2]}\n{rules}"


@lru_cache(maxsize=4_096)
def _are_start_free(rules: str) -> bool:
    return all(map(_RULE.fullmatch, rules.split("\n")))


class PlannedSchedule(NamedTuple):
    """What a forecast asks of a schedule."""

    id: str
    name: str
    tags: tuple[str, ...]
    rule: PlannedRule
    next_run_at: datetime | None
    jitter_seconds: float
    receiver: str
    destination: str | None
    """The id of the one that it names."""

    @property
    def calendar(self) -> CalendarUse | None:
        return self.rule.calendar

    def recurrence(self) -> AnyRecurrence:
        """Raises InvalidRecurrence."""
        return self.rule.recurrence()


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
    is_of_all: bool = True
    """Whether all schedules were evaluated: some may stand for others."""
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
    """Whether none of them was estimated."""
    named: list[tuple[datetime | None, datetime]] = field(default_factory=list)
    """The run times and the sending times of the first `MOST_NAMED`."""

    def add(self, run_time: datetime | None, due_at: datetime) -> None:
        """Counts one that falls due then. `run_time` is None for what no blackout skips."""
        sent_at = due_at if self.outlook is None else self.outlook.sent_at(run_time, due_at)
        bucket = None if sent_at is None else self.buckets.of(sent_at)
        if bucket is not None and sent_at is not None:
            self.sent[bucket] += 1
            if len(self.named) < MOST_NAMED:
                self.named.append((run_time, sent_at))
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
    schedule: Schedule | PlannedSchedule,
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
    # The jitter of those that are not looked at one by one moves all of a bucket alike.
    shift = jitter_of(schedule.id, following, jitter)
    first = buckets.of(max(following, buckets.start)) or 0
    parts = [
        (max(buckets.since(each), following), buckets.until(each)) for each in range(first, len(buckets))
    ]
    before = [(following, buckets.start)] if following < buckets.start else []
    # What a calendar moves has to be listed to be counted.
    moves = schedule.calendar is not None and schedule.calendar.on_holiday != "skip"
    countable = outlook is None and not jitter and not moves and buckets.width >= COUNTED_BY_DAYS
    for begins, ends in (*before, *parts):
        found, beyond = recurrence.between_and_next(begins, ends, JUDGED_BY)
        if beyond is None or beyond >= ends:
            for instant in found:
                counts.add(instant, due(schedule.id, instant, jitter))
        elif countable:
            bucket = buckets.of(begins)
            if bucket is not None:
                counts.sent[bucket] += recurrence.count(begins, ends)
        else:
            counts.exact = False
            times = (ends - begins) / (beyond - begins)
            counts.estimate(len(found) * times, begins, ends, shift)
    return counts

"""One recurrence rule (RFC 5545, 3.3.10), read and checked, but not yet bound to a start; its times of day,
and the periods that INTERVAL allows.

BYDAY uses dateutil's `weekday` (`MO(+2)`), the field's usual value for it: it is right, and it walks
nothing.

Whether a period takes part is arithmetic on its distance from DTSTART's period, so a rule from 1970 costs
what one from yesterday costs.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from enum import IntEnum, StrEnum
from functools import lru_cache
from math import gcd
from typing import Final, overload

from dateutil.rrule import weekday

from scheduler_app.domain.recurrence.timeline import (
    CYCLE_DAYS,
    CYCLE_YEARS,
    DAY,
    days_between,
    first_day,
    first_of_week_year,
    is_leap,
    month_spans,
    week_year_of,
)

DAY_NAMES: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")


class Frequency(IntEnum):
    """The unit that a rule steps by, longest first. The last three step in elapsed time."""

    YEARLY = 0
    MONTHLY = 1
    WEEKLY = 2
    DAILY = 3
    HOURLY = 4
    MINUTELY = 5
    SECONDLY = 6

    @property
    def unit(self) -> str:
        """What it is called in a sentence."""
        return ("year", "month", "week", "day", "hour", "minute", "second")[self]

    @property
    def seconds(self) -> int:
        """The length of its unit, where that is elapsed time; else 0."""
        return (0, 0, 0, 0, 3600, 60, 1)[self]


class Skip(StrEnum):
    """What becomes of a day that its month or year does not have (RFC 7529, 4.1)."""

    OMIT = "OMIT"
    BACKWARD = "BACKWARD"
    FORWARD = "FORWARD"


@dataclass(frozen=True)
class WrittenTime:
    """A date or date-time as written: its wall-clock second, and whether it is UTC or a date alone."""

    second: int
    utc: bool
    date_only: bool = False


@dataclass(frozen=True)
class Rule:
    """The parts of a rule; BY lists are sorted and without repeats, an absent part is empty or None."""

    freq: Frequency
    interval: int = 1
    count: int | None = None
    until: WrittenTime | None = None  # the last instant that may fire
    by_month: tuple[int, ...] = ()
    by_week_no: tuple[int, ...] = ()
    by_year_day: tuple[int, ...] = ()
    by_month_day: tuple[int, ...] = ()
    by_day: tuple[weekday, ...] = ()
    by_hour: tuple[int, ...] = ()
    by_minute: tuple[int, ...] = ()
    by_second: tuple[int, ...] = ()
    by_set_pos: tuple[int, ...] = ()
    week_start: int = 0  # Monday
    skip: Skip = Skip.OMIT

    @property
    def elapsed(self) -> bool:
        """Whether the rule steps in exact time rather than by the calendar."""
        return self.freq >= Frequency.HOURLY

    def hours_minutes_seconds(self, start: int) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Those of a calendar rule: what it does not name is the same as in DTSTART, the local second `start`
        (RFC 5545, 3.3.10)."""
        time = start % DAY
        return (
            self.by_hour or (time // 3600,),
            self.by_minute or (time // 60 % 60,),
            self.by_second or (time % 60,),
        )

    def text(self, until: str | None) -> str:
        """The canonical RRULE value; `until` is the UNTIL value already pinned to UTC."""
        parts = [] if self.skip is Skip.OMIT else ["RSCALE=GREGORIAN"]
        parts.append(f"FREQ={self.freq.name}")
        if self.interval != 1:
            parts.append(f"INTERVAL={self.interval}")
        if until is not None:
            parts.append(f"UNTIL={until}")
        if self.count is not None:
            parts.append(f"COUNT={self.count}")
        lists: tuple[tuple[str, Sequence[object]], ...] = (
            ("BYMONTH", self.by_month),
            ("BYWEEKNO", self.by_week_no),
            ("BYYEARDAY", self.by_year_day),
            ("BYMONTHDAY", self.by_month_day),
            ("BYDAY", [f"{day.n or ''}{DAY_NAMES[day.weekday]}" for day in self.by_day]),
            ("BYHOUR", self.by_hour),
            ("BYMINUTE", self.by_minute),
            ("BYSECOND", self.by_second),
            ("BYSETPOS", self.by_set_pos),
        )
        parts += [f"{name}={','.join(map(str, values))}" for name, values in lists if values]
        if self.week_start:
            parts.append(f"WKST={DAY_NAMES[self.week_start]}")
        if self.skip is not Skip.OMIT:
            parts.append(f"SKIP={self.skip}")
        return ";".join(parts)


_KEPT = 1440


def times_of_day(hours: tuple[int, ...], minutes: tuple[int, ...], seconds: tuple[int, ...]) -> Sequence[int]:
    """All the combinations in ascending order; computed when asked for where there are very many (86,400)."""
    product = _Product(hours, minutes, seconds)
    return tuple(product) if len(product) <= _KEPT else product


def first_from(times: Sequence[int], second: int) -> int:
    """The index of the first time that is not before `second` of the day."""
    return bisect_left(times, second)


@dataclass(frozen=True)
class _Product(Sequence[int]):
    hours: tuple[int, ...]
    minutes: tuple[int, ...]
    seconds: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.hours) * len(self.minutes) * len(self.seconds)

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[int]: ...
    def __getitem__(self, index: int | slice) -> int | Sequence[int]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        rest, second = divmod(index, len(self.seconds))
        hour, minute = divmod(rest, len(self.minutes))
        return self.hours[hour] * 3600 + self.minutes[minute] * 60 + self.seconds[second]


Phase = Callable[[int], int]


def phase_of(rule: Rule, start: date) -> Phase | None:
    """A function from a year to its days in every INTERVAL-th period; None when all take part.

    `start` is DTSTART's local day, in the period that is the first.
    """
    freq, interval, day = rule.freq, rule.interval, start.toordinal()
    year, month, week_start = start.year, start.month, rule.week_start
    if interval == 1:
        return None
    if rule.by_week_no:
        anchor = week_year_of(day, week_start)
        return lambda other: _week_years(other, (other - anchor) % interval, interval, week_start)
    if freq == Frequency.YEARLY:
        return lambda other: 0 if (other - year) % interval else (1 << 366) - 1
    if freq == Frequency.MONTHLY:
        first_month = year * 12 + month - 1
        return lambda other: _months(is_leap(other), (other * 12 - first_month) % interval, interval)
    width = 7 if freq == Frequency.WEEKLY else 1
    anchor = week_of(day, week_start) if freq == Frequency.WEEKLY else day
    span = interval * width
    return lambda other: _runs(span, width, (first_day(other) - anchor) % span)


def years_to_repeat(freq: Frequency, interval: int) -> int:
    """The years after which calendar and phase have been together in every way that they ever will be."""
    periods = {
        Frequency.YEARLY: CYCLE_YEARS,
        Frequency.MONTHLY: CYCLE_YEARS * 12,
        Frequency.WEEKLY: CYCLE_DAYS // 7,
        Frequency.DAILY: CYCLE_DAYS,
    }[freq]
    return CYCLE_YEARS * (interval // gcd(interval, periods))


def week_of(day: int, week_start: int) -> int:
    """The first day of the week in which `day` lies."""
    return day - (day + 6 - week_start) % 7


@lru_cache(maxsize=8192)
def _runs(span: int, width: int, passed: int) -> int:
    """`width` days in every `span`, when `passed` days of a span are over on 1 January."""
    days = days_between(-passed, width) if passed < width else 0
    for start in range(span - passed, 366, span):
        days |= days_between(start, width)
    return days


@lru_cache(maxsize=1024)
def _months(leap: bool, passed: int, interval: int) -> int:
    """Every `interval`-th month, when `passed` months of the interval are over in January."""
    spans = month_spans(leap)
    return sum(days_between(*spans[month]) for month in range((-passed) % interval, 12, interval))


def _week_years(year: int, passed: int, interval: int, week_start: int) -> int:
    """The days of a calendar year that lie in every `interval`-th week-year, when `passed` week-years of the
    interval are over as the week-year of the same number begins."""
    january = first_day(year)
    days = 0
    for number in (-1, 0, 1):
        if (passed + number) % interval == 0:
            first = first_of_week_year(year + number, week_start)
            last = first_of_week_year(year + number + 1, week_start)
            days |= days_between(first - january, last - first) if last > january else 0
    return days & ((1 << (first_day(year + 1) - january)) - 1)

"""The kinds of years: 28 of them, and years of one kind do not differ in anything that a rule can ask.

A kind is the weekday of 1 January and where the nearest leap day is: in the year, in the one before, in the
one after, or in none of them. The neighbours matter for week numbers only: whether 1 January is in week 52
or 53 is decided by the year before.

A set of days of a year is an integer with one bit a day (bit 0 = 1 January). A rule's days are worked out
once for each kind of year that is met; from then on a year costs one operation on such integers. Weekdays
are numbered from Monday = 0.
"""

from datetime import date
from functools import lru_cache
from typing import Final, NamedTuple

from scheduler_app.domain.recurrence.timeline import LAST_YEAR

_LENGTHS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class YearKind(NamedTuple):
    """Whether the year has 29 February, the weekday of its 1 January, and whether its neighbours are leap
    years."""

    leap: bool
    weekday: int
    after_leap: bool
    before_leap: bool

    @property
    def length(self) -> int:
        """Days in the year."""
        return 366 if self.leap else 365


def is_leap(year: int) -> bool:
    """Whether a Gregorian year has 29 February."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def first_day(year: int) -> int:
    """The ordinal of 1 January; defined beyond the years that a `date` can hold."""
    past = year - 1
    return past * 365 + past // 4 - past // 100 + past // 400 + 1


def year_of(day: int) -> int:
    """The year of an ordinal between FIRST_DAY and LAST_DAY."""
    return date.fromordinal(day).year


@lru_cache(maxsize=LAST_YEAR)
def year_kind(year: int) -> YearKind:
    """The kind of a year."""
    return YearKind(is_leap(year), (first_day(year) + 6) % 7, is_leap(year - 1), is_leap(year + 1))


@lru_cache(maxsize=2)
def month_spans(leap: bool) -> tuple[tuple[int, int], ...]:
    """`(first bit, length)` of each month."""
    spans = []
    start = 0
    for month, length in enumerate(_LENGTHS, 1):
        days = length + (leap and month == 2)
        spans.append((start, days))
        start += days
    return tuple(spans)


def days_between(start: int, length: int) -> int:
    """The set of `length` days from bit `start`; what lies before the year is cut off."""
    bits = (1 << length) - 1
    return bits << start if start >= 0 else bits >> -start


@lru_cache(maxsize=28)
def weekday_sets(kind: YearKind) -> tuple[int, ...]:
    """For Monday to Sunday: all the days of the year with that weekday."""
    weekly = sum(1 << day for day in range(0, 371, 7))
    whole = (1 << kind.length) - 1
    return tuple((weekly << ((weekday - kind.weekday) % 7)) & whole for weekday in range(7))


def members(days: int, first: int) -> list[int]:
    """The ordinals of a set of days whose bit 0 is the day `first`."""
    found = []
    while days:
        lowest = days & -days
        found.append(first + lowest.bit_length() - 1)
        days ^= lowest
    return found

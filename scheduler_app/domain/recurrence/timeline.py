"""Instants as whole seconds and days as numbers, so that the evaluator computes with integers alone.

A *second* here is `day * 86400 + second of the day`, where `day` is the proleptic Gregorian ordinal
(`date.toordinal()`, 1 = 0001-01-01). The same scale serves UTC and local time: a local second minus its
offset is the UTC second. Naive datetimes are refused where they enter.

There are 28 kinds of years, and years of one kind do not differ in anything that a rule can ask. A kind
is the weekday of 1 January and where the nearest leap day is: in the year, in the one before, in the one
after, or in none of them. The neighbours matter for week numbers only: whether 1 January is in week 52 or
53 is decided by the year before.

A set of days of a year is an integer with one bit a day (bit 0 = 1 January). A rule's days are worked out
once for each kind of year that is met; from then on a year costs one operation on such integers. Weekdays
are numbered from Monday = 0.

Week numbers count in week-years. Week 1 is the first with at least four days in its calendar year (ISO
8601, for any first day of the week), so a week-year begins up to three days before or after 1 January.
With BYWEEKNO the period of a YEARLY rule is the week-year: a week that lies across New Year is one week
of one period.

An evaluation has a budget, counted in steps of the evaluator, so that no rule can hang the scheduler. A step
is a year, a period or a candidate looked at; it costs about a microsecond. What an occurrence needs is a few
steps for ordinary rules and a few thousand for the rarest: the limit is out of reach of a rule that means
something, and reached at once by a set whose EXRULE takes away everything that its RRULE gives. A parse has
less: what it accepts can be evaluated later, from whatever instant.
"""

from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final, NamedTuple

from scheduler_app.domain.errors import InvalidRecurrence

DAY: Final = 86_400
UNIX_EPOCH: Final = datetime(1970, 1, 1).toordinal() * DAY  # noqa: DTZ001 (only its ordinal is used)
FIRST_DAY: Final = 1
LAST_DAY: Final = 3_652_059  # 9999-12-31, the last day that a datetime can hold
FIRST_SECOND: Final = FIRST_DAY * DAY
LAST_SECOND: Final = LAST_DAY * DAY + DAY - 1
LAST_YEAR: Final = 9999

# The Gregorian calendar repeats, weekdays included, after 400 years.
CYCLE_YEARS: Final = 400
CYCLE_DAYS: Final = 146_097

_START: Final = datetime(1, 1, 1, tzinfo=UTC)
_SECOND: Final = timedelta(seconds=1)


def require_aware(instant: datetime, name: str) -> datetime:
    """`instant` itself; ValueError when it is naive, because its instant is unknown."""
    if instant.tzinfo is None or instant.utcoffset() is None:
        raise ValueError(f"{name} must be an aware datetime, not a naive one")
    return instant


def floor_second(instant: datetime) -> int:
    """The whole UTC second in which an aware `instant` lies."""
    return (instant - _START) // _SECOND + FIRST_SECOND


def ceil_second(instant: datetime) -> int:
    """The first whole UTC second that is not before an aware `instant`."""
    return -((_START - instant) // _SECOND) + FIRST_SECOND


def to_datetime(second: int) -> datetime:
    """The aware UTC datetime of a UTC second between FIRST_SECOND and LAST_SECOND."""
    return _START + timedelta(0, second - FIRST_SECOND)


def local_datetime(second: int, zone: tzinfo | None, fold: int = 0) -> datetime:
    """The aware datetime whose wall clock shows the local `second`; `fold` as in PEP 495."""
    return (_START + timedelta(0, second - FIRST_SECOND)).replace(tzinfo=zone, fold=fold)


def local_second(naive: datetime) -> int:
    """The local second of a wall-clock reading (its tzinfo is not looked at)."""
    return naive.toordinal() * DAY + naive.hour * 3600 + naive.minute * 60 + naive.second


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


def to_first_week(days_into_week: int) -> int:
    """Days from 1 January, given its day of the week, to the first day of week 1: from -3 to 3."""
    return -days_into_week if days_into_week <= 3 else 7 - days_into_week


@lru_cache(maxsize=LAST_YEAR)
def first_of_week_year(year: int, week_start: int) -> int:
    """The ordinal of the first day of a week-year; weeks begin on the weekday `week_start`."""
    january = first_day(year)
    return january + to_first_week((january + 6 - week_start) % 7)


def week_year_of(day: int, week_start: int) -> int:
    """The week-year in which an ordinal between FIRST_DAY and LAST_DAY lies."""
    year = year_of(day)
    if day < first_of_week_year(year, week_start):
        return year - 1
    return year + 1 if day >= first_of_week_year(year + 1, week_start) else year


LIMIT: Final = 50_000
PARSE_LIMIT: Final = 10_000
#: What all occurrences that are listed for a person may cost together: some seconds at the most.
LISTING_LIMIT: Final = 2_000_000


class StepBudget:
    """The steps that are left for finding the next occurrence, or, when `parsing`, for reading the text."""

    __slots__ = ("limit", "parsing", "steps_left")

    def __init__(self, *, parsing: bool = False) -> None:
        self.limit = PARSE_LIMIT if parsing else LIMIT
        self.steps_left = self.limit
        self.parsing = parsing

    def allow(self, rules: int) -> None:
        """Each rule of a set has the whole budget; all the rules of a text that is parsed share one."""
        if not self.parsing and rules > 1:
            self.limit = self.steps_left = LIMIT * rules

    def spend(self, count: int = 1) -> None:
        """Count steps; InvalidRecurrence when the budget is used up."""
        self.steps_left -= count
        if self.steps_left < 0:
            raise OutOfSteps(self.limit)

    def found(self) -> None:
        """An instance was found, so there was progress: the next one has the whole budget again."""
        if self.parsing:
            self.spend()
        else:
            self.steps_left = self.limit


class ListingBudget(StepBudget):
    """The steps for a list of occurrences: each has its own budget, and all together have `LISTING_LIMIT`."""

    __slots__ = ("together",)

    def __init__(self) -> None:
        super().__init__()
        self.together = LISTING_LIMIT

    def found(self) -> None:
        self.together -= self.limit - self.steps_left
        if self.together < 0:
            raise InvalidRecurrence(
                "limit",
                f"they take more than {LISTING_LIMIT} steps of the evaluator together; ask for fewer, or for"
                " an earlier end",
            )
        super().found()


class OutOfSteps(InvalidRecurrence):
    """The budget is used up."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            "RRULE",
            f"no occurrence was found within {limit} steps of the evaluator; make the parts contradict less, "
            "or give fewer and simpler rules",
        )

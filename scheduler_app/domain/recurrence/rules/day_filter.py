"""Which days a rule's BY parts allow, as a set of days for each kind of year (see `year`).

Every BY part that names days (BYMONTH, BYWEEKNO, BYYEARDAY, BYMONTHDAY, BYDAY) is a set of days of the year,
and RFC 5545's Expand and Limit both come down to the intersection of those sets once the parts that DTSTART
implies are filled in. What INTERVAL allows is intersected later (`phase`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

from dateutil.rrule import weekday

from scheduler_app.domain.recurrence.year_kinds import (
    YearKind,
    days_between,
    month_spans,
    weekday_sets,
    year_kind,
)

from .week_year import to_first_week


@dataclass(frozen=True)
class DayFilter:
    """The BY parts that name days. `days_in_month` says whether numbered weekdays count in months or in
    years."""

    by_month: tuple[int, ...] = ()
    by_week_no: tuple[int, ...] = ()
    by_year_day: tuple[int, ...] = ()
    by_month_day: tuple[int, ...] = ()
    by_day: tuple[weekday, ...] = ()
    days_in_month: bool = False
    week_start: int = 0
    _sets: dict[YearKind, int] = field(default_factory=dict, init=False, compare=False, repr=False)

    @property
    def everything(self) -> bool:
        """Whether every day is allowed."""
        return not (self.by_month or self.by_week_no or self.by_year_day or self.by_month_day or self.by_day)

    def days(self, year: int) -> int:
        """The allowed days of a year."""
        kind = year_kind(year)
        known = self._sets.get(kind)
        if known is None:
            known = self._sets[kind] = self._work_out(kind)
        return known

    def _work_out(self, kind: YearKind) -> int:
        days = (1 << kind.length) - 1
        tests: tuple[tuple[object, Callable[[YearKind], int]], ...] = (
            (self.by_month, self._months),
            (self.by_month_day, self._month_days),
            (self.by_year_day, self._year_days),
            (self.by_week_no, self._weeks),
            (self.by_day, self._weekdays),
        )
        for given, test in tests:
            if given and days:
                days &= test(kind)
        return days

    def _months(self, kind: YearKind) -> int:
        spans = month_spans(kind.leap)
        return sum(days_between(*spans[month - 1]) for month in self.by_month)

    def _year_days(self, kind: YearKind) -> int:
        days = 0
        for number in self.by_year_day:
            bit = number - 1 if number > 0 else kind.length + number
            if 0 <= bit < kind.length:
                days |= 1 << bit
        return days

    def _month_days(self, kind: YearKind) -> int:
        days = 0
        for start, length in month_spans(kind.leap):
            for number in self.by_month_day:
                offset = number - 1 if number > 0 else length + number
                if 0 <= offset < length:
                    days |= 1 << (start + offset)
        return days

    def _weekdays(self, kind: YearKind) -> int:
        sets = weekday_sets(kind)
        spans = month_spans(kind.leap) if self.days_in_month else ((0, kind.length),)
        days = 0
        for day in self.by_day:
            if not day.n:
                days |= sets[day.weekday]
                continue
            for start, length in spans:
                first = (day.weekday - kind.weekday - start) % 7
                found = (length - first + 6) // 7
                index = day.n - 1 if day.n > 0 else found + day.n
                if 0 <= index < found:
                    days |= 1 << (start + first + 7 * index)
        return days

    def _weeks(self, kind: YearKind) -> int:
        """The days whose week is asked for.

        Days at the year's edges belong to a week of the neighbouring year: late December to its week 1,
        early January to its last week, which is week 52 or 53 of *that* year (dateutil pull request 1537: it
        numbers that week one too high).
        """
        days = 0
        for start, weeks in _week_years(kind, self.week_start):
            for number in self.by_week_no:
                index = number - 1 if number > 0 else weeks + number
                if 0 <= index < weeks and start + 7 * index > -7:
                    days |= days_between(start + 7 * index, 7)
        return days & ((1 << kind.length) - 1)


def _week_years(kind: YearKind, week_start: int) -> tuple[tuple[int, int], ...]:
    """`(bit of the first day of week 1, number of weeks)` of the week-years before, in and after a year.

    Week 1 is the first with at least four days in its year (ISO 8601, for any first day of the week).
    """
    length_before = 366 if kind.after_leap else 365
    length_after = 366 if kind.before_leap else 365
    starts = (-length_before, 0, kind.length, kind.length + length_after)
    firsts = [start + to_first_week((kind.weekday + start - week_start) % 7) for start in starts]
    return tuple((first, (following - first) // 7) for first, following in pairwise(firsts))

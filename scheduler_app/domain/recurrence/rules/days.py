"""The days of a rule in order, from any day on: what the BY parts allow, in the periods that INTERVAL
allows.

Every BY part that names days (BYMONTH, BYWEEKNO, BYYEARDAY, BYMONTHDAY, BYDAY) is a set of days for each
kind of year (see `timeline`), and RFC 5545's Expand and Limit both come down to the intersection of those
sets once the parts that DTSTART implies are filled in. What INTERVAL allows is intersected later.

SKIP of RFC 7529 says what becomes of a day that its month or year does not have. OMIT, the default,
leaves it out. BACKWARD takes the last day before the gap, FORWARD the first one after it: 31 April
becomes 30 April or 1 May. A day counted from the end is missing before the first: the 31st from the end
of April becomes 31 March or 1 April (so libical reads it). The move comes after BYMONTH, BYYEARDAY and
BYMONTHDAY have named the day, and before BYDAY, INTERVAL's period being that of the day as it was named:
with INTERVAL=2 the 1 May of an April that takes part occurs, in a May that does not. BYSETPOS picks from
what the period named, moved days included.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

from dateutil.rrule import weekday

from scheduler_app.domain.recurrence.rules.rule import Frequency, Phase, Rule, Skip
from scheduler_app.domain.recurrence.timeline import (
    FIRST_DAY,
    LAST_DAY,
    LAST_YEAR,
    StepBudget,
    YearKind,
    days_between,
    first_day,
    is_leap,
    month_spans,
    to_first_week,
    weekday_sets,
    year_kind,
    year_of,
)


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

    @classmethod
    def of(cls, rule: Rule) -> "DayFilter":
        """The parts of a rule."""
        in_month = rule.freq == Frequency.MONTHLY or bool(rule.by_month)
        parts = rule.by_month, rule.by_week_no, rule.by_year_day, rule.by_month_day, rule.by_day
        return cls(*parts, in_month, rule.week_start)

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
        return _numbered(self.by_year_day, ((0, kind.length),))

    def _month_days(self, kind: YearKind) -> int:
        return _numbered(self.by_month_day, month_spans(kind.leap))

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


def _numbered(numbers: tuple[int, ...], spans: tuple[tuple[int, int], ...]) -> int:
    """The days of these numbers in each span, given by its first bit and its length."""
    days = 0
    for start, length in spans:
        for number in numbers:
            offset = number - 1 if number > 0 else length + number
            if 0 <= offset < length:
                days |= 1 << (start + offset)
    return days


def _week_years(kind: YearKind, week_start: int) -> tuple[tuple[int, int], ...]:
    """`(bit of the first day of week 1, number of weeks)` of the week-years before, in and after a year.

    Week 1 is the first with at least four days in its year (ISO 8601, for any first day of the week).
    """
    length_before = 366 if kind.after_leap else 365
    length_after = 366 if kind.before_leap else 365
    starts = (-length_before, 0, kind.length, kind.length + length_after)
    firsts = [start + to_first_week((kind.weekday + start - week_start) % 7) for start in starts]
    return tuple((first, (following - first) // 7) for first, following in pairwise(firsts))


@dataclass(frozen=True, eq=False)
class Days:
    """The days that `filter` and `phase` both allow. `repeats_after`: years after which the search is
    hopeless."""

    filter: DayFilter
    phase: Phase | None
    repeats_after: int

    def named(self, year: int) -> int:
        """The days of a year (see `timeline`) that the parts and the phase name."""
        days = self.filter.days(year)
        return days & self.phase(year) if days and self.phase is not None else days

    def of_year(self, year: int) -> int:
        """The days of a year (see `timeline`)."""
        return self.named(year)

    @property
    def reach(self) -> int:
        """Days by which one of the days may lie outside of the period that names it (see `SkippingDays`)."""
        return 0

    @property
    def everything(self) -> bool:
        """Whether every day is one of them."""
        return self.phase is None and self.filter.everything

    def allows(self, day: int) -> bool:
        """Whether a day is one of them."""
        return has_day(self.of_year, day)

    def next(self, day: int, steps: StepBudget) -> int | None:
        """The first of the days that is not before `day`; None if there are no more before the year 10000."""
        if day > LAST_DAY:
            return None
        day = max(day, FIRST_DAY)
        if self.everything:
            return day
        year = year_of(day)
        days = self.of_year(year) >> (day - first_day(year))
        last_year = min(year + self.repeats_after, LAST_YEAR)
        while not days:
            steps.spend()
            year += 1
            if year > last_year:
                return None
            day = first_day(year)
            days = self.of_year(year)
        return day + (days & -days).bit_length() - 1

    def from_(self, day: int, steps: StepBudget) -> Iterator[int]:
        """The days from `day` on, in order."""
        if day > LAST_DAY:
            return
        day = max(day, FIRST_DAY)
        year = year_of(day)
        january = first_day(year)
        days = self.of_year(year) >> (day - january) << (day - january)
        last_year = year + self.repeats_after
        while True:
            while days:
                lowest = days & -days
                yield january + lowest.bit_length() - 1
                days ^= lowest
                last_year = year + self.repeats_after
            steps.spend()
            year += 1
            if year > min(last_year, LAST_YEAR):
                return
            january = first_day(year)
            days = self.of_year(year)

    def in_period(self, first: int, last: int) -> tuple[int, int]:
        """`(bit 0 as an ordinal, days)`: those that the period from `first` to `last` names."""
        return first, span(self.of_year, first, last)

    def count(self, year: int, first: int, last: int) -> int:
        """How many of the days lie in a year and between `first` and `last`, both included."""
        days = self.of_year(year)
        january = first_day(year)
        if last - january < 366:
            days &= (1 << max(last - january + 1, 0)) - 1
        return (days >> min(max(first - january, 0), 366)).bit_count()


def has_day(of_year: Callable[[int], int], day: int) -> bool:
    """Whether a day (an ordinal) is one of the days that `of_year` gives of its year."""
    if not FIRST_DAY <= day <= LAST_DAY:
        return False
    year = year_of(day)
    return bool(of_year(year) >> (day - first_day(year)) & 1)


def span(of_year: Callable[[int], int], first: int, last: int) -> int:
    """The days from `first` to `last`, some 371 at most, as a set whose bit 0 is `first`."""
    year = year_of(min(max(first, FIRST_DAY), LAST_DAY))
    days = 0
    while (january := first_day(year)) <= last and year <= LAST_YEAR:
        past = january - first
        found = of_year(year)
        days |= found << past if past >= 0 else found >> -past
        year += 1
    return days & ((1 << (last - first + 1)) - 1)


_KEPT = 512


@dataclass(frozen=True, eq=False)
class SkippingDays(Days):
    """The days of a MONTHLY or YEARLY rule with SKIP=BACKWARD or FORWARD."""

    rule: Rule
    limits: DayFilter
    _years: dict[int, int] = field(default_factory=dict, init=False, repr=False)

    @property
    def reach(self) -> int:
        """Days by which a moved day may lie outside of its period."""
        return 1

    def of_year(self, year: int) -> int:
        """As `Days.of_year`, with the moved days that come to lie in the year."""
        days = self._years.get(year)
        if days is None:
            january = first_day(year)
            days = self.named(year)
            for day, _, _ in self._moved(year - 1, year + 1):
                if january <= day < first_day(year + 1):
                    days |= 1 << (day - january)
            if len(self._years) == _KEPT:
                self._years.clear()
            self._years[year] = days
        return days

    def in_period(self, first: int, last: int) -> tuple[int, int]:
        """As `Days.in_period`, with the days that the period named, wherever they came to lie."""
        shift = self.reach
        days = span(self.named, first, last) << shift
        for day, source, _ in self._moved(_year(first), _year(last)):
            if first <= source <= last:
                days |= 1 << (day - first + shift)
        return first - shift, days

    def missing_at(self, day: int) -> tuple[int, int] | None:
        """`(number, first day of the period)` of a day that its period does not have and that was moved to
        `day`; None for a day that is named as it is."""
        year = _year(day)
        if self.named(year) >> (day - first_day(year)) & 1:
            return None
        found = (each for each in self._moved(year - 1, year + 1) if each[0] == day)
        return next(((number, source) for _, source, number in found), None)

    def _moved(self, first: int, last: int) -> list[tuple[int, int, int]]:
        """`(day, first day of the period that named it, the number that did)` for the moved days that the
        years from `first` to `last` name."""
        found = []
        for year in range(first, last + 1):
            january = first_day(year)
            periods = -1 if self.phase is None else self.phase(year)
            for source, target, number in _targets(self.rule, year):
                day = january + target
                if periods >> source & 1 and self._allowed(day):
                    found.append((day, january + source, number))
        return found

    def _allowed(self, day: int) -> bool:
        """Whether the parts that come after the move allow a day."""
        year = _year(day)
        return self.limits.everything or bool(self.limits.days(year) >> (day - first_day(year)) & 1)


def can_move(rule: Rule) -> bool:
    """Whether SKIP can move a day of the rule, whose implied parts are filled in."""
    return (
        rule.skip in (Skip.BACKWARD, Skip.FORWARD)
        and rule.freq <= Frequency.MONTHLY
        and any(abs(day) > 28 for day in rule.by_month_day or rule.by_year_day)
    )


def limits_of_moved(rule: Rule) -> DayFilter:
    """What is asked of a moved day; the part that named it is not."""
    own, of_month = DayFilter.of(rule), bool(rule.by_month_day)
    return replace(
        own,
        by_month=() if of_month else own.by_month,
        by_year_day=own.by_year_day if of_month else (),
        by_month_day=(),
    )


def _targets(rule: Rule, year: int) -> set[tuple[int, int, int]]:
    """`(first day of the period, the day moved to, its number)`, the days as days after 1 January, for the
    days that are named and that the year does not have."""
    spans, numbers = [(0, year_kind(year).length)], rule.by_year_day
    if rule.by_month_day:
        of_year, numbers = month_spans(is_leap(year)), rule.by_month_day
        spans = [of_year[month - 1] for month in rule.by_month or range(1, 13)]
    found = set()
    for start, length in spans:
        for number in numbers:
            if abs(number) > length:
                after = start + length if number > 0 else start
                found.add((start, after if rule.skip is Skip.FORWARD else after - 1, number))
    return found


def _year(day: int) -> int:
    """The year of a day; a day may be moved out of the years 1 to 9999."""
    if day < FIRST_DAY:
        return 0
    return year_of(day) if day <= LAST_DAY else LAST_YEAR + 1

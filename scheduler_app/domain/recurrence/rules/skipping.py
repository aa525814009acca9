"""SKIP of RFC 7529: what becomes of a day that its month or year does not have.

OMIT, the default, leaves it out. BACKWARD takes the last day before the gap, FORWARD the first one after it:
31 April becomes 30 April or 1 May. A day counted from the end is missing before the first: the 31st from the
end of April becomes 31 March or 1 April (so libical reads it).

The move comes after BYMONTH, BYYEARDAY and BYMONTHDAY have named the day, and before BYDAY, INTERVAL's period
being that of the day as it was named: with INTERVAL=2 the 1 May of an April that takes part occurs, in a May
that does not. BYSETPOS picks from what the period named, moved days included.
"""

from dataclasses import dataclass, field

from scheduler_app.domain.recurrence.timeline import FIRST_DAY, LAST_DAY, LAST_YEAR
from scheduler_app.domain.recurrence.year_kinds import first_day, is_leap, month_spans, year_of

from .day_filter import DayFilter
from .days import Days, span
from .rule import Frequency, Rule, Skip

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
            for day, _ in self._moved(year - 1, year + 1):
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
        for day, source in self._moved(_year(first), _year(last)):
            if first <= source <= last:
                days |= 1 << (day - first + shift)
        return first - shift, days

    def missing_at(self, day: int) -> tuple[int, int] | None:
        """`(number, first day of the period)` of a day that its period does not have and that was moved to
        `day`; None for a day that is named as it is."""
        year = _year(day)
        if self.named(year) >> (day - first_day(year)) & 1:
            return None
        found = (each for each in self._moved_numbers(year - 1, year + 1) if each[0] == day)
        return next(((number, source) for _, source, number in found), None)

    def _moved(self, first: int, last: int) -> list[tuple[int, int]]:
        """`(day, first day of the period that named it)` for the moved days that the years from `first` to
        `last` name."""
        return [(day, source) for day, source, _ in self._moved_numbers(first, last)]

    def _moved_numbers(self, first: int, last: int) -> list[tuple[int, int, int]]:
        """As `_moved`, with the number that named the day."""
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


def moves(rule: Rule) -> bool:
    """Whether SKIP can move a day of the rule, whose implied parts are filled in."""
    return (
        rule.skip in (Skip.BACKWARD, Skip.FORWARD)
        and rule.freq <= Frequency.MONTHLY
        and any(abs(day) > 28 for day in rule.by_month_day or rule.by_year_day)
    )


def limits_of(rule: Rule) -> DayFilter:
    """What is asked of a moved day; the part that named it is not."""
    by_month_day = bool(rule.by_month_day)
    return DayFilter(
        by_month=() if by_month_day else rule.by_month,
        by_week_no=rule.by_week_no,
        by_year_day=rule.by_year_day if by_month_day else (),
        by_day=rule.by_day,
        days_in_month=rule.freq == Frequency.MONTHLY or bool(rule.by_month),
        week_start=rule.week_start,
    )


def _targets(rule: Rule, year: int) -> set[tuple[int, int, int]]:
    """`(first day of the period, the day moved to, its number)`, the days as days after 1 January, for the
    days that a year named in vain."""
    leap = is_leap(year)
    forward = rule.skip is Skip.FORWARD
    found = set()
    if not rule.by_month_day:
        length = 366 if leap else 365
        for number in rule.by_year_day:
            if abs(number) > length:
                found.add((0, _moved_to(number, 0, length, forward), number))
        return found
    spans = month_spans(leap)
    for month in rule.by_month or range(1, 13):
        start, length = spans[month - 1]
        for number in rule.by_month_day:
            if abs(number) > length:
                found.add((start, _moved_to(number, start, length, forward), number))
    return found


def _moved_to(number: int, start: int, length: int, forward: bool) -> int:
    """Where a day beyond the end (or before the beginning) of a period of `length` days comes to lie."""
    after = start + length if number > 0 else start
    return after if forward else after - 1


def _year(day: int) -> int:
    """The year of a day; a day may be moved out of the years 1 to 9999."""
    if day < FIRST_DAY:
        return 0
    return year_of(day) if day <= LAST_DAY else LAST_YEAR + 1

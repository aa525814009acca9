"""The days of a rule in order, from any day on: what the BY parts allow, in the periods that INTERVAL
allows."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from scheduler_app.domain.recurrence.timeline import FIRST_DAY, LAST_DAY, LAST_YEAR
from scheduler_app.domain.recurrence.year_kinds import first_day, year_of

from .day_filter import DayFilter
from .interval_phase import Phase
from .step_budget import StepBudget


@dataclass(frozen=True, eq=False)
class Days:
    """The days that `filter` and `phase` both allow. `repeats_after`: years after which the search is
    hopeless."""

    filter: DayFilter
    phase: Phase | None
    repeats_after: int

    def named(self, year: int) -> int:
        """The days of a year (see `year`) that the parts and the phase name."""
        days = self.filter.days(year)
        return days & self.phase(year) if days and self.phase is not None else days

    def of_year(self, year: int) -> int:
        """The days of a year (see `year`)."""
        return self.named(year)

    @property
    def reach(self) -> int:
        """Days by which one of the days may lie outside of the period that names it (see `skipping`)."""
        return 0

    @property
    def everything(self) -> bool:
        """Whether every day is one of them."""
        return self.phase is None and self.filter.everything

    def allows(self, day: int) -> bool:
        """Whether a day is one of them."""
        if not FIRST_DAY <= day <= LAST_DAY:
            return False
        year = year_of(day)
        return bool(self.of_year(year) >> (day - first_day(year)) & 1)

    def next(self, day: int, steps: StepBudget) -> int | None:
        """The first of the days that is not before `day`; None when there is none before the year 10000."""
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

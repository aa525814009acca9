"""The days of a rule in order, from any day on: what the BY parts allow, in the periods that INTERVAL
allows."""

from collections.abc import Iterator
from dataclasses import dataclass

from .day_filter import DayFilter
from .phase import Phase
from .seconds import FIRST_DAY, LAST_DAY, LAST_YEAR
from .steps import Steps
from .year import first_day, year_of


@dataclass(frozen=True, eq=False)
class Days:
    """The days that `filter` and `phase` both allow. `repeats_after`: years after which the search is
    hopeless."""

    filter: DayFilter
    phase: Phase | None
    repeats_after: int

    def of_year(self, year: int) -> int:
        """The days of a year (see `year`)."""
        days = self.filter.days(year)
        return days & self.phase(year) if days and self.phase is not None else days

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

    def next(self, day: int, steps: Steps) -> int | None:
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

    def from_(self, day: int, steps: Steps) -> Iterator[int]:
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

    def span(self, first: int, last: int) -> int:
        """The days from `first` to `last`, at most a year apart, as a set whose bit 0 is `first`."""
        year = year_of(min(max(first, FIRST_DAY), LAST_DAY))
        past = first - first_day(year)
        days = self.of_year(year)
        days = days >> past if past >= 0 else days << -past
        following = first_day(year + 1) - first
        if following <= last - first and year < LAST_YEAR:
            days |= self.of_year(year + 1) << following
        return days & ((1 << (last - first + 1)) - 1)

    def count(self, year: int, first: int, last: int) -> int:
        """How many of the days lie in a year and between `first` and `last`, both included."""
        january = first_day(year)
        days = self.of_year(year) & ((1 << max(last - january + 1, 0)) - 1)
        return (days >> max(first - january, 0)).bit_count()

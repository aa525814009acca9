"""The days of a calendar, year by year: as sets for the evaluator, with names for people."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from functools import lru_cache
from typing import Final

from scheduler_app.domain.recurrence.year_kinds import first_day, weekday_sets, year_kind

from .calendar import Calendar
from .public_holidays import (
    FIRST_YEAR,
    LAST_YEAR,
    holidays_of_country,
    holidays_of_exchange,
    working_weekend_days,
)

_CALENDARS_KEPT: Final = 256
_WEEKEND_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class DayKind(StrEnum):
    """Why a day is closed. A holiday on a weekend day is a holiday."""

    HOLIDAY = "holiday"
    WEEKEND = "weekend"


@dataclass(frozen=True, slots=True)
class Day:
    """A closed day, and what it is called."""

    date: date
    name: str
    kind: DayKind


@dataclass(frozen=True, eq=False)
class CalendarDays:
    """What the evaluator asks of a calendar (`ClosedDays`), kept year by year: 131 years at most."""

    calendar: Calendar
    _closed: dict[int, int] = field(default_factory=dict, init=False, repr=False)

    @property
    def irregular_until(self) -> int:
        """The last year with closed days beside weekends."""
        if self.calendar.uses_holiday_data:
            return LAST_YEAR
        return self.calendar.dates[-1].date.year if self.calendar.dates else FIRST_YEAR

    def of_year(self, year: int) -> int:
        """The closed days of a year: bit 0 is 1 January."""
        known = self._closed.get(year)
        if known is not None:
            return known
        kind = year_kind(year)
        closed = 0
        for weekday in self.calendar.weekend:
            closed |= weekday_sets(kind)[weekday]
        if FIRST_YEAR <= year <= LAST_YEAR:
            for day in self._working_weekend_days(year):
                closed &= ~(1 << (day.toordinal() - first_day(year)))
            for day in self._holidays(year):
                closed |= 1 << (day.toordinal() - first_day(year))
            self._closed[year] = closed
        return closed

    def is_closed_all(self, year: int) -> bool:
        """Whether a year has no open day."""
        return self.of_year(year).bit_count() == year_kind(year).length

    def day(self, at: date) -> Day | None:
        """The closed day on a date; None for an open one."""
        return next(self.days(at, at), None)

    def name_of(self, at: date) -> str:
        """What a closed day is called; "" for an open one."""
        found = self.day(at)
        return found.name if found is not None else ""

    def days(self, first: date, last: date) -> Iterator[Day]:
        """The closed days from `first` to `last`, both included, in order."""
        for year in range(first.year, last.year + 1):
            closed, january = self.of_year(year), first_day(year)
            holidays = self._holidays(year) if FIRST_YEAR <= year <= LAST_YEAR else {}
            begin = max(first.toordinal() - january, 0)
            for bit in range(begin, min(last.toordinal() - january + 1, 366)):
                if closed >> bit & 1:
                    at = date.fromordinal(january + bit)
                    if at in holidays:
                        yield Day(at, holidays[at], DayKind.HOLIDAY)
                    else:
                        yield Day(at, _WEEKEND_DAYS[at.weekday()], DayKind.WEEKEND)

    def _working_weekend_days(self, year: int) -> frozenset[date]:
        of = self.calendar
        if of.country is None or not of.working_weekends:
            return frozenset()
        return working_weekend_days(of.country, of.subdivision, year)

    def _holidays(self, year: int) -> dict[date, str]:
        """The names of a year's holidays; those of one date stand side by side."""
        of = self.calendar
        found = [(each.date, each.name) for each in of.dates if each.date.year == year]
        if of.country is not None:
            found += holidays_of_country(of.country, of.subdivision, year, of.categories)
        if of.exchange is not None:
            found += holidays_of_exchange(of.exchange, year)
        names: dict[date, dict[str, None]] = {}
        for at, name in found:
            names.setdefault(at, {}).setdefault(name)
        return {at: "; ".join(name for name in each if name) or "Holiday" for at, each in names.items()}


@lru_cache(maxsize=_CALENDARS_KEPT)
def days_of(calendar: Calendar) -> CalendarDays:
    """The days of a calendar; the calendars asked for last keep theirs. Thread-safe."""
    return CalendarDays(calendar)

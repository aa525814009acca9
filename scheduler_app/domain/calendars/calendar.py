"""A calendar as people give it (holidays by date, by country, by exchange, and the days of the weekend), its
days year by year, and how a schedule observes it under its name.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import Final

from scheduler_app.domain.calendars.public_holidays import (
    FIRST_YEAR,
    LAST_YEAR,
    categories_of_country,
    country_code,
    exchange_code,
    holidays_of_country,
    holidays_of_exchange,
    known_years,
    subdivision_code,
    working_weekend_days,
)
from scheduler_app.domain.errors import InvalidField, InvalidRecurrence
from scheduler_app.domain.ids import WholeId, whole_id
from scheduler_app.domain.recurrence import AnyRecurrence, Observance, OnHoliday, Recurrence
from scheduler_app.domain.recurrence.description import vocabulary as say
from scheduler_app.domain.recurrence.rules.rule import DAY_NAMES
from scheduler_app.domain.recurrence.timeline import first_day, weekday_sets, year_kind

MAX_DATES: Final = 2_000
MAX_CALENDAR_NAME: Final = 64
MAX_DATE_NAME: Final = 200
WEEKDAYS: Final = DAY_NAMES
_DEFAULT_WEEKEND: Final = (5, 6)


@dataclass(frozen=True, slots=True, order=True)
class NamedDate:
    """A holiday that a user has listed, with its name ("" if it has none)."""

    date: date
    name: str = ""


@dataclass(frozen=True, slots=True)
class Calendar:
    """The union of what is given; made by `of`, which checks it. `weekend`: weekdays from Monday = 0."""

    dates: tuple[NamedDate, ...] = ()
    country: str | None = None
    subdivision: str | None = None
    exchange: str | None = None
    weekend: tuple[int, ...] = _DEFAULT_WEEKEND
    categories: tuple[str, ...] = ()
    """Of the country's holidays; the public ones if none is named."""
    working_weekends: bool = False
    """Whether the weekend days are open on which the country works."""

    @classmethod
    def of(
        cls,
        *,
        dates: tuple[NamedDate, ...] = (),
        country: str | None = None,
        subdivision: str | None = None,
        exchange: str | None = None,
        weekend: tuple[int, ...] = _DEFAULT_WEEKEND,
        categories: tuple[str, ...] = (),
        working_weekends: bool = False,
    ) -> "Calendar":
        """The calendar, with codes as the library writes them and dates in order.

        Raises InvalidField for what is unknown or too much, and for a calendar that leaves no day open, or
        closes none.
        """
        if len(dates) > MAX_DATES:
            raise InvalidField("dates", f"are {len(dates)}; give {MAX_DATES} at most, or a country")
        for each in dates:
            _check_date(each)
        if country is None and subdivision is not None:
            raise InvalidField("subdivision", "is a part of a country: give country too")
        for name, wanted in (("categories", categories), ("working_weekends", working_weekends)):
            if country is None and wanted:
                raise InvalidField(name, "is about the holidays of a country: give country too")
        code = None if country is None else country_code(country)
        made = cls(
            tuple(sorted(set(dates))),
            code,
            None if code is None or subdivision is None else subdivision_code(code, subdivision),
            None if exchange is None else exchange_code(exchange),
            tuple(sorted(set(weekend))),
            () if code is None else categories_of_country(code, categories),
            working_weekends,
        )
        _check_weekend(made)
        _check_years(made)
        return made

    @property
    def uses_holiday_data(self) -> bool:
        """Whether a newer release of the `holidays` library may change its days."""
        return self.country is not None or self.exchange is not None

    def unknown_years(self, first: int, last: int) -> tuple[str, ...]:
        """Sentences about the years from `first` to `last` for which the holidays of the country or the
        exchange are not known."""
        found = []
        for name in filter(None, (self.country, self.exchange)):
            since, until = known_years(name)
            if last > until:
                found.append(
                    f"The holidays of {name} are known until {until}: from {until + 1} on none of them is"
                    " closed. A newer holidays package may know more; give later ones as dates."
                )
            if first < since:
                found.append(f"The holidays of {name} are known from {since} on: before, none is closed.")
        return tuple(found)


def _check_date(given: NamedDate) -> None:
    if not FIRST_YEAR <= given.date.year <= LAST_YEAR:
        raise InvalidField(
            "dates", f"{given.date} lies outside of the years {FIRST_YEAR} to {LAST_YEAR}; leave it out"
        )
    if len(given.name) > MAX_DATE_NAME:
        raise InvalidField("dates", f"the name of {given.date} is longer than {MAX_DATE_NAME} characters")


def _check_weekend(made: Calendar) -> None:
    if any(not 0 <= day <= 6 for day in made.weekend):
        raise InvalidField("weekend", f"must name days of the week: {', '.join(WEEKDAYS)}")
    if len(made.weekend) == 7:
        raise InvalidField("weekend", "holds all seven days, so no day would be left; leave one out")
    if not (made.dates or made.uses_holiday_data or made.weekend):
        raise InvalidField("dates", "no day is closed; give dates, a country, an exchange or weekend days")


def _check_years(made: Calendar) -> None:
    """A run of closed days is shorter than two years then, which bounds how far an occurrence is moved."""
    # Fewer dates than this, with holidays and weekends, cannot fill a year.
    per_year: dict[int, int] = {}
    for each in made.dates:
        per_year[each.date.year] = per_year.get(each.date.year, 0) + 1
    for year, count in per_year.items():
        if count > 52 and days_of(made).is_closed_all(year):
            raise InvalidField("dates", f"every day of {year} is a holiday or weekend day; leave some open")


_CALENDARS_KEPT: Final = 256


class DayKind(StrEnum):
    """Why a day is closed. A holiday on a weekend day is a holiday."""

    HOLIDAY = "holiday"
    WEEKEND = "weekend"


@dataclass(frozen=True, slots=True)
class CalendarDay:
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

    def day(self, at: date) -> CalendarDay | None:
        """The closed day on a date; None for an open one."""
        return next(self.days(at, at), None)

    def name_of(self, at: date) -> str:
        """What a closed day is called; "" for an open one."""
        found = self.day(at)
        return found.name if found is not None else ""

    def days(self, first: date, last: date) -> Iterator[CalendarDay]:
        """The closed days from `first` to `last`, both included, in order."""
        for year in range(first.year, last.year + 1):
            closed, january = self.of_year(year), first_day(year)
            holidays = self._holidays(year) if FIRST_YEAR <= year <= LAST_YEAR else {}
            begin = max(first.toordinal() - january, 0)
            for bit in range(begin, min(last.toordinal() - january + 1, 366)):
                if closed >> bit & 1:
                    at = date.fromordinal(january + bit)
                    if at in holidays:
                        yield CalendarDay(at, holidays[at], DayKind.HOLIDAY)
                    else:
                        yield CalendarDay(at, say.WEEKDAYS[at.weekday()], DayKind.WEEKEND)

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


#: A warning is given when the holidays end within this number of years.
_SOON_YEARS: Final = 2


@dataclass(frozen=True, slots=True)
class RemakeCounts:
    """What became of the schedules that observe a calendar since its days changed last."""

    moved: int = 0
    """Schedules whose future was made anew."""
    unchanged: int = 0


@dataclass(frozen=True)
class NamedCalendar:
    """A calendar as it is stored."""

    tenant: str
    name: str
    calendar: Calendar
    created_at: datetime
    updated_at: datetime
    version: int = 1
    """Counts people's edits."""
    days_version: int = 1
    """Rises whenever its days may have changed: by an edit, or by newer holiday data."""
    holiday_data: str | None = None
    """The release of the `holidays` library that its days were computed with, as a key that sorts; None for
    a calendar that needs none."""
    changed_at: datetime | None = None
    """When its days changed, as long as beats still look for schedules that this moves."""
    remade: RemakeCounts = RemakeCounts()
    deleted_at: datetime | None = None
    """No new schedule may name it. Those that a request wrote at that moment go on with it."""

    @cached_property
    def days(self) -> CalendarDays:
        """Its days. Kept, because each occurrence of each schedule asks, and to find them by two thousand
        dates takes a millisecond."""
        return days_of(self.calendar)

    def warnings(self, now: datetime, last: datetime | None = None) -> tuple[str, ...]:
        """Says from which year on its holidays are not known, where that comes soon, or before `last`."""
        soon = now.year + _SOON_YEARS
        return self.calendar.unknown_years(now.year, max(soon, last.year if last is not None else soon))

    @property
    def id(self) -> WholeId:
        """Its id among the calendars of all tenants."""
        return whole_id(self.tenant, self.name)


@dataclass(frozen=True, slots=True)
class CalendarUse:
    """How a schedule observes a calendar. Made by people with its first two fields."""

    name: str
    on_holiday: OnHoliday
    days_version: int = 0
    """That of the calendar with which `next_run_at` and the events were computed."""
    known: NamedCalendar | None = field(default=None, compare=False, repr=False)
    """The calendar itself, as it was when the schedule was read; None if it could not be."""
    problem: str = field(default="", compare=False)
    """Why not."""

    def up_to_date(self) -> "CalendarUse":
        """The same for a future that is made anew with the calendar as it is known."""
        return self if self.known is None else replace(self, days_version=self.known.days_version)

    def warnings(
        self, recurrence: AnyRecurrence, timezone: str, now: datetime, last: datetime | None = None
    ) -> tuple[str, ...]:
        """What may surprise of a schedule in `timezone`: that its recurrence is in another zone, and that
        holidays end before `last` (an occurrence that is looked at), or soon."""
        if not isinstance(recurrence, Recurrence):
            return ()
        found = []
        if timezone not in ("UTC", recurrence.timezone):
            where = f"{recurrence.timezone}, the zone of DTSTART, and not of {timezone}"
            found.append(
                f"The calendar {self.name} is read on the days of {where}; give a local start for those."
            )
        if self.known is not None:
            said = self.known.warnings(now, last)
            found += [f"The calendar {self.name}: {warning}" for warning in said]
        return tuple(found)

    def observed_by(self, recurrence: AnyRecurrence) -> AnyRecurrence:
        """A schedule's recurrence without the calendar's closed days. Raises InvalidRecurrence when the
        calendar could not be read."""
        if not isinstance(recurrence, Recurrence):
            return recurrence
        if self.known is None:
            raise InvalidRecurrence("calendar", self.problem or f"there is no calendar {self.name}")
        return recurrence.observing(Observance(self.name, self.known.days, self.on_holiday))

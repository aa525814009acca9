"""A calendar as people give it: holidays by date, by country, by exchange, and the days of the weekend."""

from dataclasses import dataclass
from datetime import date
from typing import Final

from scheduler_app.domain.errors import InvalidField

from .public_holidays import (
    FIRST_YEAR,
    LAST_YEAR,
    categories_of_country,
    country_code,
    exchange_code,
    known_years_of_country,
    known_years_of_exchange,
    subdivision_code,
)

MAX_DATES: Final = 2_000
MAX_CALENDAR_NAME: Final = 64
MAX_DATE_NAME: Final = 200
WEEKDAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
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
        known = []
        if self.country is not None:
            known.append((self.country, known_years_of_country(self.country)))
        if self.exchange is not None:
            known.append((self.exchange, known_years_of_exchange(self.exchange)))
        found = []
        for name, (since, until) in known:
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
    from .calendar_days import days_of  # it is made of this module's value

    # Fewer dates than this, with holidays and weekends, cannot fill a year.
    per_year: dict[int, int] = {}
    for each in made.dates:
        per_year[each.date.year] = per_year.get(each.date.year, 0) + 1
    for year, count in per_year.items():
        if count > 52 and days_of(made).is_closed_all(year):
            raise InvalidField("dates", f"every day of {year} is a holiday or weekend day; leave some open")

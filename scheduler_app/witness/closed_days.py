"""The closed days of a stored calendar, found a second time: by the `holidays` library alone."""

from collections.abc import Callable, Mapping
from datetime import date
from functools import lru_cache
from importlib import import_module
from importlib.metadata import version
from typing import Any, Final

from scheduler_app.witness.evaluator import Unjudged

_WEEKDAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
#: Calendars know holidays from and until these years.
_YEARS: Final = range(1970, 2101)


def closed_days(calendar: Mapping[str, Any]) -> Callable[[date], bool]:
    """Tells whether a day is closed in the calendar of that document. Raises Unjudged where its holidays were
    computed with another release of the library, or its working weekends are not known here."""
    data = calendar.get("holiday_data")
    if data is not None and data != _release():
        raise Unjudged("its calendar was computed with another release of the holidays library")
    if calendar.get("working_weekends"):
        raise Unjudged("its calendar opens working weekends")
    dates = frozenset(date.fromisoformat(each["date"]) for each in calendar.get("dates") or ())
    weekend = frozenset(_WEEKDAYS.index(each) for each in calendar.get("weekend") or ())
    country, exchange = calendar.get("country"), calendar.get("exchange")
    part, categories = calendar.get("subdivision"), tuple(calendar.get("categories") or ())

    def is_closed(day: date) -> bool:
        if day in dates or day.weekday() in weekend:
            return True
        if day.year not in _YEARS:
            return False
        return (country is not None and day in _of_country(country, part, categories, day.year)) or (
            exchange is not None and day in _of_exchange(exchange, day.year)
        )

    return is_closed


def _release() -> str:
    """The release of the library, as calendars keep it."""
    parts = version("holidays").split(".")[:3]
    return ".".join(f"{int(each):04d}" if each.isdecimal() else each for each in parts)


@lru_cache(maxsize=512)
def _of_country(country: str, part: str | None, categories: tuple[str, ...], year: int) -> frozenset[date]:
    found = import_module("holidays").country_holidays(
        country, subdiv=part, years=year, expand=False, categories=categories or None
    )
    return frozenset(found)


@lru_cache(maxsize=512)
def _of_exchange(exchange: str, year: int) -> frozenset[date]:
    return frozenset(import_module("holidays").financial_holidays(exchange, years=year, expand=False))

"""The holidays of countries and exchanges, by the `holidays` library (MIT), which this file alone knows.

It is imported when it is first needed: a process without such a calendar never pays for it.
"""

import warnings
from collections.abc import Iterable
from datetime import date
from difflib import get_close_matches
from functools import lru_cache
from importlib import import_module
from importlib.metadata import version
from typing import Any, Final

from scheduler_app.domain.errors import InvalidField

#: Years for which calendars know holidays; before and after them only weekends are closed.
FIRST_YEAR: Final = 1970
LAST_YEAR: Final = 2100
_SHOWN: Final = 12
#: The library's category of working days, which are not holidays.
_WORKDAYS: Final = "workday"
_YEARS_KEPT: Final = 4_096

Days = tuple[tuple[date, str], ...]


@lru_cache(maxsize=1)
def holiday_data_version() -> str:
    """The release of the library that holidays are computed with, for example "0.109"."""
    return version("holidays")


def holiday_data_key(release: str | None = None) -> str:
    """A release (this process's by default) as text that sorts as releases do: "0.109" after "0.99"."""
    parts = (release or holiday_data_version()).split(".")
    return ".".join(f"{int(part):04d}" if part.isdecimal() else part for part in parts[:3])


@lru_cache(maxsize=1)
def _library() -> Any:
    # It warns, through Python's warnings, of years that it knows less about; the manual says so once.
    warnings.filterwarnings("ignore", category=UserWarning, module=r"holidays(\.|$)")
    return import_module("holidays")


@lru_cache(maxsize=1)
def _names() -> dict[str, str]:
    """The code of every country by its code and by its name, in lower case."""
    found: dict[str, str] = {}
    registry = import_module("holidays.registry").COUNTRIES
    for module, codes in registry.items():
        code = next(each for each in codes[1:] if len(each) == 2)
        found |= {module.replace("_", " "): code, code.lower(): code}
    return found


@lru_cache(maxsize=1)
def _exchanges() -> tuple[str, ...]:
    return tuple(sorted(_library().list_supported_financial()))


def country_code(given: str) -> str:
    """The ISO 3166 code of a country that there are holidays of; InvalidField with the nearest ones."""
    names = _names()
    code = names.get(given.strip().lower())
    if code is None:
        near = get_close_matches(given.strip().lower(), names, n=3, cutoff=0.6)
        hint = _or(f"{names[each]} ({each.title()})" if len(each) > 2 else names[each] for each in near)
        raise InvalidField(
            "country",
            f"there are no holidays of {given[:40]!r}; give a code of ISO 3166 such as CH, US or JP"
            + (f", perhaps {hint}" if hint else ""),
        )
    return code


def subdivision_code(country: str, given: str) -> str:
    """The code of a part of a country; InvalidField with those that there are."""
    entity = getattr(_library(), country)
    codes: tuple[str, ...] = entity.subdivisions
    by_name = {code.lower(): code for code in codes}
    by_name |= {name.lower(): code for name, code in entity.subdivisions_aliases.items()}
    text = given.strip().lower().removeprefix(f"{country.lower()}-")
    if text in by_name:
        return by_name[text]
    near = list(dict.fromkeys(by_name[each] for each in get_close_matches(text, by_name, n=3, cutoff=0.6)))
    if near:
        hint = f"perhaps {_or(near)} is meant"
    elif codes:
        hint = f"it has {', '.join(codes[:_SHOWN])}" + (", …" if len(codes) > _SHOWN else "")
    else:
        hint = "none is known of it: leave subdivision out"
    raise InvalidField("subdivision", f"{country} has no subdivision {given[:40]!r}; {hint}")


def exchange_code(given: str) -> str:
    """The code of an exchange; InvalidField with the nearest ones."""
    code = given.strip().upper()
    if code not in _exchanges():
        near = get_close_matches(code, _exchanges(), n=3, cutoff=0.5)
        raise InvalidField(
            "exchange",
            f"there are no holidays of the exchange {given[:40]!r}; give a code such as NYSE, XLON or XJPX"
            + (f", perhaps {_or(near)}" if near else ""),
        )
    return code


def categories_of_country(country: str, given: Iterable[str]) -> tuple[str, ...]:
    """Categories of a country's holidays as the library writes them, in order; InvalidField with those that
    there are."""
    known = [each for each in getattr(_library(), country).supported_categories if each != _WORKDAYS]
    found = {each.strip().lower().replace(" ", "_") for each in given}
    if wrong := sorted(found - set(known)):
        raise InvalidField(
            "categories", f"{country} has no holidays of the category {wrong[0][:40]!r}; it has {_or(known)}"
        )
    return tuple(sorted(found))


def known_years(code: str) -> tuple[int, int]:
    """The first and the last year for which the library knows the holidays of a country or an exchange."""
    entity = getattr(_library(), code)
    return max(int(entity.start_year), FIRST_YEAR), min(int(entity.end_year), LAST_YEAR)


@lru_cache(maxsize=_YEARS_KEPT)
def holidays_of_country(
    country: str, subdivision: str | None, year: int, categories: tuple[str, ...] = ()
) -> Days:
    """The holidays of a year of some categories (the public ones if none is named), with their English names
    where the library has them."""
    return tuple(sorted(_of_country(country, subdivision, year, categories).items()))


@lru_cache(maxsize=_YEARS_KEPT)
def working_weekend_days(country: str, subdivision: str | None, year: int) -> frozenset[date]:
    """The days of a year on which people work although they are days of the weekend, in return for a bridge
    day."""
    found = getattr(_of_country(country, subdivision, year, ()), "weekend_workdays", ())
    return frozenset(day for day in found if day.year == year)


def _of_country(country: str, subdivision: str | None, year: int, categories: tuple[str, ...]) -> Any:
    return _library().country_holidays(
        country,
        subdiv=subdivision,
        years=year,
        expand=False,
        language=_language(country),
        categories=categories or None,
    )


@lru_cache(maxsize=_YEARS_KEPT)
def holidays_of_exchange(exchange: str, year: int) -> Days:
    """The days of a year on which an exchange is closed, weekends aside."""
    return tuple(sorted(_library().financial_holidays(exchange, years=year, expand=False).items()))


def _language(country: str) -> str | None:
    """English where there is a translation: everybody reads the same names."""
    supported = getattr(_library(), country).supported_languages
    return next((each for each in ("en_US", "en_GB", "en") if each in supported), None)


def _or(names: Iterable[str]) -> str:
    return " or ".join(names)

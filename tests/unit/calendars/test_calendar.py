"""What a calendar accepts, refuses, and answers."""

import subprocess
import sys
from datetime import date, timedelta
from typing import Any

import pytest

from scheduler_app.domain.calendars import (
    MAX_DATES,
    Calendar,
    NamedDate,
    days_of,
    holiday_data_key,
)
from scheduler_app.domain.errors import InvalidField

ALL_2027 = tuple(NamedDate(date(2027, 1, 1) + timedelta(days=day)) for day in range(365))

TOO_MANY = tuple(NamedDate(date(2000, 1, 1) + timedelta(days=day * 3)) for day in range(MAX_DATES + 1))


@pytest.mark.parametrize(
    ("given", "field", "words"),
    [
        ({"country": "Switzerlnd"}, "country", "perhaps CH (Switzerland)"),
        ({"country": "XX"}, "country", "ISO 3166"),
        ({"country": "CH", "subdivision": "Zuerich"}, "subdivision", "perhaps ZH"),
        ({"country": "CH", "subdivision": "qqq"}, "subdivision", "it has AG, AI"),
        ({"country": "VA", "subdivision": "X"}, "subdivision", "leave subdivision out"),
        ({"subdivision": "ZH"}, "subdivision", "give country too"),
        ({"exchange": "NYS"}, "exchange", "NYSE"),
        ({"weekend": tuple(range(7))}, "weekend", "all seven days"),
        ({"weekend": (7,)}, "weekend", "days of the week"),
        ({"weekend": ()}, "dates", "no day is closed"),
        ({"dates": ALL_2027}, "dates", "every day of 2027"),
        ({"dates": (NamedDate(date(1969, 12, 31)),)}, "dates", "1970 to 2100"),
        ({"dates": (NamedDate(date(2027, 1, 1), "x" * 201),)}, "dates", "200 characters"),
        ({"dates": TOO_MANY},
         "dates", "2000 at most"),
    ],
)  # fmt: skip
def test_a_wrong_calendar_is_refused_with_its_field_and_the_remedy(
    given: dict[str, Any], field: str, words: str
) -> None:
    with pytest.raises(InvalidField) as refused:
        Calendar.of(**given)
    assert refused.value.field == field
    assert words in refused.value.message


def test_a_year_of_dates_and_weekends_together_is_refused_too() -> None:
    weekdays = tuple(each for each in ALL_2027 if each.date.weekday() < 5)
    with pytest.raises(InvalidField, match="every day of 2027"):
        Calendar.of(dates=weekdays)
    assert Calendar.of(dates=weekdays[1:])


def test_names_become_codes() -> None:
    assert Calendar.of(country="switzerland", subdivision="Zürich") == Calendar.of(
        country="ch", subdivision="CH-ZH"
    )
    assert Calendar.of(exchange="nyse").exchange == "NYSE"


def test_days_are_the_union_with_their_names_and_kinds() -> None:
    calendar = Calendar.of(
        dates=(NamedDate(date(2027, 1, 2), "Berchtoldstag"), NamedDate(date(2027, 1, 1), "Our day")),
        country="CH",
    )
    found = [
        (f"{each.date}", each.name, each.kind.value)
        for each in days_of(calendar).days(date(2026, 12, 31), date(2027, 1, 4))
    ]
    assert found == [
        ("2027-01-01", "Our day; New Year's Day", "holiday"),
        ("2027-01-02", "Berchtoldstag", "holiday"),
        ("2027-01-03", "Sunday", "weekend"),
    ]
    assert days_of(calendar).day(date(2027, 1, 4)) is None


def test_only_weekends_are_closed_beyond_the_years_that_are_known() -> None:
    days = days_of(Calendar.of(country="US"))
    assert days.day(date(2101, 12, 25)) is not None  # a Sunday
    assert days.day(date(2102, 12, 25)) is None
    assert days.day(date(1969, 12, 25)) is None


def test_releases_of_the_data_sort_as_text() -> None:
    assert (
        holiday_data_key("0.99")
        < holiday_data_key("0.109")
        < holiday_data_key("0.109.1")
        < holiday_data_key("1.0")
    )


def test_the_library_is_loaded_only_for_a_calendar_that_needs_it() -> None:
    code = (
        "import sys; from datetime import date; from scheduler_app.domain.calendars import *; "
        "list(days_of(Calendar.of()).days(date(2027, 1, 1), date(2027, 2, 1))); "
        "print('holidays' in sys.modules); Calendar.of(country='CH'); print('holidays' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["False", "True"]

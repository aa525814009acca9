"""An iCalendar file of holidays is read as days with names, within bounds."""

from datetime import date

import pytest

from scheduler_app.domain.errors import InvalidField
from scheduler_app.ics import TooLarge, closed_days
from scheduler_app.ics.reading import YEARS_AHEAD
from tests.unit.ics.calendars import NOW, event, file


def test_days_have_the_names_of_their_events() -> None:
    text = file(
        event("DTSTART;VALUE=DATE:20261224\nDTEND;VALUE=DATE:20261227", uid="x"),
        event("DTSTART;VALUE=DATE:20270102", uid="y"),
        event("DTSTART;VALUE=DATE:20270103\nSTATUS:CANCELLED", uid="z"),
        head="X-WR-TIMEZONE:Pacific/Auckland\n",
    )
    assert closed_days(text, NOW, most=10) == [
        (date(2026, 12, 24), "Thing x"),
        (date(2026, 12, 25), "Thing x"),
        (date(2026, 12, 26), "Thing x"),
        (date(2027, 1, 2), "Thing y"),
    ]


def test_what_recurs_is_read_for_twenty_years() -> None:
    found = closed_days(file(event("DTSTART;VALUE=DATE:19800801\nRRULE:FREQ=YEARLY")), NOW, most=100)
    assert [day for day, _ in found] == [date(year, 8, 1) for year in range(2026, 2026 + YEARS_AHEAD + 1)]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("DTSTART:20270101T080000Z", "has a time"),
        ("DTSTART;VALUE=DATE:20270101\nDTEND;VALUE=DATE:20270101", "1 to 366 days"),
        ("DTSTART;VALUE=DATE:20270101\nDTEND;VALUE=DATE:20290101", "1 to 366 days"),
        ("SUMMARY:no start", "is missing"),
    ],
)
def test_what_is_no_day_is_refused_by_the_event_s_name(lines: str, words: str) -> None:
    with pytest.raises(InvalidField) as refused:
        closed_days(file(event(lines)), NOW, most=10)
    assert refused.value.field == "ics"
    assert "Thing 1" in refused.value.message
    assert words in refused.value.message


def test_too_many_days_are_refused() -> None:
    for lines in ("RRULE:FREQ=DAILY", "DTEND;VALUE=DATE:20270301"):
        with pytest.raises(TooLarge):
            closed_days(file(event(f"DTSTART;VALUE=DATE:20261225\n{lines}")), NOW, most=50)

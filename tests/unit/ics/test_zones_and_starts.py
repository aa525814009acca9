"""What a file defines goes before what it names, and a DTSTART before its rule."""

from datetime import UTC, datetime

import pytest

from scheduler_app.domain.recurrence import Recurrence
from scheduler_app.ics import CalendarItem, read_items
from tests.unit.ics.calendars import NOW, event, file

END = datetime(2060, 1, 1, tzinfo=UTC)


def definition(tzid: str, *parts: str, location: str = "") -> str:
    place = f"X-LIC-LOCATION:{location}\n" if location else ""
    return f"BEGIN:VTIMEZONE\nTZID:{tzid}\n{place}{''.join(parts)}END:VTIMEZONE\n"


def part(kind: str, before: str, after: str, start: str, rule: str = "") -> str:
    rules = f"RRULE:{rule}\n" if rule else ""
    return f"BEGIN:{kind}\nDTSTART:{start}\nTZOFFSETFROM:{before}\nTZOFFSETTO:{after}\n{rules}END:{kind}\n"


SUMMER = part("DAYLIGHT", "+0100", "+0200", "19810329T020000", "FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU")
WINTER = part("STANDARD", "+0200", "+0100", "19961027T030000", "FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU")
FIXED = part("STANDARD", "+0300", "+0300", "19700101T000000")
ODD = part("STANDARD", "+0342", "+0342", "19700101T000000")


def read(text: str) -> CalendarItem:
    (item,) = read_items(text, timezone="UTC", now=NOW)
    assert item.outcome == "schedules", item
    return item


def times(item: CalendarItem, count: int = 4) -> list[str]:
    (series,) = item.series
    found = Recurrence.parse(series.recurrence, created_at=NOW).between(NOW, END, count)
    return [f"{each:%Y-%m-%dT%H:%M}" for each in found]


def series(*lines: str) -> str:
    return file(event("\n".join(lines)))


def cancelled(time: str) -> str:
    """The end of an event, and another one that cancels one of its occurrences, but for its end."""
    return f"END:VEVENT\nBEGIN:VEVENT\nUID:1\nRECURRENCE-ID:{time}\nSTATUS:CANCELLED\nDTSTART:{time}"


def in_zone(zone: str, tzid: str = "Europe/Zurich") -> CalendarItem:
    return read(file(zone, event(f"DTSTART;TZID={tzid}:20400702T090000")))


def test_a_definition_that_says_what_the_name_says_needs_no_word() -> None:
    item = in_zone(definition("Europe/Zurich", SUMMER, WINTER))
    assert times(item) == ["2040-07-02T07:00"]
    assert item.series[0].timezone == "Europe/Zurich"
    assert not item.notes


@pytest.mark.parametrize(
    ("tzid", "location"),
    [("Europe/Zurich", ""), ("W. Europe Standard Time", ""), ("Our office", "Europe/Zurich")],
)
def test_a_definition_that_differs_from_its_name_is_followed_with_a_note(tzid: str, location: str) -> None:
    item = in_zone(definition(tzid, FIXED, location=location), tzid)
    assert times(item) == ["2040-07-02T06:00"]
    (note,) = item.notes
    assert f"The file defines {tzid!r} with other offsets than Europe/" in note
    assert item.series[0].timezone in note


def test_a_definition_that_no_known_zone_has_is_named_and_the_name_taken() -> None:
    item = in_zone(definition("Europe/Zurich", ODD))
    assert times(item) == ["2040-07-02T07:00"]
    (note,) = item.notes
    assert "no known zone has these: it is read as Europe/Zurich all the same" in note


def test_a_definition_that_cannot_be_read_is_named_and_the_name_taken() -> None:
    item = in_zone(definition("Europe/Zurich", FIXED.replace("+0300", "three")))
    assert times(item) == ["2040-07-02T07:00"]
    assert "is not used" in item.notes[0]


def test_a_dtstart_outside_its_rule_counts_as_the_first_occurrence() -> None:
    monday = "RRULE:FREQ=WEEKLY;BYDAY=MO;COUNT=3"
    item = read(series("DTSTART:20400704T090000Z", monday))  # a Wednesday
    assert times(item) == ["2040-07-04T09:00", "2040-07-09T09:00", "2040-07-16T09:00"]
    (note,) = item.notes
    assert "DTSTART, 2040-07-04 09:00 in UTC, is none of its rule's times" in note
    only = read(series("DTSTART:20400704T090000Z", "RRULE:FREQ=WEEKLY;BYDAY=MO;COUNT=1"))
    assert times(only) == ["2040-07-04T09:00"]
    own = read(series("DTSTART:20400709T090000Z", monday))
    assert times(own) == ["2040-07-09T09:00", "2040-07-16T09:00", "2040-07-23T09:00"]
    assert not own.notes


@pytest.mark.parametrize(
    "gone",
    [
        "EXDATE:20400704T090000Z",
        "EXDATE;VALUE=DATE:20400704",
        cancelled("20400704T090000Z"),
    ],
)
def test_a_dtstart_outside_its_rule_may_be_taken_away_again(gone: str) -> None:
    rule = "RRULE:FREQ=WEEKLY;BYDAY=MO;UNTIL=20400720T000000Z"
    assert times(read(series("DTSTART:20400704T090000Z", rule, gone))) == [
        "2040-07-09T09:00",
        "2040-07-16T09:00",
    ]


def test_a_date_of_its_own_that_the_file_cancels_does_not_occur() -> None:
    item = read(series("DTSTART:20400704T090000Z", "RDATE:20400710T090000Z", cancelled("20400710T090000Z")))
    assert times(item) == ["2040-07-04T09:00"]

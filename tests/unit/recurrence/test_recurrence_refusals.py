"""What a refusal says to the person who wrote the rule: in their own words, with what would be right."""

from datetime import UTC, datetime
from typing import Any

import pytest

from scheduler_app.domain.recurrence import InvalidRecurrence, Recurrence

CREATED = datetime(2026, 1, 1, tzinfo=UTC)
CRON = [
    "0 9 * * 1-5",
    "0 9 * * mon,tue,wed,thu,fri",
    "*/15 * * * *",
    "30 8 1,15 jan-mar *",
    "0 9 L * ?",
    "0 9 15W * *",
    "0 9 * * 1#2",
    "0 0 9 * * 1-5",
    "61 9 * * *",
    "@daily",
    "@Hourly",
    "@reboot",
]
REFUSED = [
    ("every day at 9", "RRULE", "'every day at 9' is not a recurrence rule"),
    ("daily", "RRULE", "FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0"),
    ("Rate(5 Minutes)", "RRULE", "'Rate(5 Minutes)'"),
    ("FREQ:DAILY", "RRULE", "write FREQ=DAILY"),
    ("FREQ=DAILY BYHOUR=9", "FREQ", "separate the parts with semicolons"),
    ("freq=daily,byhour=9", "FREQ", "separate the parts with semicolons"),
    ("freq=dayly", "FREQ", "dayly is not a frequency"),
    ("freq=daily;foo=1", "FOO", "is not a part of a rule"),
    ("freq=weekly;byday=monday", "BYDAY", "monday is not allowed"),
    ("freq=weekly;wkst=sunday", "WKST", "sunday is not a weekday"),
    ("freq=daily;byhour=nine", "BYHOUR", "nine is not allowed"),
    ("FREQ=DAILY;;BYHOUR=9", "RRULE", "two semicolons"),
    ("RRULE:RRULE:FREQ=DAILY", "RRULE", "write RRULE: once"),
    ("FREQ=DAILY;EXDATE=20260105T090000Z", "EXDATE", "belongs on a line of its own"),
    ("DTSTART;TZID=europe/atlantis:20260101T000000\nFREQ=DAILY", "TZID", "'europe/atlantis'"),
    ("DTSTART:2026-01-05T09:00:00Z\nFREQ=DAILY", "DTSTART", "write 20260105T090000Z"),
    ("DTSTART:2026-01-05\nFREQ=DAILY", "DTSTART", "write 20260105"),
    ("FREQ=DAILY;UNTIL=2026-12-31T23:59:59Z", "UNTIL", "write 20261231T235959Z"),
    ("DTSTART:20260105T090000+0100\nFREQ=DAILY", "DTSTART", "an offset cannot be written here"),
    ("DTSTART:tomorrow\nFREQ=DAILY", "DTSTART", "tomorrow is not a date"),
    ("summary:lunch\nFREQ=DAILY", "RRULE", "'summary:lunch' is not a line"),
    ("DTSTART;TZID=Europe/Paris:20260101\nFREQ=DAILY", "DTSTART", "TZID cannot stand beside a date"),
    ("DTSTART;TZID=Europe/Paris;VALUE=DATE:20260101\nFREQ=DAILY", "DTSTART", "leave out the TZID"),
    ("FREQ=DAILY\nEXDATE;TZID=Europe/Paris;VALUE=DATE:20260101", "EXDATE", "leave out the TZID"),
    ("FREQ=DAILY\nRDATE;TZID=Europe/Paris:20260101", "RDATE", "give a time"),
]


def refusal(text: str) -> InvalidRecurrence:
    with pytest.raises(InvalidRecurrence) as caught:
        Recurrence.parse(text, created_at=CREATED)
    return caught.value


@pytest.mark.parametrize("cron", CRON)
def test_a_cron_expression_is_sent_to_its_own_field(cron: str) -> None:
    error = refusal(cron)
    assert error.part == "RRULE"
    assert error.message == f"{cron!r} is a cron expression; give it as the field cron in the place of rrule"


@pytest.mark.parametrize(("text", "part", "words"), REFUSED)
def test_a_refusal_shows_what_was_written_and_what_would_be_right(text: str, part: str, words: str) -> None:
    error = refusal(text)
    assert error.part == part
    assert words in error.message


@pytest.mark.parametrize("text", [text for text, _, _ in REFUSED])
def test_a_refusal_names_its_part_once(text: str) -> None:
    error = refusal(text)
    assert error.field == "rrule"
    assert error.message.startswith(f"{error.part}: ") == (error.part != "RRULE")
    assert not error.message.startswith(f"{error.part}: {error.part}: ")


@pytest.mark.parametrize("name", ["timezone", "gap", "overlap"])
def test_a_choice_beside_the_rule_is_a_field_of_its_own(name: str) -> None:
    choice: dict[str, Any] = {name: "Mars/Phobos"}
    with pytest.raises(InvalidRecurrence) as caught:
        Recurrence.parse("FREQ=DAILY", created_at=CREATED, **choice)
    assert caught.value.field == name
    assert caught.value.message.startswith("'Mars/Phobos' is not")


def test_a_long_text_is_not_repeated_whole() -> None:
    for text in (
        "x" * 60_000,
        "every day " * 5_000,
        "0 9 * * " + "1," * 20_000,
        "FREQ=DAILY;UNTIL=" + "2-" * 20_000,
    ):
        assert len(refusal(text).message) < 400

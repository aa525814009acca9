"""Warnings, and what is described without words of our own."""

from datetime import UTC, datetime

import pytest

from scheduler_app.domain.recurrence import Recurrence

CREATED = datetime(2026, 1, 1, 8, 30, 30, tzinfo=UTC)
START = "DTSTART:20260105T093000Z\nRRULE:"
WARNINGS = [
    ("FREQ=MONTHLY;BYMONTHDAY=31", "Not every month has a day 31"),
    ("DTSTART:20260131T093000Z\nRRULE:FREQ=MONTHLY", "Not every month has a day 31"),
    ("FREQ=MONTHLY;BYMONTHDAY=-31", "day 31 from the end"),
    ("FREQ=YEARLY;BYMONTH=1,4;BYMONTHDAY=31", "Not every month of BYMONTH has a day 31"),
    ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", "29 February exists only in leap years"),
    ("DTSTART:20240229T093000Z\nRRULE:FREQ=YEARLY", "29 February exists only in leap years"),
    ("FREQ=YEARLY;BYYEARDAY=366", "Only leap years have a day 366"),
    ("FREQ=YEARLY;BYWEEKNO=53;BYDAY=MO", "Only some years have a week 53"),
    ("FREQ=YEARLY;BYMONTHDAY=15", "add BYMONTH to choose one"),
    ("FREQ=YEARLY;BYWEEKNO=20", "all seven days"),
    (START + "FREQ=WEEKLY;BYDAY=TU", "DTSTART does not satisfy the rule"),
    (START + "FREQ=DAILY;UNTIL=20250101T000000Z", "UNTIL lies before DTSTART"),
    (START + "FREQ=DAILY;UNTIL=20250101T000000Z", "There are no occurrences at all"),
    (START + "FREQ=DAILY;COUNT=3\nEXDATE:20260106T093000Z", "takes away 1 of the 3 occurrences"),
    (START + "FREQ=DAILY\nEXDATE:20260106T100000Z", "takes nothing away"),
    (START + "FREQ=DAILY\nEXDATE:20260106", "every occurrence of that local day"),
    (START + "FREQ=DAILY\nRDATE:20260106", "read as midnight"),
    ("FREQ=DAILY;UNTIL=20260301", "end of that local day"),
    ("FREQ=DAILY;BYHOUR=8;BYMINUTE=0", "add BYSECOND=0"),
    ("DTSTART:20200101T000000Z\nRRULE:FREQ=DAILY;COUNT=5", "All occurrences lie in the past"),
    ("DTSTART:20200101T000000Z\nRRULE:FREQ=DAILY;UNTIL=20251231T000000Z", "All occurrences lie in the past"),
    ("DTSTART:20200101T000000Z", "All occurrences lie in the past"),
]
QUIET = [
    "FREQ=DAILY",
    START + "FREQ=DAILY;COUNT=5",
    START + "FREQ=MONTHLY;BYMONTHDAY=5",
    START + "FREQ=MONTHLY;BYMONTHDAY=-1,5",
    START + "FREQ=WEEKLY;BYDAY=MO,WE\nEXDATE:20260107T093000Z",
    START + "FREQ=YEARLY;BYMONTH=1;BYMONTHDAY=5",
    "FREQ=DAILY;BYHOUR=8;BYMINUTE=0;BYSECOND=0",
]


@pytest.mark.parametrize(("text", "words"), WARNINGS)
def test_what_surprises_is_said(text: str, words: str) -> None:
    warnings = Recurrence.parse(text, created_at=CREATED).warnings
    assert any(words in warning for warning in warnings), warnings


@pytest.mark.parametrize("text", QUIET)
def test_what_does_not_surprise_is_not_warned_of(text: str) -> None:
    assert Recurrence.parse(text, created_at=CREATED).warnings == ()


def test_a_timezone_that_dtstart_overrules_is_mentioned() -> None:
    found = Recurrence.parse(START + "FREQ=DAILY", created_at=CREATED, timezone="Asia/Tokyo")
    assert found.warnings == ("DTSTART is in UTC, so the schedule's timezone Asia/Tokyo is not used.",)


def test_a_rule_that_there_are_no_words_for_is_quoted() -> None:
    rule = "FREQ=MONTHLY;BYDAY=MO,TU;BYHOUR=9,17;BYMINUTE=0;BYSETPOS=-1,1"
    assert Recurrence.parse(START + rule, created_at=CREATED).description == (
        f"As the rule {rule} says (UTC), from 5 January 2026 at 09:30 on"
    )
    hours = ",".join(str(hour) for hour in (1, 3, 4, 6, 7, 9, 11, 12, 14, 16, 18, 20, 21, 23))
    minutes = ",".join(str(minute) for minute in range(60) if minute % 7)
    long = f"FREQ=DAILY;BYHOUR={hours};BYMINUTE={minutes};BYSECOND={minutes}"
    described = Recurrence.parse(START + long, created_at=CREATED).description
    assert described.startswith("As the rule FREQ=DAILY;BYHOUR=1,3,4")
    assert len(described) < 400

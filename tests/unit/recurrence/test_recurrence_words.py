"""Warnings and descriptions."""

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
    ("FREQ=YEARLY;BYMONTHDAY=15", "fires in DTSTART's month, BYMONTH=1, once a year"),
    ("FREQ=YEARLY;BYWEEKNO=20", "fires on DTSTART's day of the week, TH"),
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
SENTENCES = [
    (START + "FREQ=DAILY", "Every day at 09:30 (UTC)"),
    (START + "FREQ=DAILY;INTERVAL=2;COUNT=3", "Every 2 days at 09:30 (UTC), 3 times"),
    (START + "FREQ=WEEKLY", "Every week on Monday at 09:30 (UTC)"),
    (START + "FREQ=WEEKLY;BYDAY=FR,MO", "Every week on Monday and Friday at 09:30 (UTC)"),
    (START + "FREQ=MONTHLY", "Every month on day 5 at 09:30 (UTC)"),
    (
        START + "FREQ=MONTHLY;BYMONTHDAY=1,15,-1",
        "Every month on day 1, day 15 and the last day at 09:30 (UTC)",
    ),
    (
        START + "FREQ=MONTHLY;BYDAY=-1FR,1MO",
        "Every month on the last Friday and the first Monday at 09:30 (UTC)",
    ),
    (START + "FREQ=YEARLY", "Every year on day 5 of January at 09:30 (UTC)"),
    (
        START + "FREQ=YEARLY;BYMONTH=11;BYDAY=4TH",
        "Every year on the fourth Thursday in November at 09:30 (UTC)",
    ),
    (START + "FREQ=DAILY;UNTIL=20260110T093000Z", "Every day at 09:30 (UTC), until 10 January 2026 at 09:30"),
    (START + "FREQ=HOURLY;INTERVAL=3", "Every 3 hours, counted from 5 January 2026 at 09:30 (UTC)"),
    (START + "FREQ=DAILY\nEXDATE:20260106T093000Z", "Every day at 09:30 (UTC), except for 1 date"),
    (START + "FREQ=DAILY\nRDATE:20260106T113000Z", "Every day at 09:30 (UTC), and on 1 more date"),
    ("DTSTART:20260105T093007Z", "Once, on 5 January 2026 at 09:30:07 (UTC)"),
]
SKIPPED = [
    (
        "MONTHLY;BYMONTHDAY=31;SKIP=BACKWARD",
        "Every month on day 31, or where that is missing the day before, at",
    ),
    (
        "MONTHLY;BYMONTHDAY=30;SKIP=FORWARD",
        "Every month on day 30, or where that is missing the day after, at",
    ),
    ("MONTHLY;BYMONTHDAY=28;SKIP=FORWARD", "Every month on day 28 at"),
]
UNCLEAR = [
    "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=2",
    "FREQ=YEARLY;BYWEEKNO=20",
    "FREQ=YEARLY;BYDAY=20MO",
    "FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13",
    "FREQ=DAILY\nRRULE:FREQ=WEEKLY",
    "FREQ=DAILY\nEXRULE:FREQ=WEEKLY",
    "FREQ=MINUTELY;BYHOUR=9",
    "FREQ=DAILY;BYHOUR=1,2,3,4,5,6,7",
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


@pytest.mark.parametrize(("text", "sentence"), SENTENCES)
def test_an_ordinary_recurrence_is_a_sentence(text: str, sentence: str) -> None:
    assert Recurrence.parse(text, created_at=CREATED).description == sentence


@pytest.mark.parametrize("text", UNCLEAR)
def test_where_no_sentence_would_be_clear_the_rule_stands_for_itself(text: str) -> None:
    found = Recurrence.parse(text, created_at=CREATED)
    assert found.description == found.text


@pytest.mark.parametrize(("rule", "begins"), SKIPPED)
def test_a_sentence_says_where_skip_moves_a_day_that_is_missing(rule: str, begins: str) -> None:
    found = Recurrence.parse(f"{START}RSCALE=GREGORIAN;FREQ={rule}", created_at=CREATED)
    assert found.description.startswith(begins)
    assert not any("does not fire" in warning for warning in found.warnings)

"""Clock changes: gaps, overlaps, elapsed steps, and what `occurrences` says about them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduler_app.domain.recurrence import Recurrence

CREATED = datetime(2026, 1, 1, tzinfo=UTC)
SPRING = datetime(2026, 3, 8, tzinfo=UTC)
AUTUMN = datetime(2026, 11, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def new_york(start: str, rule: str, **choices: Any) -> Recurrence:
    text = f"DTSTART;TZID=America/New_York:{start}\nRRULE:{rule}"
    return Recurrence.parse(text, created_at=CREATED, **choices)


def shown(instants: list[datetime]) -> str:
    return " ".join(instant.strftime("%H:%M") for instant in instants)


def test_every_15_minutes_runs_through_the_gap_without_a_repeat() -> None:
    recurrence = new_york("20260308T013000", "FREQ=MINUTELY;INTERVAL=15")
    found = recurrence.between(SPRING, SPRING + timedelta(hours=8, minutes=1))
    assert shown(found) == "06:30 06:45 07:00 07:15 07:30 07:45 08:00"


def test_every_hour_runs_through_the_gap_without_a_repeat() -> None:
    recurrence = new_york("20260308T003000", "FREQ=HOURLY")
    assert shown(recurrence.between(SPRING, SPRING + DAY, 4)) == "05:30 06:30 07:30 08:30"


def test_every_hour_runs_through_the_overlap_without_a_loss() -> None:
    recurrence = new_york("20261101T003000", "FREQ=HOURLY")
    found = recurrence.occurrences(AUTUMN, AUTUMN + DAY, 4)
    assert shown([one.instant for one in found]) == "04:30 05:30 06:30 07:30"
    assert [one.dst for one in found] == [None, "overlap_first", "overlap_last", None]
    assert [one.local.strftime("%H:%M %z") for one in found[1:3]] == ["01:30 -0400", "01:30 -0500"]


def test_a_daily_rule_at_half_past_two_fires_once_on_the_gap_day_and_counts() -> None:
    recurrence = new_york("20260307T023000", "FREQ=DAILY;COUNT=3")
    found = recurrence.occurrences(SPRING - 2 * DAY, SPRING + 9 * DAY)
    assert [one.instant.strftime("%d %H:%M") for one in found] == ["07 07:30", "08 07:30", "09 06:30"]
    assert [one.local.strftime("%d %H:%M") for one in found] == ["07 02:30", "08 03:30", "09 02:30"]
    assert [one.dst for one in found] == [None, "gap_shifted", None]


def test_a_skipped_gap_neither_fires_nor_counts() -> None:
    recurrence = new_york("20260307T023000", "FREQ=DAILY;COUNT=3", gap="skip")
    found = recurrence.between(SPRING - 2 * DAY, SPRING + 9 * DAY)
    assert [instant.strftime("%d %H:%M") for instant in found] == ["07 07:30", "09 06:30", "10 06:30"]


@pytest.mark.parametrize(
    ("overlap", "hour", "dst"), [("first", 5, "overlap_first"), ("last", 6, "overlap_last")]
)
def test_a_daily_rule_at_half_past_one_fires_once_on_the_overlap_day(
    overlap: str, hour: int, dst: str
) -> None:
    recurrence = new_york("20261031T013000", "FREQ=DAILY", overlap=overlap)
    found = recurrence.occurrences(AUTUMN, AUTUMN + DAY)
    assert [(one.instant, one.dst) for one in found] == [(AUTUMN + timedelta(hours=hour, minutes=30), dst)]


def test_a_shifted_time_that_meets_an_ordinary_one_is_one_occurrence() -> None:
    recurrence = new_york("20260307T023000", "FREQ=DAILY;BYHOUR=2,3")
    found = recurrence.occurrences(SPRING, SPRING + DAY)
    assert [(shown([one.instant]), one.dst) for one in found] == [("07:30", None)]


def test_shifted_times_come_out_in_order_among_those_after_the_gap() -> None:
    recurrence = new_york("20260308T000000", "FREQ=DAILY;BYHOUR=2,3;BYMINUTE=10,40;COUNT=6")
    assert shown(recurrence.between(SPRING, SPRING + DAY)) == "07:10 07:40"
    mixed = new_york("20260308T000000", "FREQ=DAILY;BYHOUR=2,3;BYMINUTE=20;BYSECOND=0")
    assert shown(mixed.between(SPRING, SPRING + DAY)) == "07:20"
    quarters = new_york("20260308T023000", "FREQ=DAILY;BYHOUR=2,3;BYMINUTE=30,45")
    assert shown(quarters.between(SPRING, SPRING + DAY)) == "07:30 07:45"


def test_a_position_is_counted_without_times_that_are_skipped() -> None:
    rule = "FREQ=DAILY;BYHOUR=1,2,5;BYSETPOS=2"
    assert shown(new_york("20260308T003000", rule).between(SPRING, SPRING + DAY)) == "07:30"
    assert shown(new_york("20260308T003000", rule, gap="skip").between(SPRING, SPRING + DAY)) == "09:30"


def test_hours_are_tested_on_the_local_clock_of_each_elapsed_step() -> None:
    recurrence = new_york("20261031T010000", "FREQ=HOURLY;BYHOUR=1")
    found = recurrence.between(AUTUMN - DAY, AUTUMN + DAY)
    assert [instant.strftime("%d %H:%M") for instant in found] == ["31 05:00", "01 05:00", "01 06:00"]


def test_lord_howe_moves_by_half_an_hour_and_elapsed_hours_do_not() -> None:
    text = "DTSTART;TZID=Australia/Lord_Howe:20261004T003000\nRRULE:FREQ=HOURLY"
    recurrence = Recurrence.parse(text, created_at=CREATED)
    found = recurrence.occurrences(CREATED, CREATED + 999 * DAY, 4)
    assert [one.local.strftime("%H:%M") for one in found] == ["00:30", "01:30", "03:00", "04:00"]


def test_apias_lost_day_is_one_occurrence_with_the_day_after_it() -> None:
    text = "DTSTART;TZID=Pacific/Apia:20111229T090000\nRRULE:FREQ=DAILY"
    recurrence = Recurrence.parse(text, created_at=CREATED)
    found = recurrence.occurrences(recurrence.dtstart, CREATED, 3)
    assert [one.local.strftime("%Y-%m-%d") for one in found] == ["2011-12-29", "2011-12-31", "2012-01-01"]
    assert [one.instant.strftime("%d %H:%M") for one in found] == ["29 19:00", "30 19:00", "31 19:00"]


@pytest.mark.parametrize(
    ("rule", "first"),
    [
        ("FREQ=HOURLY;BYMONTH=7", datetime(2026, 7, 1, 4, tzinfo=UTC)),
        ("FREQ=HOURLY;BYMONTHDAY=1;BYMONTH=12", datetime(2026, 12, 1, 5, tzinfo=UTC)),
        ("FREQ=MINUTELY;BYMONTH=7;BYHOUR=0", datetime(2026, 7, 1, 4, tzinfo=UTC)),
        ("FREQ=SECONDLY;BYYEARDAY=182", datetime(2026, 7, 1, 4, tzinfo=UTC)),
    ],
)
def test_a_day_that_lies_beyond_a_clock_change_is_entered_at_its_first_hour(
    rule: str, first: datetime
) -> None:
    assert new_york("20260115T000000", rule).after(CREATED) == first


def test_elapsed_steps_from_before_standard_time_keep_their_seconds_and_their_hours() -> None:
    # Dublin Mean Time was 25 minutes and 21 seconds behind: 07:30:00 there was 07:55:21 UTC.
    text = "DTSTART;TZID=Europe/Dublin:19080715T073000\nRRULE:FREQ=HOURLY;BYHOUR=9"
    recurrence = Recurrence.parse(text, created_at=CREATED)
    assert recurrence.after(CREATED) == datetime(2026, 1, 1, 9, 55, 21, tzinfo=UTC)
    assert recurrence.after(CREATED + 181 * DAY) == datetime(2026, 7, 1, 8, 55, 21, tzinfo=UTC)


@pytest.mark.parametrize(
    ("given_at", "overlap", "first"),
    [
        # New York repeats 01:00 to 02:00: these are 01:30 of the first pass, and of the second.
        ("2026-11-01T05:30:00Z", "last", ["01 06:15", "01 06:45", "02 06:15"]),
        ("2026-11-01T05:30:00Z", "first", ["01 05:45", "02 06:15", "02 06:45"]),
        ("2026-11-01T06:30:00Z", "last", ["01 06:45", "02 06:15", "02 06:45"]),
        ("2026-11-01T06:30:00Z", "first", ["02 06:15", "02 06:45", "03 06:15"]),
    ],
)
def test_a_rule_without_a_dtstart_that_is_given_in_a_repeated_hour_loses_nothing_that_is_to_come(
    given_at: str, overlap: str, first: list[str]
) -> None:
    given = datetime.fromisoformat(given_at)
    rule = "FREQ=DAILY;BYHOUR=1;BYMINUTE=15,45;BYSECOND=0;COUNT=3"
    found = Recurrence.parse(rule, created_at=given, timezone="America/New_York", overlap=overlap)
    listed = found.between(given, given + 9 * DAY)
    assert [instant.strftime("%d %H:%M") for instant in listed] == first
    assert (
        Recurrence.parse(found.text, created_at=given, overlap=overlap).between(given, given + 9 * DAY)
        == listed
    )

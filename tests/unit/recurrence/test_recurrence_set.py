"""Sets: several rules, dates and exceptions, each with its own zone."""

from datetime import UTC, datetime, timedelta

from scheduler_app.domain.recurrence import Recurrence

CREATED = datetime(2026, 1, 1, tzinfo=UTC)
START = "DTSTART:20260105T090000Z"


def days(*lines: str, until: int = 60) -> list[str]:
    recurrence = Recurrence.parse("\n".join(lines), created_at=CREATED)
    found = recurrence.between(CREATED - timedelta(days=9), CREATED + timedelta(days=until))
    assert found == sorted(set(found))
    return [instant.strftime("%m-%d %H:%M") for instant in found]


def test_equal_instants_of_several_rules_and_dates_are_one() -> None:
    found = days(START, "RRULE:FREQ=WEEKLY;COUNT=2", "RRULE:FREQ=DAILY;COUNT=2", "RDATE:20260106T090000Z")
    assert found == ["01-05 09:00", "01-06 09:00", "01-12 09:00"]


def test_rdate_adds_and_exdate_takes_away_exactly_one() -> None:
    lines = [START, "RRULE:FREQ=DAILY;COUNT=3", "RDATE;TZID=Asia/Tokyo:20260106T090000"]
    assert days(*lines) == ["01-05 09:00", "01-06 00:00", "01-06 09:00", "01-07 09:00"]
    assert days(*lines, "EXDATE;TZID=America/New_York:20260106T040000") == [
        "01-05 09:00",
        "01-06 00:00",
        "01-07 09:00",
    ]


def test_exdate_takes_away_an_rdate_too() -> None:
    found = days(START, "RRULE:FREQ=DAILY;COUNT=1", "RDATE:20260110T090000Z", "EXDATE:20260110T090000Z")
    assert found == ["01-05 09:00"]


def test_exrule_takes_away_what_it_gives() -> None:
    found = days(START, "RRULE:FREQ=DAILY;COUNT=9", "EXRULE:FREQ=WEEKLY;BYDAY=SA,SU")
    assert found == [f"01-{day:02d} 09:00" for day in (5, 6, 7, 8, 9, 12, 13)]


def test_an_exdate_without_a_time_takes_away_the_local_day() -> None:
    found = days(
        "DTSTART;TZID=America/New_York:20260105T200000",
        "RRULE:FREQ=HOURLY;INTERVAL=3;COUNT=6",
        "EXDATE:20260105",
    )
    assert found == ["01-06 07:00", "01-06 10:00", "01-06 13:00", "01-06 16:00"]


def test_dates_alone_are_a_recurrence_and_so_is_a_start_alone() -> None:
    assert days("RDATE:20260110T090000Z,20260108T090000Z") == ["01-08 09:00", "01-10 09:00"]
    assert days(START) == ["01-05 09:00"]
    assert days(START, "RDATE:20260110T090000Z") == ["01-05 09:00", "01-10 09:00"]
    assert days("DTSTART;VALUE=DATE:20260105", "RDATE;VALUE=DATE:20260107") == ["01-05 00:00", "01-07 00:00"]


def test_an_exdate_names_one_pass_of_an_hour_that_comes_twice() -> None:
    lines = ["DTSTART;TZID=America/New_York:20261101T003000", "RRULE:FREQ=HOURLY;COUNT=4"]
    found = days(*lines, "EXDATE;TZID=America/New_York:20261101T013000", until=400)
    assert found == ["11-01 04:30", "11-01 06:30", "11-01 07:30"]
    found = days(*lines, "EXDATE:20261101T063000Z", until=400)
    assert found == ["11-01 04:30", "11-01 05:30", "11-01 07:30"]


def test_a_moved_rdate_is_marked() -> None:
    text = "RDATE;TZID=America/New_York:20260308T023000,20260308T043000"
    found = Recurrence.parse(text, created_at=CREATED).occurrences(CREATED, CREATED + timedelta(days=99))
    assert [one.dst for one in found] == ["gap_shifted", None]
    skipping = Recurrence.parse(text, created_at=CREATED, gap="skip")
    assert len(skipping.between(CREATED, CREATED + timedelta(days=99))) == 1

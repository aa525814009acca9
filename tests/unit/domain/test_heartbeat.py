"""When a heartbeat is missed: over clock changes, holidays, runs that hang and runs that fail."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from scheduler_app.domain.calendars import Calendar, CalendarUse, NamedCalendar, NamedDate
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.heartbeat import Heartbeat, HeartbeatState, Ping, PingKind, new_heartbeat, ping_of
from scheduler_app.domain.ids import TENANT, WholeId
from scheduler_app.domain.triggers import TriggerContext, new_trigger

MADE = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND, MINUTE, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=1)


def heartbeat(
    at: datetime = MADE, *, calendar: CalendarUse | None = None, timezone: str = "UTC", **trigger: Any
) -> Heartbeat:
    made = Heartbeat(
        id=WholeId("backup"),
        trigger=new_trigger(trigger, TriggerContext(at, timezone=timezone)),
        calendar=calendar,
        grace_seconds=600.0,
        secret_sha256="",
        created_at=at,
        since=at,
    )
    return new_heartbeat(made, at)


def success(at: datetime) -> Ping:
    return Ping(at, PingKind.SUCCESS)


def missed_at(found: Heartbeat, now: datetime) -> datetime | None:
    return found.judged(now).missed_at


def test_the_night_in_which_the_clock_skips_its_hour() -> None:
    """On 29 March 2026, 02:30 does not exist in Zurich: the backup runs at 03:30, which is 01:30 UTC."""
    nightly = heartbeat(cron="30 2 * * *", timezone="Europe/Zurich")
    night = nightly.pinged(success(datetime(2026, 3, 28, 1, 31, tzinfo=UTC)))
    due = datetime(2026, 3, 29, 1, 30, tzinfo=UTC)
    assert night.due_at == due
    assert missed_at(night, due + 599 * SECOND) is None
    assert missed_at(night, due + 600 * SECOND) == due + 600 * SECOND
    pinged = night.pinged(success(due + MINUTE))
    assert pinged.due_at == datetime(2026, 3, 30, 0, 30, tzinfo=UTC)


def test_the_night_in_which_an_hour_comes_twice_asks_for_one_ping() -> None:
    """On 25 October 2026, 02:30 is 00:30 UTC, and again 01:30 UTC, in Zurich."""
    nightly = heartbeat(cron="30 2 * * *", timezone="Europe/Zurich")
    pinged = nightly.pinged(success(datetime(2026, 10, 25, 0, 31, tzinfo=UTC)))
    assert pinged.due_at == datetime(2026, 10, 26, 1, 30, tzinfo=UTC)


def test_no_ping_is_due_on_a_holiday() -> None:
    closed = Calendar.of(dates=(NamedDate(date(2026, 12, 25)),), weekend=())
    known = NamedCalendar(TENANT, "shop", closed, MADE, MADE)
    daily = heartbeat(cron="0 9 * * *", calendar=CalendarUse("shop", "skip", known=known))
    pinged = daily.pinged(success(datetime(2026, 12, 24, 9, 1, tzinfo=UTC)))
    assert pinged.due_at == datetime(2026, 12, 26, 9, tzinfo=UTC)
    open_again = replace(known, calendar=Calendar.of(dates=(), weekend=(6,)))
    changed = replace(pinged, calendar=CalendarUse("shop", "skip", known=open_again))
    assert missed_at(changed, datetime(2026, 12, 25, 10, tzinfo=UTC)), "the calendar has changed since"
    gone = replace(pinged, calendar=CalendarUse("shop", "skip"))
    assert "no calendar shop" in gone.judged(MADE).missed_why


def test_an_interval_counts_from_each_ping() -> None:
    hourly = heartbeat(every_seconds=3_600)
    assert hourly.due_at == MADE + timedelta(hours=1)
    pinged = hourly.pinged(success(MADE + 37 * MINUTE))
    assert pinged.due_at == MADE + 97 * MINUTE


def test_a_ping_by_a_clock_that_is_a_little_ahead_is_that_of_its_time() -> None:
    daily = heartbeat(cron="0 9 * * *").pinged(success(datetime(2026, 3, 1, 9, tzinfo=UTC)))
    early = daily.pinged(success(datetime(2026, 3, 2, 8, 59, 57, tzinfo=UTC)))
    assert early.due_at == datetime(2026, 3, 3, 9, tzinfo=UTC)
    other = daily.pinged(success(datetime(2026, 3, 2, 8, 59, tzinfo=UTC)))
    assert other.due_at == datetime(2026, 3, 2, 9, tzinfo=UTC)


def test_a_run_that_has_begun_must_end_within_the_grace_whatever_begins_after_it() -> None:
    daily = heartbeat(cron="0 9 * * *")
    began = datetime(2026, 3, 2, 9, 5, tzinfo=UTC)
    running = daily.pinged(Ping(began, PingKind.START))
    assert running.state is HeartbeatState.STARTED
    assert missed_at(running, began + 9 * MINUTE) is None
    again = running.pinged(Ping(began + 9 * MINUTE, PingKind.START))
    found = again.judged(began + 10 * MINUTE)
    assert (found.state, found.missed_at) == (HeartbeatState.MISSED, began + 10 * MINUTE)
    assert found.missed_why == "its run began at 2026-03-02T09:05:00Z and has not ended"
    assert found.pinged(success(began + 11 * MINUTE)).state is HeartbeatState.UP


def test_a_run_that_fails_is_missed_until_one_succeeds() -> None:
    daily = heartbeat(cron="0 9 * * *")
    failed = daily.pinged(Ping(MADE, PingKind.FAIL, 3))
    assert failed.missed_why == "its run failed with exit status 3 at 2026-03-01T12:00:00Z"
    assert failed.pinged(Ping(MADE + MINUTE, PingKind.FAIL)).missed_at == MADE
    assert failed.judged(MADE + DAY).missed_at == MADE
    assert failed.pinged(Ping(MADE + MINUTE, PingKind.START)).state is HeartbeatState.MISSED
    well = failed.pinged(success(MADE + MINUTE))
    assert (well.state, well.missed_why) == (HeartbeatState.UP, "")


def test_the_last_time_of_a_rule_is_the_last_one_asked_for() -> None:
    once = heartbeat(run_at=MADE + DAY)
    assert missed_at(once, MADE + 2 * DAY) == MADE + DAY + 600 * SECOND
    pinged = once.pinged(success(MADE + DAY + SECOND))
    assert (pinged.due_at, pinged.judged(MADE + 9 * DAY).look_at) == (None, None)
    with pytest.raises(InvalidField, match="names no time from now on"):
        heartbeat(rrule="DTSTART:20200101T000000Z\nRRULE:FREQ=DAILY;COUNT=3")


def test_an_edit_of_the_rule_counts_from_now_and_one_of_the_words_does_not() -> None:
    missed = heartbeat(cron="0 9 * * *").judged(MADE + DAY)
    assert missed.missed_at is not None
    now = MADE + 2 * DAY
    named = missed.edited(replace(missed, note="why"), now)
    assert (named.missed_at, named.look_at, named.revision) == (missed.missed_at, now, 2)
    other = missed.edited(replace(missed, trigger=heartbeat(now, cron="0 18 * * *").trigger), now)
    assert (other.missed_at, other.due_at) == (None, datetime(2026, 3, 3, 18, tzinfo=UTC))
    assert missed.edited(missed, now) is missed


@pytest.mark.parametrize(
    ("said", "kind", "status"),
    [
        ("", PingKind.SUCCESS, None),
        ("start", PingKind.START, None),
        ("fail", PingKind.FAIL, None),
        ("0", PingKind.SUCCESS, 0),
        ("255", PingKind.FAIL, 255),
    ],
)
def test_what_the_path_says(said: str, kind: PingKind, status: int | None) -> None:
    assert ping_of(said, MADE) == Ping(MADE, kind, status)


@pytest.mark.parametrize("said", ["256", "-1", "0001", "success", "²", "1.5", "Fail"])
def test_a_path_that_says_nothing_known(said: str) -> None:
    assert ping_of(said, MADE) is None

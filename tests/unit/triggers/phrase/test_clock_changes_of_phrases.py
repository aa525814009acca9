"""Phrases that are said, or fire, when clocks change; and phrases that name a zone."""

from datetime import UTC, datetime, timedelta

import pytest

from scheduler_app.domain.recurrence import Overlap, Recurrence
from scheduler_app.domain.triggers import TriggerContext, edited_trigger, new_trigger
from scheduler_app.domain.triggers.phrase.translation import translate

ZURICH = "Europe/Zurich"


def fires(
    phrase: str, at: str, timezone: str = ZURICH, overlap: Overlap = "first", limit: int = 3
) -> list[str]:
    said = datetime.fromisoformat(at)
    found = translate(phrase, TriggerContext(said, timezone, overlap=overlap))
    if found.instant is not None:
        return [f"{found.instant.astimezone(UTC):%m-%dT%H:%M}"]
    assert found.recurrence is not None
    recurrence = Recurrence.parse(found.recurrence, created_at=said, timezone=timezone, overlap=overlap)
    return [
        f"{each:%m-%dT%H:%M}" for each in recurrence.between(said, said + timedelta(days=400), limit=limit)
    ]


@pytest.mark.parametrize("at", ["2026-10-25T00:15:00Z", "2026-10-25T01:15:00Z"])
def test_an_interval_counts_from_the_hour_that_it_is_said_in(at: str) -> None:
    """02:15 comes twice in Zurich on that day; none of the three is lost."""
    said = datetime.fromisoformat(at)
    expected = [f"{said + step * timedelta(minutes=10):%m-%dT%H:%M}" for step in (1, 2, 3)]
    assert fires("every 10 minutes, 3 times", at, limit=5) == expected


def test_a_time_that_comes_twice_follows_the_choice_of_the_schedule() -> None:
    assert fires("on 25 october at 2:30", "2026-10-20T10:00:00Z") == ["10-25T00:30"]
    assert fires("on 25 october at 2:30", "2026-10-20T10:00:00Z", overlap="last") == ["10-25T01:30"]


def test_a_rule_that_begins_at_a_time_that_comes_twice_stays_on_the_wall_clock() -> None:
    assert fires("every other sunday at 2:30", "2026-10-24T10:00:00Z", overlap="last") == [
        "10-25T01:30",
        "11-08T01:30",
        "11-22T01:30",
    ]


def test_a_time_that_does_not_exist_is_shifted() -> None:
    assert fires("on 29 march at 2:30", "2026-03-20T10:00:00Z") == ["03-29T01:30"]


def test_a_daily_phrase_follows_the_wall_clock() -> None:
    assert fires("every day at 9", "2026-10-23T10:00:00Z") == ["10-24T07:00", "10-25T08:00", "10-26T08:00"]


def test_a_zone_in_the_phrase_displaces_the_schedules() -> None:
    assert fires("every day at 9 Tokyo time", "2026-10-23T10:00:00Z") == [
        "10-24T00:00",
        "10-25T00:00",
        "10-26T00:00",
    ]
    assert fires("tomorrow at 9am America/New_York", "2026-10-23T10:00:00Z") == ["10-24T13:00"]
    assert fires("every day at 9 until 25 october UTC", "2026-10-23T10:00:00Z") == [
        "10-24T09:00",
        "10-25T09:00",
    ]


@pytest.mark.parametrize(("phrase", "moves"), [("tomorrow at noon", False), ("every day at noon", True)])
def test_an_edit_of_the_timezone_moves_what_repeats_and_no_single_instant(phrase: str, moves: bool) -> None:
    said = datetime(2026, 10, 23, 10, tzinfo=UTC)
    trigger = new_trigger({"phrase": phrase}, TriggerContext(said, ZURICH))
    later = said + timedelta(days=3)
    edited = edited_trigger({}, trigger, TriggerContext(later, "Asia/Tokyo"), said)
    assert edited.timezone == "Asia/Tokyo"
    assert edited.instant == trigger.instant
    assert (edited.pinned != trigger.pinned) == moves


def test_today_is_the_zones_own_day() -> None:
    assert fires("tomorrow at noon", "2026-10-23T23:00:00Z") == ["10-25T11:00"]
    assert fires("tomorrow at noon", "2026-10-23T23:00:00Z", timezone="UTC") == ["10-24T12:00"]

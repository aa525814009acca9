"""Phrases that are said, or fire, when clocks change; and phrases that name a zone."""

from datetime import UTC, datetime, timedelta

import pytest

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.recurrence import Overlap, Recurrence, zone_data_version
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


@pytest.mark.parametrize("phrase", ["every day at 2:30", "every 2 days at 2:30", "every sunday at 2:30"])
@pytest.mark.parametrize("zone", ["", " Zurich time"])
@pytest.mark.parametrize(
    ("at", "overlap", "first"),
    [
        ("2026-10-25T00:45:00Z", "last", "10-25T01:30"),  # 02:45 comes for the first time
        ("2026-10-25T00:15:00Z", "last", "10-25T01:30"),
        ("2026-10-25T01:15:00Z", "last", "10-25T01:30"),
        ("2026-10-25T00:15:00Z", "first", "10-25T00:30"),
    ],
)
def test_what_is_said_in_a_repeated_hour_begins_in_it(
    phrase: str, zone: str, at: str, overlap: Overlap, first: str
) -> None:
    assert fires(f"{phrase}{zone}", at, overlap=overlap)[0] == first


def test_what_is_said_in_the_second_pass_of_an_hour_does_not_count_the_first() -> None:
    found = fires("every day at 2:30 Zurich time, 2 times", "2026-10-25T01:15:00Z", limit=5)
    assert found == ["10-26T01:30", "10-27T01:30"]


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


SAID = datetime(2026, 10, 23, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("phrase", "before", "after"),
    [
        ("tomorrow at noon", "2026-10-24T12:00:00+02:00", "2026-10-24T12:00:00+09:00"),
        ("in 3 days", "2026-10-26T12:00:00+01:00", "2026-10-26T12:00:00+09:00"),
        ("tomorrow at noon UTC", "2026-10-24T12:00:00+00:00", "2026-10-24T12:00:00+00:00"),
        ("tomorrow at noon New York time", "2026-10-24T12:00:00-04:00", "2026-10-24T12:00:00-04:00"),
        ("in 10 minutes", "2026-10-23T10:10:00+00:00", "2026-10-23T10:10:00+00:00"),
    ],
)
def test_a_single_local_time_keeps_its_date_and_time_in_another_timezone(
    phrase: str, before: str, after: str
) -> None:
    trigger = new_trigger({"phrase": phrase}, TriggerContext(SAID, ZURICH))
    edited = edited_trigger({}, trigger, TriggerContext(SAID + timedelta(minutes=1), "Asia/Tokyo"), SAID)
    shown = [
        one.local.isoformat()
        for each in (trigger, edited)
        for one in each.recurrence(SAID).occurrences(SAID, SAID + timedelta(days=9))
    ]
    assert shown == [before, after]
    assert edited.timezone == "Asia/Tokyo"


def test_a_single_local_time_is_kept_as_one_so_that_new_zone_data_move_it() -> None:
    trigger = new_trigger({"phrase": "tomorrow at noon"}, TriggerContext(SAID, ZURICH))
    assert trigger.instant is None
    assert trigger.pinned is not None
    assert "TZID=Europe/Zurich:20261024T120000" in trigger.pinned
    assert trigger.zone_data() == zone_data_version()
    assert trigger.recurrence(SAID).description == "Once, on 24 October 2026 at 12:00 (Europe/Zurich)"
    in_a_while = new_trigger({"phrase": "in 10 minutes"}, TriggerContext(SAID, ZURICH))
    assert in_a_while.zone_data() is None


@pytest.mark.parametrize(
    ("phrase", "timezone", "exported"),
    [
        ("tomorrow at noon", ZURICH, {"run_at": datetime.fromisoformat("2026-10-24T12:00")}),
        ("tomorrow at noon", "UTC", {"run_at": datetime(2026, 10, 24, 12, tzinfo=UTC)}),
        ("in 10 minutes", ZURICH, {"run_at": datetime(2026, 10, 23, 10, 10, tzinfo=UTC)}),
        (
            "tomorrow at noon Tokyo time",
            ZURICH,
            {"rrule": "DTSTART;TZID=Asia/Tokyo:20261024T120000"},
        ),
    ],
)
def test_a_single_time_is_exported_as_the_local_time_that_it_is(
    phrase: str, timezone: str, exported: dict[str, object]
) -> None:
    trigger = new_trigger({"phrase": phrase}, TriggerContext(SAID, timezone))
    assert trigger.portable(SAID) == exported


def test_a_single_time_that_a_clock_change_touches_is_warned_of_as_run_at_is() -> None:
    for phrase, run_at in (
        ("on 28 march at 2:30", "2027-03-28T02:30"),
        ("on 25 october at 2:30", "2026-10-25T02:30"),
    ):
        context = TriggerContext(SAID, ZURICH, overlap="last")
        said = new_trigger({"phrase": phrase}, context)
        given = new_trigger({"run_at": datetime.fromisoformat(run_at)}, context)
        assert said.warnings == given.warnings
        assert len(said.warnings) == 1
        assert said.pinned == given.pinned


def test_a_single_time_that_is_skipped_is_refused_in_the_words_of_run_at() -> None:
    context = TriggerContext(SAID, ZURICH, gap="skip")
    refusals = []
    for field, value in (
        ("phrase", "on 28 march at 2:30"),
        ("run_at", datetime.fromisoformat("2027-03-28T02:30")),
    ):
        with pytest.raises(InvalidField) as refused:
            new_trigger({field: value}, context)
        assert refused.value.field == field
        refusals.append(refused.value.message)
    assert refusals[0] == refusals[1]
    assert "with gap=skip it would never run" in refusals[0]


def test_today_is_the_zones_own_day() -> None:
    assert fires("tomorrow at noon", "2026-10-23T23:00:00Z") == ["10-25T11:00"]
    assert fires("tomorrow at noon", "2026-10-23T23:00:00Z", timezone="UTC") == ["10-24T12:00"]

"""The life of an event, as data."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from scheduler_app.domain.event import Event, from_id, manual, scheduled
from scheduler_app.domain.ids import backfill_event_id, event_id, is_backfill, manual_event_id, partition_of
from scheduler_app.domain.states import FINAL, STATE_DESCRIPTIONS, TRANSITIONS, Kind, State


@pytest.mark.parametrize(
    ("run_time", "text"),
    [
        (datetime(2025, 1, 5, 12, tzinfo=UTC), "s-1-20250105T120000Z"),
        (datetime(2025, 1, 5, 12, 0, 0, 250_000, tzinfo=UTC), "s-1-20250105T120000250Z"),
        (datetime(2025, 1, 5, 12, tzinfo=timezone(timedelta(hours=1))), "s-1-20250105T110000Z"),
    ],
)
def test_an_id_names_the_schedule_the_revision_and_the_instant(run_time: datetime, text: str) -> None:
    assert event_id("s", 1, run_time) == text


def test_the_two_hours_of_a_clock_that_is_put_back_have_ids_of_their_own() -> None:
    first = datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    assert event_id("s", 1, first) == "s-1-20261025T003000Z"
    assert event_id("s", 1, first.replace(fold=1)) == "s-1-20261025T013000Z"


def test_an_id_of_a_naive_time_is_refused() -> None:
    with pytest.raises(ValueError, match="naive"):
        event_id("s", 1, datetime(2025, 1, 5))  # noqa: DTZ001


@pytest.mark.parametrize("schedule_id", ["s", "a-b", "a-1", "a-1-20250105T120000Z", "s-manual-1"])
@pytest.mark.parametrize("milliseconds", [0, 1, 250])
def test_an_id_tells_all_of_the_event_that_it_was_made_for(schedule_id: str, milliseconds: int) -> None:
    made = scheduled(
        schedule_id, 12, datetime(2025, 1, 5, 12, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    )
    assert from_id(made.id) == made


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-",
        "s",
        "1-20250105T120000Z",
        "-1-20250105T120000Z",
        "s-1-20250132T120000Z",
        "s-²-20250105T120000Z",
    ],
)
def test_no_other_id_tells_of_an_event(text: str) -> None:
    assert from_id(text) is None


def test_the_id_of_a_manual_event_tells_of_none() -> None:
    assert from_id(manual("s-1", 1, datetime(2025, 1, 5, tzinfo=UTC)).id) is None


def test_manual_ids_differ() -> None:
    assert manual_event_id("s").startswith("s-manual-")
    assert manual_event_id("s") != manual_event_id("s")


def test_an_event_is_made_with_what_its_schedule_says() -> None:
    at = datetime(2026, 3, 2, 12, tzinfo=UTC)
    made = scheduled("team:s", 2, at, "https://a.test", "slow")
    assert made == Event(
        "team:s-2-20260302T120000Z", "team:s", 2, at, at, origin="https://a.test", queue="slow"
    )
    asked = manual("team:s", 2, at, origin="https://a.test", queue="slow", hops=3)
    assert asked == made._replace(id=asked.id, kind=Kind.MANUAL, hops=3)
    assert asked.id.startswith("team:s-manual-")
    assert manual("team:s", 2, at, "seed").id == manual("team:s", 1, at + timedelta(1), "seed").id
    assert (made.tenant, made.partition) == ("team", partition_of("team:s"))
    assert made._replace(schedule_id="").partition == partition_of(made.id) != made.partition


def test_every_state_is_explained() -> None:
    assert set(STATE_DESCRIPTIONS) == set(State)


def test_a_final_state_is_left_by_what_people_ask_for_and_by_nothing_else() -> None:
    leaving = {verb for verb, move in TRANSITIONS.items() if move.sources & FINAL}
    assert leaving <= {"redrive", "dismiss"}


def test_every_state_can_be_reached_and_every_living_one_left() -> None:
    reached = {State.READY_QUEUE}.union(*(move.targets for move in TRANSITIONS.values()))
    left = set().union(*(move.sources for move in TRANSITIONS.values()))
    assert set(State) - reached <= {State.SKIPPED}
    assert set(State) - FINAL <= left


@pytest.mark.parametrize(
    ("given", "is_one"),
    [
        (backfill_event_id("nightly", "1f", datetime(2026, 3, 2, tzinfo=UTC)), True),
        (backfill_event_id("acme:my-backfill", "1f", datetime(2026, 3, 2, tzinfo=UTC)), True),
        (event_id("my-backfill-1", 2, datetime(2026, 3, 2, tzinfo=UTC)), False),
        ("backfill-manual-fc391f65166b8e9d45986e87", False),
        ("msg_backfill", False),
        ("msg_a-backfill1-b", False),
        ("acme:msg_a-backfill1-b", False),
        ("backfill", False),
        ("", False),
    ],
)
def test_an_id_says_whether_its_event_is_backfilled(given: str, is_one: bool) -> None:
    assert is_backfill(given) is is_one


def test_people_are_told_what_a_state_means_without_names_of_fields() -> None:
    assert [life.meaning for life in STATE_DESCRIPTIONS.values() if "_" in life.meaning] == []

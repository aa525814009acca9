"""New zone data under schedules whose future was computed with older data."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from scheduler_app.domain.recurrence import zone_data_version
from scheduler_app.domain.schedule import Schedule
from scheduler_app.store import Store
from scheduler_app.usecases.duties.expansion import Expansion
from scheduler_app.usecases.duties.remaking import Rezoning
from tests.builders import event, schedule
from tests.documents import event_document

NIGHT = datetime(2026, 3, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)
RULE = "DTSTART;TZID=Europe/Zurich:20260101T090000\nRRULE:FREQ=DAILY"


@pytest.fixture
def expansion(store: Store) -> Expansion:
    return Expansion(store, timeframe_seconds=86_400)


def stored(store: Store) -> Schedule:
    found = store.schedules.get("s1")
    assert isinstance(found, Schedule)
    return found


def computed_with_old_data(store: Store, moved: timedelta) -> Schedule:
    """A schedule whose events some older release computed, with an offset that was `moved` since."""
    made = schedule(NIGHT, rrule=RULE)
    assert made.next_run_at == NIGHT + 8 * HOUR
    old = replace(made, zone_data="2020a", next_run_at=made.next_run_at + timedelta(days=1) + moved)
    store.schedules.insert(old)
    store.events.insert([event(made.next_run_at + moved)], NIGHT, "made by an older release")
    return old


def test_a_future_that_moved_is_made_anew(store: Store, expansion: Expansion) -> None:
    computed_with_old_data(store, moved=HOUR)
    assert Rezoning(store).rezone_page(NIGHT) == 1
    after = stored(store)
    assert (after.revision, after.version, after.zone_data) == (2, 1, zone_data_version())
    (made,) = expansion.expand_page(NIGHT).events
    assert made.run_time == NIGHT + 8 * HOUR
    withdrawn = event_document(store, event(NIGHT + 9 * HOUR).id)
    assert withdrawn is not None
    assert withdrawn["state"] == "cancelled"
    assert "zone" in withdrawn["status"][-1]["message"]
    assert Rezoning(store).rezone_page(NIGHT) == 0


def test_a_future_that_stays_the_same_is_left_alone(store: Store) -> None:
    computed_with_old_data(store, moved=timedelta(0))
    assert Rezoning(store).rezone_page(NIGHT) == 1
    assert (stored(store).revision, stored(store).zone_data) == (1, zone_data_version())
    assert Rezoning(store).rezone_page(NIGHT) == 0


def test_a_beat_with_older_data_leaves_a_newer_future_alone(store: Store) -> None:
    store.schedules.insert(replace(schedule(NIGHT, rrule=RULE), zone_data="2999z"))
    assert Rezoning(store).rezone_page(NIGHT) == 0


def test_a_rule_in_utc_knows_no_zone_data(store: Store) -> None:
    assert schedule(NIGHT).zone_data is None
    assert schedule(NIGHT, rrule="FREQ=DAILY", timezone="Europe/Zurich").zone_data == zone_data_version()


def test_what_was_owed_before_the_cut_is_still_sent(store: Store, expansion: Expansion) -> None:
    computed_with_old_data(store, moved=-HOUR)
    late = NIGHT + 7.5 * HOUR
    Rezoning(store).rezone_page(late)
    expansion.expand_page(late)
    owed = event_document(store, event(NIGHT + 7 * HOUR).id)
    assert owed is not None
    assert owed["state"] == "ready_queue"


def test_what_is_not_expanded_yet_is_not_cut_away(store: Store, expansion: Expansion) -> None:
    store.schedules.insert(replace(schedule(NIGHT, rrule=RULE), zone_data="2020a"))
    late = NIGHT + 10 * HOUR
    Rezoning(store).rezone_page(late)
    assert stored(store).revision == 1
    (owed, *_) = expansion.expand_page(late).events
    assert owed.run_time == NIGHT + 8 * HOUR
    Rezoning(store).rezone_page(late)
    assert (stored(store).revision, stored(store).zone_data) == (1, zone_data_version())

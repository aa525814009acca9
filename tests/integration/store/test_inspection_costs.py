"""An inspection looks at what is wrong, and not at all that waits."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduler_app.store import Store
from scheduler_app.store.mongo import Document
from tests.builders import event, schedule
from tests.documents import event_document
from tests.examined import examined

SOUND = 10_000
#: Values that are no date of ours, of each BSON type that Python writes easily.
NO_DATES: dict[str, Any] = {
    "null": None,
    "text": "2026-01-01",
    "number": 5,
    "fraction": 0.5,
    "truth": True,
    "document": {"at": 1},
    "too early": datetime(1969, 12, 31, tzinfo=UTC),
    "too late": datetime(9999, 1, 1, tzinfo=UTC),
}


def plant(store: Store, collection: str, sound: Document) -> None:
    rows = [{**sound, "_id": f"sound-{number}"} for number in range(SOUND)]
    store.mongo.db[collection].insert_many(rows)


def test_events_that_wait_for_a_date_cost_nothing(store: Store, now: datetime) -> None:
    made = event(now + timedelta(hours=1))
    store.events.insert([made], now, "made")
    sound = event_document(store, made.id)
    assert sound is not None
    plant(store, "events", sound)
    found, seen = examined(store, lambda: store.inspections.misplaced_events(limit=100))
    assert (found, seen.documents) == (0, 0)
    assert seen.keys < 100


def test_active_schedules_that_have_a_next_date_cost_nothing(store: Store, now: datetime) -> None:
    store.schedules.insert(schedule(now))
    sound = store.mongo.db["schedules"].find_one({})
    assert sound is not None
    plant(store, "schedules", sound)
    found, seen = examined(store, lambda: store.inspections.misplaced_schedules(limit=100))
    assert (found, seen.documents) == (0, 0)
    assert seen.keys < 100


def test_causes_of_another_kind_cost_the_look_at_failing_receivers_nothing(
    store: Store, now: datetime
) -> None:
    rows = [
        {"_id": f"c{number}", "key": f"k{number}", "kind": "stalled", "living": True}
        for number in range(SOUND)
    ]
    store.mongo.db["causes"].insert_many(rows)
    found, seen = examined(store, lambda: store.causes.failing_after("", limit=1_000))
    assert (found, seen.documents) == ([], 0)
    assert not store.waiting_work.kinds(now)


@pytest.mark.parametrize("kind", NO_DATES)
def test_each_value_that_is_no_date_is_found(store: Store, now: datetime, kind: str) -> None:
    made = event(now + timedelta(hours=1))
    store.events.insert([made], now, "made")
    store.mongo.db["events"].update_one({"_id": made.id}, {"$set": {"due_at": NO_DATES[kind]}})
    assert store.inspections.misplaced_events(limit=100) == 1
    store.schedules.insert(schedule(now))
    which = {"_id": schedule(now).id}
    store.mongo.db["schedules"].update_one(which, {"$set": {"next_run_at": NO_DATES[kind]}})
    assert store.inspections.misplaced_schedules(limit=100) == 1

"""An inspection looks at what is wrong, and not at all that waits."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduler_app.domain.ids import TENANT
from scheduler_app.domain.schedule import PAUSED_BY_FAILURES
from scheduler_app.store import Store
from scheduler_app.store.mongo import Document
from scheduler_app.store.paging import FIRST
from scheduler_app.store.waiting_work import Work
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


def test_schedules_that_end_or_have_stopped_in_another_way_cost_a_look_nothing(
    store: Store, now: datetime
) -> None:
    """They share two indexes."""
    hour = timedelta(hours=1)
    store.schedules.insert(schedule(now))
    sound = store.mongo.db["schedules"].find_one_and_delete({}) or {}
    del sound["next_run_at"], sound["unlogged"]
    kinds: list[Document] = [
        {"state": "deleted", "deleted_at": now},
        {"state": "active", "finishes_at": now},
        {"state": "paused", "pause": {"reason": "person", "until": now}},
        {"state": "paused", "pause": {"reason": PAUSED_BY_FAILURES}},
        {"state": "error", "reason": "bent", "finishes_at": now, "pause": {"reason": "person", "until": now}},
    ]
    rows = [{**sound, **kind, "_id": f"over-{number}"} for number, kind in enumerate(kinds)]
    later: list[Document] = [
        {"deleted_at": now + hour},
        {"finishes_at": now + hour},
        {"pause": {"reason": "person", "until": now + hour}},
    ]
    rows += (
        {**sound, **kind, **times, "_id": f"kept-{number}-{kind['state']}"}
        for kind, times in zip(kinds, later, strict=False)
        for number in range(1_000)
    )
    store.mongo.db["schedules"].insert_many(rows)
    then = now + timedelta(seconds=1)
    looks: dict[str, Callable[[], Any]] = {
        "over-0": lambda: store.schedules.deleted_before(then, limit=9),
        "over-1": lambda: [
            each.schedule_id for each in store.cause_inspections.ending(then, {TENANT}, limit=9)
        ],
        "over-2": lambda: [each.id for each in store.pauses.over(then, limit=9)],
        "over-3": lambda: [
            each.schedule_id for each in store.cause_inspections.paused_by_failures(FIRST, limit=9)[0]
        ],
        "over-4": lambda: [each.schedule_id for each in store.cause_inspections.in_error(FIRST, limit=9)[0]],
    }
    for wanted, look in looks.items():
        found, seen = examined(store, look)
        assert (found, seen.documents) == ([wanted], 1), wanted
        assert seen.keys < 10, wanted
    assert store.waiting_work.kinds(then) == {Work.FINISH, Work.RESUME}
    assert store.cursors.finish_ended(then) == 1


def test_pauses_are_over_in_their_order(store: Store, now: datetime) -> None:
    for number, seconds in enumerate((5, 2, 9, 1)):
        store.schedules.insert(schedule(now, f"s{number}"))
        paused = {"state": "paused", "pause": {"reason": "person", "until": now + timedelta(seconds=seconds)}}
        store.mongo.db["schedules"].update_one({"_id": f"s{number}"}, {"$set": paused})
    later = now + timedelta(seconds=8)
    assert [each.id for each in store.pauses.over(later, limit=9)] == ["s3", "s1", "s0"]
    assert [each.id for each in store.pauses.over(later, limit=2)] == ["s3", "s1"]
    # One that somebody bent ends all the same.
    store.mongo.db["schedules"].update_one({"_id": "s1"}, {"$set": {"finishes_at": now, "deleted_at": now}})
    assert {each.id for each in store.pauses.over(later, limit=9)} == {"s3", "s1", "s0"}


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

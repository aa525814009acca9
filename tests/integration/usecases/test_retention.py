"""Deleted schedules leave the database, but not before their history does."""

from datetime import datetime, timedelta

import pytest
from pymongo.errors import AutoReconnect

from scheduler_app.domain.schedule import ScheduleState
from scheduler_app.store import Store
from scheduler_app.usecases.duties.housekeeping import Retention
from tests.builders import event, schedule

DAY = timedelta(days=1)


def kept(store: Store) -> list[str]:
    return sorted(row["_id"] for row in store.mongo.collection("schedules").find({}, {"_id": 1}))


def test_a_deleted_schedule_is_removed_after_the_retention_once_its_last_event_is_gone(
    store: Store, now: datetime
) -> None:
    for schedule_id in ("active", "empty", "with-events"):
        store.schedules.insert(schedule(now, schedule_id))
    store.events.insert([event(now, "with-events")], now, "made")
    deleted = {"state": ScheduleState.DELETED.value, "deleted_at": now}
    store.mongo.collection("schedules").update_many(
        {"_id": {"$in": ["empty", "with-events"]}}, {"$set": deleted}
    )
    retention = Retention(store, retention_days=7)

    retention.prune_page(now + 7 * DAY)
    assert kept(store) == ["active", "empty", "with-events"]

    retention.prune_page(now + 8 * DAY)
    assert kept(store) == ["active", "with-events"]

    store.mongo.collection("events").delete_many({})  # as MongoDB's TTL index does
    retention.prune_page(now + 8 * DAY)
    assert kept(store) == ["active"]


def test_the_backfill_of_a_schedule_is_removed_before_it(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the other order, nothing would find it when the beat dies in between."""
    store.schedules.insert(schedule(now, "gone"))
    deleted = {"state": ScheduleState.DELETED.value, "deleted_at": now}
    store.mongo.collection("schedules").update_one({"_id": "gone"}, {"$set": deleted})
    backfills = store.mongo.collection("backfills")
    for schedule_id in ("gone", "other"):
        backfills.insert_one({"_id": schedule_id})

    def fails(_: str) -> None:
        raise AutoReconnect("connection closed")

    with monkeypatch.context() as patch:
        patch.setattr(store.schedules, "remove", fails)
        with pytest.raises(AutoReconnect):
            Retention(store, retention_days=7).prune_page(now + 8 * DAY)
    assert kept(store) == ["gone"]
    assert [row["_id"] for row in backfills.find()] == ["other"]
    Retention(store, retention_days=7).prune_page(now + 8 * DAY)
    assert kept(store) == []

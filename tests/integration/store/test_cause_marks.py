"""What the marks of causes are counted and given by, also beside corrupt events."""

from datetime import datetime, timedelta
from typing import Any

import bson
import pytest
from pymongo.errors import BulkWriteError

from scheduler_app.domain.cause import failing_key
from scheduler_app.store import Store
from scheduler_app.store.events import cause_marks
from scheduler_app.store.events.cause_marks import FailedEvent, MarkCounts
from tests.builders import event

SECOND = timedelta(seconds=1)
KEY = failing_key("s1-1-x", "http://x:80", 503, None)
OTHER = failing_key("s1-1-x", "http://x:80", 500, None)


def dead(store: Store, at: datetime, event_id: str, **fields: Any) -> str:
    usual: dict[str, Any] = {
        "tenant": "default",
        "schedule_id": "s1",
        "state": "error",
        "origin": "http://x:80",
    }
    usual |= {"status": [{"time": at, "message": "gave up"}], "attempts": [{"status_code": 503}]}
    store.mongo.collection("events").insert_one({"_id": event_id} | usual | fields)
    return event_id


def test_a_corrupt_dead_letter_hides_no_other_one(store: Store, now: datetime) -> None:
    for name, broken in (("s1-1-a", [{"message": "no time"}]), ("s1-1-c", "no list")):
        dead(store, now, name, status=broken)
    dead(store, now, "s1-1-b")
    (found,) = store.cause_marks.unmarked(limit=10)
    assert found == FailedEvent("s1-1-b", "s1", KEY, now, "status 503", is_dead=True, mark=None)


def test_a_mark_is_given_to_those_alone_that_have_still_the_old_one(store: Store, now: datetime) -> None:
    for number in range(3):
        dead(store, now, f"s1-1-{number}")
    first, second, third = store.cause_marks.unmarked(limit=10)
    events = store.mongo.collection("events")
    events.update_one({"_id": second.event_id}, {"$set": {"cause": "another"}})
    store.cause_marks.mark([first, second])
    marks = {row["_id"]: row.get("cause") for row in events.find()}
    assert marks == {first.event_id: KEY.id, second.event_id: "another", third.event_id: None}
    assert store.cause_marks.keys() == (frozenset(), frozenset([KEY.id, "another"]))


def test_what_waits_and_what_is_dead_is_counted_with_the_next_try(store: Store, now: datetime) -> None:
    marks = store.cause_marks
    for number in range(3):
        dead(store, now, f"s1-1-{number}", cause=KEY.id)
    made = [event(now + number * SECOND) for number in range(4)]
    store.events.insert(made, now, "made")
    which = {"_id": {"$in": [each.id for each in made[1:3]]}}
    store.mongo.collection("events").update_many(which, {"$set": {"cause": KEY.id, "state": "retrying"}})
    counted = MarkCounts(waiting=2, dead=3, next_try=now + SECOND)
    assert marks.count(KEY.id, most=10) == marks.counts([KEY.id], most=10)[KEY.id] == counted
    assert marks.count(KEY.id, most=1)[:2] == marks.counts(["none", KEY.id], most=1)[KEY.id][:2] == (1, 1)
    assert marks.counts(["none"], most=10) == {"none": MarkCounts()}
    assert marks.counts([], most=10) == {}
    assert marks.count("none", most=10) == MarkCounts()
    assert marks.keys() == (frozenset([KEY.id]), frozenset([KEY.id]))
    marked = {(each.event_id, each.is_dead, each.mark) for each in marks.marked(KEY.id, limit=10)}
    dead_ones = {(f"s1-1-{number}", True, KEY.id) for number in range(3)}
    assert marked == dead_ones | {(each.id, False, KEY.id) for each in made[1:3]}
    assert len(marks.marked(KEY.id, limit=1)) == 2
    assert marks.unmarked(limit=10) == []


def test_a_next_try_that_is_no_instant_is_not_told(store: Store, now: datetime) -> None:
    dead(store, now, "s1-1-a", cause=KEY.id, state="retrying", due_at=[now])
    counted = MarkCounts(waiting=1)
    assert store.cause_marks.count(KEY.id, most=10) == counted
    assert store.cause_marks.counts([KEY.id], most=10) == {KEY.id: counted}


def test_what_has_no_instant_for_its_next_try_does_not_wait(store: Store, now: datetime) -> None:
    dead(store, now, "s1-1-a", cause=KEY.id, state="retrying", due_at="soon")
    assert store.cause_marks.keys() == (frozenset(), frozenset())
    assert store.cause_marks.count(KEY.id, most=10) == MarkCounts()
    assert store.cause_marks.marked(KEY.id, limit=10) == []


def test_the_events_of_some_schedules_are_counted_among_so_many(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        dead(store, now + number * SECOND, f"s1-1-{number}", run_time=now, cause=KEY.id)
        dead(store, now + number * SECOND, f"s2-1-{number}", run_time=now, schedule_id="s2", cause=KEY.id)
    counts = store.cause_marks.counts
    among: dict[str, list[str]] = {KEY.id: ["s2", "s3"]}
    assert counts([KEY.id], most=10, among=among) == {KEY.id: MarkCounts(dead=3)}
    assert counts([KEY.id], most=2, among=among) == {KEY.id: MarkCounts(dead=2)}
    # The last ids come first.
    monkeypatch.setattr(cause_marks, "MOST_READ", 2)
    assert counts([KEY.id], most=10, among=among) == {KEY.id: MarkCounts(dead=2)}


def test_an_event_that_mongodb_rejects_keeps_no_other_one_from_its_mark(store: Store, now: datetime) -> None:
    """It was found before it grew, so that nothing fits into it."""
    for name in ("s1-1-a", "s1-1-b"):
        dead(store, now, name, schedule_id=name[:6])
    first, second = store.cause_marks.unmarked(limit=10)
    events = store.mongo.collection("events")
    size = len(bson.encode(events.find_one({"_id": first.event_id}) or {}))
    large = "x" * (16 * 2**20 - size - 20)
    events.update_one({"_id": first.event_id}, {"$set": {"large": large}})
    with pytest.raises(BulkWriteError):
        store.cause_marks.mark([first, second._replace(mark=None, key=OTHER)])
    marks = {row["_id"]: row.get("cause") for row in events.find({}, {"cause": 1})}
    assert marks == {first.event_id: None, second.event_id: OTHER.id}

"""What is withdrawn, and what was asked to be: no more than is named, and nothing that may have been sent."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from scheduler_app.domain.states import Kind
from scheduler_app.store import Store
from scheduler_app.store.events import cancellations
from scheduler_app.store.events.documents import finish_events
from tests.builders import event
from tests.documents import event_document

SECOND = timedelta(seconds=1)


def insert(store: Store, now: datetime, count: int, **changes: Any) -> list[str]:
    made = [event(now + (1 + number) * SECOND, **changes) for number in range(count)]
    store.events.insert(made, now, "made")
    return [each.id for each in made]


def change(store: Store, event_id: str, **fields: Any) -> None:
    store.mongo.collection("events").update_one({"_id": event_id}, {"$set": fields})


def states(store: Store, ids: list[str]) -> list[str]:
    return [event_document(store, each)["state"] for each in ids]


def test_of_a_cut_those_events_are_cancelled_that_are_named(store: Store, now: datetime) -> None:
    ids = insert(store, now, 2)
    assert store.cancellations.cancel_these_past_cut(ids[:1], now, "cut") == 1
    assert states(store, ids) == ["cancelled", "ready_queue"]


def test_what_a_person_asked_for_is_no_part_of_a_cut(store: Store, now: datetime) -> None:
    ids = insert(store, now, 1, kind=Kind.MANUAL)
    assert store.cancellations.cancel_past_cut("s1", 2, now, now, "cut") == 0
    change(store, ids[0], attempt=1)
    assert store.cancellations.look_past_cut("s1", 2, now).last_sent is None


@pytest.mark.parametrize(
    ("fields", "sent"),
    [
        ({"attempt": 1, "state": "retrying"}, True),
        ({"lost_leases": 1, "state": "retrying"}, True),
        ({"state": "error"}, True),
        ({"state": "completed"}, True),
        ({"state": "cancelled"}, False),
        ({}, False),
    ],
)
def test_an_event_past_a_cut_counts_as_sent_when_it_may_have_been(
    store: Store, now: datetime, fields: dict[str, Any], sent: bool
) -> None:
    [made] = insert(store, now, 1)
    change(store, made, **fields)
    assert (store.cancellations.look_past_cut("s1", 2, now).last_sent is not None) is sent


def test_all_of_a_deleted_schedule_is_cancelled_page_by_page(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cancellations, "PAGE", 2)
    pages = list[int]()

    def counted(*given: Any) -> int:
        pages.append(finish_events(*given))
        return pages[-1]

    monkeypatch.setattr(cancellations, "finish_events", counted)
    ids, others = insert(store, now, 5), insert(store, now, 1, schedule_id="s2")
    newer = insert(store, now, 1, revision=3)
    assert store.cancellations.cancel_all("s1", 2, now, "deleted") == 5
    assert pages == [2, 2, 1]
    assert states(store, [*ids, *others, *newer]) == ["cancelled"] * 5 + ["ready_queue"] * 2


def test_one_event_is_cancelled_and_no_other(store: Store, now: datetime) -> None:
    ids = insert(store, now, 3)
    change(store, ids[1], payload="kept")
    assert store.cancellations.cancel(ids[1], now, "withdrawn")
    assert states(store, ids) == ["ready_queue", "cancelled", "ready_queue"]
    row = event_document(store, ids[1])
    assert (row["status"][-1]["message"], row.get("wiped"), row["payload"]) == ("withdrawn", None, "kept")
    assert not store.cancellations.cancel(ids[1], now, "again")


def test_one_whose_receiver_is_still_working_is_cancelled_and_waits_for_no_report(
    store: Store, now: datetime
) -> None:
    ids = insert(store, now, 3)
    kept = {"tokens": ["d"], "attempt": 1, "seconds": 60.0}
    for each in ids[:2]:
        change(store, each, state="running", completion=kept | {"awaiting": True})
    change(store, ids[2], state="running", completion=kept)
    assert store.cancellations.cancel(ids[0], now, "withdrawn")
    assert not store.cancellations.cancel(ids[2], now, "a worker has it")
    assert states(store, ids) == ["cancelled", "running", "running"]
    assert event_document(store, ids[0])["completion"] == kept


def test_requests_to_cancel_stand_until_they_are_obeyed_or_their_process_has_died(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests, rows = store.cancel_requests, store.mongo.collection("cancel_requests")
    for each in "abcde":
        requests.put(each, f"{each} is not wanted")
    requests.put("b", "b is not wanted any more")
    row = rows.find_one({"_id": "b"})
    assert row is not None
    assert (row["v"], row["text"]) == (1, "b is not wanted any more")
    rows.update_one({"_id": "a"}, {"$set": {"text": 5}})
    rows.update_one({"_id": "d"}, [{"$set": {"until": {"$subtract": ["$$NOW", 1_000]}}}])
    texts = {"b": "b is not wanted any more", "c": "c is not wanted", "e": "e is not wanted"}
    assert requests.texts() == texts, "one that cannot be read hides no other"
    monkeypatch.setattr(cancellations, "MAX_REQUESTS", 2)
    assert requests.texts() == {"b": texts["b"]}, "two are read"
    assert requests.stands("b")
    requests.remove(["b"])
    assert not requests.stands("b")
    assert [row["_id"] for row in rows.find().sort("_id")] == ["a", "c", "e"]
    requests.remove([])
    assert [row["_id"] for row in rows.find().sort("_id")] == ["a", "c", "e"]

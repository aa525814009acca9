"""What dispatch reads, takes, puts off, holds and skips: those events, and no others."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduler_app.domain.action import CALLBACKS, UNKNOWN_ORIGIN
from scheduler_app.domain.event import Event
from scheduler_app.domain.states import Kind
from scheduler_app.store import Store
from scheduler_app.store.events import outbox
from scheduler_app.store.events.documents import update_or_set_aside
from scheduler_app.store.events.outbox import HELD_FOR, PAGE_VERSION, Deferral, DueEvent
from tests.builders import event
from tests.documents import event_document
from tests.examined import time_limits

SECOND = timedelta(seconds=1)
HTTPS = "https://example.org:443"


def made(store: Store, now: datetime, number: int, **changes: Any) -> list[str]:
    """The ids of as many events of schedules `s0`, `s1` … that are due a second apart, from `now` on."""
    events: list[Event] = [event(now + i * SECOND, f"s{i}", **changes) for i in range(number)]
    store.events.insert(events, now, "made")
    return [each.id for each in events]


def change(store: Store, event_id: Any, **fields: Any) -> None:
    store.mongo.collection("events").update_one({"_id": event_id}, {"$set": fields})


def due(store: Store, until: datetime, **asked: Any) -> list[str]:
    return [each.id for each in store.outbox.due(until, limit=asked.pop("limit", 99), **asked)]


def last_line(store: Store, event_id: str) -> tuple[str, str]:
    line = event_document(store, event_id)["status"][-1]
    return line["status"], line["message"]


def test_what_is_due_is_read_the_oldest_first(store: Store, now: datetime) -> None:
    ids = made(store, now, 4)
    assert due(store, now + 2 * SECOND) == ids[:3]
    assert due(store, now + 2 * SECOND, limit=2) == ids[:2]
    assert due(store, now + 2 * SECOND, after=now) == ids[1:3]
    change(store, ids[0], due_at=datetime(1960, 1, 1, tzinfo=UTC))
    change(store, ids[1], state="worker_queue")
    assert due(store, now + 9 * SECOND) == ids[2:]


def test_origins_tenants_queues_and_partitions_are_left_out(store: Store, now: datetime) -> None:
    ids = made(store, now, 5)
    change(store, ids[0], origin=HTTPS, partition=1)
    change(store, ids[2], tenant="acme", partition=2)
    change(store, ids[3], queue="eu", routed=True)
    change(store, ids[4], partition=2)
    store.mongo.collection("events").update_one({"_id": ids[1]}, {"$unset": {"origin": ""}})
    change(store, ids[1], partition=3)
    until, ordinary = now + 9 * SECOND, [ids[0], ids[1], ids[2], ids[4]]
    assert due(store, until) == ordinary
    assert due(store, until, but={HTTPS}) == ordinary[1:]
    assert due(store, until, but={UNKNOWN_ORIGIN}) == [ids[0]]
    assert due(store, until, but_tenants={"acme"}) == [ids[0], ids[1], ids[4]]
    assert due(store, until, queue="eu") == [ids[3]]
    assert due(store, until, partitions={1, 2}) == [ids[0], ids[2], ids[4]]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, {}),
        ({"attempt": 1}, {"returns": True}),
        ({"lost_leases": 2}, {"lost_leases": 2, "returns": True}),
        ({"lost_leases": "bent"}, {"returns": True}),
        ({"postponed_from": "bent"}, {"returns": True}),
        ({"queue_by_destination": True}, {"queue_by_destination": True}),
        ({"queue_by_destination": "bent"}, {}),
    ],
)
def test_what_dispatch_knows_of_an_event(
    store: Store, now: datetime, fields: dict[str, Any], told: dict[str, Any]
) -> None:
    (event_id,) = made(store, now, 1)
    change(store, event_id, **fields)
    assert store.outbox.due(now, limit=1) == [DueEvent(now, event_id, **told)]


def test_what_cannot_be_dispatched_is_set_aside_and_holds_up_no_other(store: Store, now: datetime) -> None:
    ids = made(store, now, 2)
    change(store, ids[0], due_at=[now])
    events = store.mongo.collection("events")
    events.insert_one(event_document(store, ids[1]) | {"_id": 7})
    assert due(store, now + 9 * SECOND) == [ids[1]]
    assert sorted(row["state"] for row in events.find()) == ["error", "error", "ready_queue"]


def test_named_queues_are_told_from_one_of_them_on_and_then_from_the_beginning(
    store: Store, now: datetime
) -> None:
    names = store.outbox.named_queues
    assert names(after="x") == []
    ids = made(store, now, 7)
    for each, queue in zip(ids, ("b", "a", "c", "b", "no queue!"), strict=False):
        change(store, each, queue=queue, routed=True)
    store.mongo.collection("events").update_one({"_id": ids[2]}, {"$unset": {"due_at": ""}})
    change(store, ids[5], queue="d", routed=True)
    assert names() == ["a", "b", "d"]
    assert names(after="a") == ["b", "d", "a"]
    assert names(after="b", limit=2) == ["d", "a"]
    assert names(after="d") == ["a", "b", "d"]
    assert names(limit=0) == []


def test_a_taken_page_is_kept_until_its_messages_are_out(store: Store, now: datetime) -> None:
    ids = made(store, now, 3)
    pages = store.mongo.collection("outbox")
    pages.insert_one({"_id": "another's", "ids": [], "until": now})
    token, won = store.outbox.take(
        store.outbox.due(now + SECOND, limit=9)[::-1], now + SECOND, now, lease_seconds=60
    )
    assert [each.id for each in won] == ids[:2]
    page = pages.find_one({"_id": token})
    assert page is not None
    assert (page["v"], page["ids"]) == (PAGE_VERSION, ids[1::-1])
    taken = event_document(store, ids[0])
    assert (taken["state"], taken["dispatcher"]) == ("worker_queue", token)
    assert (taken["dispatches"], taken["dispatched_at"]) == (1, now)
    assert last_line(store, ids[0])[0] == "worker_queue"
    assert event_document(store, ids[2])["state"] == "ready_queue"
    store.outbox.sent(token)
    assert [each["_id"] for each in pages.find()] == ["another's"]
    assert pages.find_one() == {"_id": "another's", "ids": [], "until": now}


def test_those_are_won_that_no_other_dispatcher_has_taken(store: Store, now: datetime) -> None:
    ids, until = made(store, now, 4), now + 9 * SECOND
    found = store.outbox.due(until, limit=9)
    assert store.outbox.take(found[1:2], until, now, lease_seconds=60)[1] == found[1:2]
    _, won = store.outbox.take(found[:3], until, now, lease_seconds=60)
    assert [each.id for each in won] == [ids[0], ids[2]]
    _, won = store.outbox.take(found[2:], until, now, lease_seconds=60)
    assert [each.id for each in won] == [ids[3]]


def test_what_a_worker_has_claimed_is_not_put_back(store: Store, now: datetime) -> None:
    ids, until = made(store, now, 2), now + 9 * SECOND
    token, _ = store.outbox.take(store.outbox.due(until, limit=9), until, now, lease_seconds=60)
    change(store, ids[0], state="running")
    assert store.outbox.put_back(token, now) == 1
    assert [event_document(store, each)["state"] for each in ids] == ["running", "ready_queue"]


def test_pages_are_put_back_one_by_one(store: Store, now: datetime) -> None:
    ids = made(store, now, 3)
    tokens = []
    for each in store.outbox.due(now + 9 * SECOND, limit=9):
        tokens.append(store.outbox.take([each], now + 9 * SECOND, now, lease_seconds=-1)[0])
    change(store, ids[2], dispatcher="another", dispatches=5)
    assert store.outbox.put_back(tokens[0], now) == 1
    back = event_document(store, ids[0])
    assert (back["state"], back["dispatches"], "dispatcher" in back) == ("ready_queue", 0, False)
    assert last_line(store, ids[0])[0] == "ready_queue"
    assert event_document(store, ids[1])["state"] == "worker_queue"
    assert store.outbox.put_back_abandoned(now, limit=1) + store.outbox.put_back_abandoned(now, limit=1) == 1
    assert event_document(store, ids[2])["dispatches"] == 5
    assert store.mongo.collection("outbox").count_documents({}) == 0


def test_a_corrupt_page_is_removed_and_its_events_are_left_to_recovery(store: Store, now: datetime) -> None:
    ids = made(store, now, 2)
    tokens = []
    for each in store.outbox.due(now + 9 * SECOND, limit=9):
        tokens.append(store.outbox.take([each], now + 9 * SECOND, now, lease_seconds=-1)[0])
    pages = store.mongo.collection("outbox")
    pages.update_one({"_id": tokens[0]}, {"$set": {"ids": [7]}})
    assert store.outbox.put_back_abandoned(now, limit=9) == 1
    assert [event_document(store, each)["state"] for each in ids] == ["worker_queue", "ready_queue"]
    assert pages.count_documents({}) == 0


def test_what_is_put_off_keeps_the_time_that_it_was_due_at_first(store: Store, now: datetime) -> None:
    ids = made(store, now, 4)
    change(store, ids[0], state="retrying")
    change(store, ids[1], postponed_from=now - SECOND)
    change(store, ids[3], state="worker_queue")
    later = [
        Deferral(each, now + at * 60 * SECOND, now + at * SECOND, f"no room {at}")
        for at, each in enumerate(ids)
    ]
    assert store.outbox.put_off(later[1:], now + SECOND, now) == 1
    assert store.outbox.put_off(later[:1], now + SECOND, now) == 1
    found = [event_document(store, each) for each in ids]
    assert [each["state"] for each in found] == ["ready_queue", "ready_queue", "ready_queue", "worker_queue"]
    assert [each["due_at"] for each in found] == [now, now + 60 * SECOND, now + 2 * SECOND, now + 3 * SECOND]
    assert [each.get("postponed_from") for each in found] == [now, now - SECOND, None, None]
    assert last_line(store, ids[1]) == ("ready_queue", "no room 1")
    assert not any("row" in each for each in found)


def test_events_are_moved_into_queues(store: Store, now: datetime) -> None:
    ids = made(store, now, 5)
    change(store, ids[4], state="worker_queue")
    assert store.outbox.move({"eu": ids[:2], "us": [*ids[2:3], *ids[4:]]}, now + 9 * SECOND) == 3
    assert store.outbox.move({CALLBACKS: ids[:1], "us": ids[3:4]}, now + SECOND) == 1
    keys = ("queue", "routed", "queue_by_destination")
    found = [tuple(event_document(store, each).get(key) for key in keys) for each in ids]
    assert found[:3] == [(CALLBACKS, False, False), ("eu", True, True), ("us", True, True)]
    assert found[3] == found[4]
    assert found[3][0] == CALLBACKS


def test_only_occurrences_of_the_time_that_nothing_was_tried_for_are_skipped(
    store: Store, now: datetime
) -> None:
    ids = made(store, now, 7)
    change(store, ids[2], attempt=1)
    change(store, ids[3], kind=Kind.MANUAL.value)
    change(store, ids[4], state="running")
    skip = store.blacked_out.skip
    assert skip(ids[:6], now + SECOND, now + 5 * SECOND, now, "closed") == 2
    states = [event_document(store, each)["state"] for each in ids]
    assert states[:4] == ["ready_queue", "skipped", "ready_queue", "ready_queue"]
    assert states[4:] == ["running", "skipped", "ready_queue"]
    assert last_line(store, ids[5]) == ("skipped", "closed")
    assert skip(ids[6:], now, now + 5 * SECOND, now, "closed") == 0


def test_what_is_postponed_has_another_time_from_then_on(store: Store, now: datetime) -> None:
    ids, to = made(store, now, 5), now + 60 * SECOND
    change(store, ids[0], state="retrying", postponed_from=now)
    change(store, ids[2], state="running")
    assert store.blacked_out.postpone(ids[:4], to, now + 2 * SECOND, now, "closed") == 2
    found = [event_document(store, each) for each in ids]
    assert [each["due_at"] == to for each in found] == [True, True, False, False, False]
    assert (found[0]["state"], "postponed_from" in found[0]) == ("ready_queue", False)
    assert last_line(store, ids[0]) == ("ready_queue", "closed")


def test_what_is_held_gets_its_own_time_back(store: Store, now: datetime) -> None:
    ids = made(store, now, 6)
    before = now - SECOND
    change(store, ids[1], postponed_from=before, state="retrying")
    hold, release = store.holding.hold, store.holding.release
    assert hold(ids[:3], "$k", now + SECOND, now, "off") == 2
    assert hold(ids[3:5], "m", now + 9 * SECOND, now, "off") == 2
    found = [event_document(store, each) for each in ids]
    assert [each.get("held") for each in found] == ["$k", "$k", None, "m", "m", None]
    assert [each["due_at"] for each in found[:3]] == [now + HELD_FOR, now + HELD_FOR, now + 2 * SECOND]
    assert [each.get("postponed_from") for each in found[:3]] == [now, before, None]
    assert (found[1]["state"], last_line(store, ids[1])) == ("ready_queue", ("ready_queue", "off"))
    assert store.holding.keys() == ["$k", "m"]
    assert [store.holding.count(keys, most=3) for keys in (["$k"], ["$k", "m"], ["x"])] == [2, 3, 0]
    assert release("$k", now, limit=1) == 1
    assert release("$k", now, limit=9) == 1
    assert release("$k", now, limit=9) == 0
    found = [event_document(store, each) for each in ids]
    assert [each["due_at"] for each in found[:2]] == [now, before]
    assert not any({"held", "postponed_from"} & each.keys() for each in found[:2])
    assert last_line(store, ids[0]) == ("ready_queue", "The kill switch is off")
    assert found[3]["held"] == "m"


def test_what_moved_on_while_it_was_held_is_held_no_more(store: Store, now: datetime) -> None:
    ids = made(store, now, 2)
    store.holding.hold(ids, "k", now + SECOND, now, "off")
    change(store, ids[0], state="running", due_at=now)
    assert store.holding.release("k", now, limit=9) == 2
    moved, waits = (event_document(store, each) for each in ids)
    assert "held" not in moved
    assert (moved["state"], moved["due_at"]) == ("running", now)
    assert len(moved["status"]) == len(waits["status"]) - 1


def test_no_more_than_a_page_is_released(store: Store, now: datetime) -> None:
    ids = made(store, now, 2)
    store.holding.hold(ids, "k", now + SECOND, now, "off")
    for each in ids:
        change(store, each, state="running")
    assert store.holding.release("k", now, limit=1) == 1
    assert len([each for each in ids if "held" in event_document(store, each)]) == 1


def test_what_is_held_anew_while_it_is_released_stays_held(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = made(store, now, 1)
    store.holding.hold(ids, "k", now, now, "off")

    def held_again_after(*given: Any, **options: Any) -> Any:
        written = update_or_set_aside(*given, **options)
        monkeypatch.setattr(outbox, "update_or_set_aside", update_or_set_aside)
        assert store.holding.hold(ids, "k", now, now, "off again") == 1
        return written

    monkeypatch.setattr(outbox, "update_or_set_aside", held_again_after)
    assert store.holding.release("k", now, limit=9) == 1
    assert event_document(store, ids[0])["held"] == "k"


def test_a_look_for_names_ends_when_it_has_seen_all(store: Store, now: datetime) -> None:
    ids = made(store, now, 3)
    for each, queue in zip(ids, ("a", "b", "c"), strict=True):
        change(store, each, queue=queue, routed=True)
    store.holding.hold(ids[:1], "k", now, now, "off")
    queues = time_limits(store, lambda: store.outbox.named_queues(after="a"))
    assert len(queues) == 5, "b, c, none, a, and b again"
    assert len(time_limits(store, store.holding.keys)) == 2, "k, and none"


def test_a_key_that_is_no_text_hides_no_others(store: Store, now: datetime) -> None:
    ids = made(store, now, 3)
    store.holding.hold(ids, "k", now + 9 * SECOND, now, "off")
    change(store, ids[0], held=["a", "z"])
    change(store, ids[1], held="b")
    assert store.holding.keys() == ["b", "k"]
    assert event_document(store, ids[0])["state"] == "error"

"""What the policies of overlapping runs write of a schedule's events."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduler_app.domain.event import Event
from scheduler_app.domain.schedule import OverlapScope
from scheduler_app.domain.states import Kind, State
from scheduler_app.store import Store
from scheduler_app.store.events import overlaps
from scheduler_app.store.events.documents import update_or_set_aside
from scheduler_app.store.events.overlaps import UnsentOutcome
from tests.builders import event
from tests.documents import event_document
from tests.examined import time_limits

SECOND = timedelta(seconds=1)
LONG_AGO = datetime(1960, 1, 1, tzinfo=UTC)


def made(store: Store, now: datetime, *changes: dict[str, Any]) -> list[Event]:
    """Events of `s1`, a second apart from `now` on, with these fields in their documents."""
    events = [event(now + number * SECOND) for number in range(len(changes))]
    store.events.insert(events, now, "made")
    for each, fields in zip(events, changes, strict=True):
        change(store, each.id, **fields)
    return events


def change(store: Store, event_id: str, **fields: Any) -> None:
    if fields:
        store.mongo.collection("events").update_one({"_id": event_id}, {"$set": fields})


def documents(store: Store, events: list[Event]) -> list[dict[str, Any]]:
    return [event_document(store, each.id) for each in events]


@pytest.mark.parametrize(
    "bent",
    [
        {"run_time": LONG_AGO},
        {"state": ["ready_queue"]},
        {"kind": Kind.BACKFILL.value},
        {"schedule_id": "another"},
        {"due_at": None, "state": "completed"},
    ],
    ids=str,
)
def test_what_does_not_count_holds_nobody_back(store: Store, now: datetime, bent: dict[str, Any]) -> None:
    first, second = made(store, now, bent, {})
    if "due_at" in bent:
        store.mongo.collection("events").update_one({"_id": first.id}, {"$unset": {"due_at": ""}})
    found = store.overlaps.unfinished("s1", now + 9 * SECOND, scope="event", limit=9)
    assert [(each.id, each.run_time, each.state) for each in found] == [
        (second.id, second.run_time, State.READY_QUEUE)
    ]


def test_lists_in_the_place_of_values_hold_nobody_back(store: Store, now: datetime) -> None:
    (sound,) = made(store, now, {})
    events = store.mongo.collection("events")
    events.insert_one(event_document(store, sound.id) | {"_id": "bent", "run_time": [now]})
    events.insert_one(event_document(store, sound.id) | {"_id": 7})
    found = store.overlaps.unfinished("s1", now, scope="event", limit=9)
    assert [each.id for each in found] == [sound.id]


def test_many_that_are_not_finished_come_in_one_answer(store: Store, now: datetime) -> None:
    as_made: list[dict[str, Any]] = [{}] * 150
    made(store, now, *as_made)
    ask = store.overlaps.unfinished
    assert len(time_limits(store, lambda: ask("s1", now + 999 * SECOND, scope="event", limit=200))) == 1


def test_a_later_run_cancels_what_waits_and_marks_what_runs(store: Store, now: datetime) -> None:
    claim = {"owner": "token", "lease_until": now, "dispatcher": "page"}
    events = made(
        store,
        now,
        {},
        {"state": "running", **claim},
        {"state": "completed"},
        {"kind": Kind.BACKFILL.value},
        {"state": "worker_queue", "dispatcher": "page", "waits_for": "an earlier one"},
        {"run_time": LONG_AGO},
        {"schedule_id": "another"},
        {},
        {},
    )
    begun = events[7]
    same_time = [
        event_document(store, begun.id) | {"_id": f"{begun.id}{suffix}"} for suffix in ("", "-later")
    ]
    same_time[0]["_id"] = begun.id[:-1]
    store.mongo.collection("events").insert_many(same_time)
    store.overlaps.supersede(begun, now)
    found = documents(store, events)
    states = ["cancelled", "running", "completed", "ready_queue", "cancelled", *["ready_queue"] * 4]
    assert [each["state"] for each in found] == states
    marked = [number for number, each in enumerate(found) if "superseded_by" in each]
    assert marked == [0, 1, 4]
    assert {found[number]["superseded_by"] for number in marked} == {begun.id}
    for number in (0, 4):
        assert found[number]["archived_at"] == now
        assert found[number]["status"][-1]["status"] == "cancelled"
        assert "has begun" in found[number]["status"][-1]["message"]
        assert not {"due_at", "dispatcher", "unclaimed"} & found[number].keys()
    running = found[1]
    assert {name: running[name] for name in claim} == claim
    assert (running["due_at"], len(running["status"])) == (events[1].due_at, 1)
    assert not {"archived_at", "unclaimed"} & running.keys()
    assert [event_document(store, each["_id"])["state"] for each in same_time] == ["cancelled", "ready_queue"]
    assert store.overlaps.superseded([each.id for each in events[1:4]]) == {events[1].id: begun.id}


def test_a_mark_that_is_no_text_is_set_aside(store: Store, now: datetime) -> None:
    bent, sound = made(store, now, {"superseded_by": 7}, {"superseded_by": "later"})
    assert store.overlaps.superseded([bent.id, sound.id]) == {bent.id: "another event", sound.id: "later"}
    assert event_document(store, bent.id)["state"] == "error"


def test_an_event_ends_without_its_request_under_its_own_claim(store: Store, now: datetime) -> None:
    claim = {"state": "running", "owner": "mine", "lease_until": now}
    events = made(
        store, now, claim, claim | {"owner": "another's"}, claim | {"state": "ready_queue"}, claim, claim
    )
    endings = [UnsentOutcome(each.id, "mine", State.SKIPPED, f"why {n}") for n, each in enumerate(events[:3])]
    endings.append(UnsentOutcome(events[3].id, "mine", State.CANCELLED, "why 3"))
    assert store.overlaps.end(endings, now) == 2
    found = documents(store, events)
    assert [each["state"] for each in found] == ["skipped", "running", "ready_queue", "cancelled", "running"]
    for number in (0, 3):
        ended = found[number]
        assert (ended["archived_at"], ended["status"][-1]["message"]) == (now, f"why {number}")
        assert ended["status"][-1]["status"] == ended["state"]
        assert not {"row", "due_at", "owner", "lease_until"} & ended.keys()


@pytest.mark.parametrize("scope", ["event", "attempt"])
def test_the_next_one_is_woken_if_it_waits(store: Store, now: datetime, scope: OverlapScope) -> None:
    store.events.insert([event(now, "another")], now, "made")
    ended, waiting, other = made(store, now - 9 * SECOND, {}, {"waits_for": "e"}, {"waits_for": "e"})
    store.mongo.collection("events").update_one(
        {"_id": ended.id}, {"$set": {"state": "completed"}, "$unset": {"due_at": ""}}
    )
    woken = store.overlaps.wake_next("s1", now, scope=scope)
    assert woken is not None
    assert (woken.id, woken.due_at) == (waiting.id, now)
    found = event_document(store, waiting.id)
    assert ("waits_for" in found, found["due_at"]) == (False, now)
    assert "It is its turn" in found["status"][-1]["message"]
    assert event_document(store, other.id)["waits_for"] == "e"


@pytest.mark.parametrize("scope", ["event", "attempt"])
@pytest.mark.parametrize(
    "first", [{"state": "running"}, {"state": "worker_queue", "waits_for": "e"}], ids=str
)
def test_nobody_is_woken_before_the_first_one_has_ended(
    store: Store, now: datetime, scope: OverlapScope, first: dict[str, Any]
) -> None:
    _, waiting = made(store, now - 9 * SECOND, first, {"waits_for": "e"})
    assert store.overlaps.wake_next("s1", now, scope=scope) is None
    assert event_document(store, waiting.id)["due_at"] == waiting.due_at


def test_who_waits_for_nothing_needs_no_waking(store: Store, now: datetime) -> None:
    assert store.overlaps.wake_next("s1", now) is None
    first, second = made(store, now - 9 * SECOND, {}, {"waits_for": "e"})
    assert store.overlaps.wake_next("s1", now) is None
    assert store.overlaps.wake_next("another", now) is None
    assert [each["due_at"] for each in documents(store, [first, second])] == [first.due_at, second.due_at]
    change(store, first.id, run_time=LONG_AGO)
    assert store.overlaps.wake_next("s1", now) is not None, "what is bent holds nobody back"


def test_only_a_run_whose_time_has_come_is_woken_by_attempts(store: Store, now: datetime) -> None:
    made(store, now + SECOND, {"waits_for": "e"})
    assert store.overlaps.wake_next("s1", now, scope="attempt") is None
    assert store.overlaps.wake_next("s1", now, scope="event") is not None


@pytest.mark.parametrize("before", [True, False], ids=["before the write", "after the write"])
def test_who_is_claimed_meanwhile_is_not_woken(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    (waiting,) = made(store, now - 9 * SECOND, {"waits_for": "e"})

    def beside_a_claim(*given: Any, **options: Any) -> Any:
        if before:
            change(store, waiting.id, state="running")
        written = update_or_set_aside(*given, **options)
        change(store, waiting.id, state="running")
        return written

    monkeypatch.setattr(overlaps, "update_or_set_aside", beside_a_claim)
    assert store.overlaps.wake_next("s1", now) is None
    assert (event_document(store, waiting.id)["due_at"] == waiting.due_at) is before

"""Dead letters that are redriven or given up, and what is asked of events that have ended, or wait."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.store.events.events import LOOK_MS, tenants_with_events
from tests.builders import event
from tests.documents import event_document
from tests.examined import examined

SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)


def insert(store: Store, now: datetime, states: Sequence[State], schedule_id: str = "s1") -> list[str]:
    """Events in these states, a second apart."""
    made = [event(now + number * SECOND, schedule_id) for number in range(len(states))]
    store.events.insert(made, now, "made")
    for each, state in zip(made, states, strict=True):
        change(store, each.id, state=state.value)
    return [each.id for each in made]


def change(store: Store, event_id: str, **fields: Any) -> None:
    store.mongo.collection("events").update_one({"_id": event_id}, {"$set": fields})


def test_nothing_is_inserted_where_there_is_nothing(store: Store, now: datetime) -> None:
    assert store.events.insert([], now, "made") == 0


def test_a_redriven_event_keeps_nothing_of_its_end(store: Store, now: datetime) -> None:
    dead, other, over = insert(store, now, [State.ERROR, State.ERROR, State.COMPLETED])
    store.mongo.collection("events").update_many({"_id": dead}, {"$unset": {"due_at": ""}})
    before = event_document(store, dead)
    ended = {"archived_at": now, "superseded_by": "another", "cause": "c1", "attempt": 4}
    change(store, dead, **ended, completion={"awaiting": True, "attempt": 4}, lost_leases=2)
    (again,) = store.events.redrive([dead, over], now + HOUR, "again")
    found = event_document(store, dead)
    assert found.pop("redrive")
    said = {"time": now + HOUR, "status": "ready_queue", "message": "again"}
    assert found == before | {
        "state": "ready_queue",
        "due_at": now + HOUR,
        "due_since": now + HOUR,
        "attempt": 4,
        "attempts_before": 4,
        "isolated_losses": 0,
        "completion": {"attempt": 4},
        "status": [*before["status"], said],
    }
    assert (again.id, again.due_at, again.attempts_before) == (dead, now + HOUR, 4)
    assert event_document(store, other)["state"] == "error"
    assert event_document(store, over)["state"] == "completed"


def test_each_is_redriven_at_its_own_time_also_one_whose_document_is_bent(
    store: Store, now: datetime
) -> None:
    ids = insert(store, now, [State.ERROR, State.ERROR])
    change(store, ids[1], status="no list")
    found = store.events.redrive(ids, now, "again", due=[now + HOUR, now + 2 * HOUR])
    assert {each.id: each.due_at for each in found} == {ids[0]: now + HOUR, ids[1]: now + 2 * HOUR}


def test_those_dead_letters_are_given_up_that_are_named(store: Store, now: datetime) -> None:
    ids = insert(store, now, [State.ERROR, State.ERROR, State.RUNNING])
    assert store.events.dismiss([ids[0], ids[2]], now + HOUR, "given up") == 1
    assert [event_document(store, each)["state"] for each in ids] == ["expired", "error", "running"]
    assert event_document(store, ids[0])["archived_at"] == now + HOUR


def test_an_event_is_shown_with_all_that_is_known_of_it(store: Store, now: datetime) -> None:
    first, second, _ = insert(store, now, [State.ERROR, State.READY_QUEUE, State.READY_QUEUE])
    missed = {"first": now, "last": now, "count": 3}
    change(store, first, archived_at=now, attempt=2, attempts=[{"number": 1}], missed=missed, held=5)
    found = store.events.get(first)
    assert found is not None
    assert (found.id, found.tenant, found.schedule_id, found.revision) == (first, "default", "s1", 1)
    assert (found.kind, found.run_time, found.state, found.attempt) == ("scheduled", now, "error", 2)
    assert (found.attempts, found.created_at, found.archived_at) == ([{"number": 1}], now, now)
    assert [line["message"] for line in found.status if "message" in line] == ["made"]
    assert found.missed == missed
    assert found.corrupt is not None
    assert found.corrupt.keys() == {"held"}
    other = store.events.get(second)
    assert other is not None
    assert (other.due_at, other.archived_at) == (now + SECOND, None)
    assert (other.missed, other.corrupt) == (None, None)
    assert store.events.get("none") is None
    assert {each.id for each in store.events.records([first, second, "none"])} == {first, second}


def test_a_schedule_has_events_or_it_has_none(store: Store, now: datetime) -> None:
    insert(store, now, [State.COMPLETED])
    assert store.events.any_of_schedule("s1") is True
    assert store.events.any_of_schedule("s2") is False


def test_the_last_events_of_a_schedule_that_ended_are_found_the_newest_first(
    store: Store, now: datetime
) -> None:
    ended = [State.ERROR, State.COMPLETED, State.RUNNING, State.CANCELLED, State.ERROR, State.COMPLETED]
    ids = insert(store, now, ended)
    bent, *_ = insert(store, now + 10 * SECOND, [State.ERROR])
    change(store, bent, state=["error"])
    insert(store, now, [State.ERROR] * 3, "s2")

    def last(after: datetime | None = None, until: datetime = now + HOUR, limit: int = 10) -> list[int]:
        found = store.events.last_ended("s1", after=after, until=until, limit=limit)
        assert [state for _, state in found] == [ended[ids.index(own_id)] for own_id, _ in found]
        return [ids.index(own_id) for own_id, _ in found]

    assert last() == [5, 4, 1, 0]
    assert last(limit=2) == [5, 4]
    assert last(until=now + 4 * SECOND) == [4, 1, 0]
    assert last(after=now + SECOND) == [5, 4]


def test_a_look_for_the_last_ended_events_takes_a_bounded_time(store: Store, now: datetime) -> None:
    db = store.mongo.db
    db.command("profile", 2)
    try:
        store.events.last_ended("s1", after=None, until=now, limit=1)
    finally:
        db.command("profile", 0)
    (asked,) = db.system.profile.find({"command.find": "events"})
    db.drop_collection("system.profile")
    assert asked["command"]["maxTimeMS"] == LOOK_MS


def test_living_events_are_counted_by_their_states(store: Store, now: datetime) -> None:
    states = [State.RUNNING, State.READY_QUEUE, State.READY_QUEUE, State.RETRYING, State.COMPLETED]
    ids = insert(store, now, states)
    store.mongo.collection("events").update_one({"_id": ids[-1]}, {"$unset": {"due_at": ""}})
    expected = {"running": 1, "ready_queue": 2, "retrying": 1, "worker_queue": 0}
    found, cost = examined(store, store.events.living_by_state)
    assert (found, cost.documents) == (expected, 0), "by index alone"


def test_dead_letters_of_a_tenant_are_counted_up_to_a_number(store: Store, now: datetime) -> None:
    insert(store, now, [State.ERROR] * 3 + [State.COMPLETED])
    insert(store, now, [State.ERROR], "acme:s1")
    assert store.events.dead_letters("default", most=10) == 3
    assert store.events.dead_letters("default", most=2) == 2


def test_the_oldest_that_waits_is_none_that_runs_or_whose_time_is_no_time(
    store: Store, now: datetime
) -> None:
    assert store.events.oldest_due() is None
    endless, _ = insert(store, now, [State.READY_QUEUE, State.RUNNING])
    change(store, endless, due_at=datetime(9999, 1, 1, tzinfo=now.tzinfo))
    assert store.events.oldest_due() is None
    _, _, retried, dispatched, _ = insert(
        store,
        now + HOUR,
        [State.RUNNING, State.COMPLETED, State.RETRYING, State.WORKER_QUEUE, State.READY_QUEUE],
    )
    change(store, dispatched, due_at=datetime(1960, 1, 1, tzinfo=now.tzinfo))
    assert store.events.oldest_due() == now + HOUR + 2 * SECOND
    change(store, retried, due_at=[now])
    assert store.events.oldest_due() is None, "a list of dates is found like a date"


@pytest.mark.parametrize("bent", [[], ["a", "b"]])
def test_tenants_are_found_by_their_events(store: Store, now: datetime, bent: list[str]) -> None:
    for schedule_id in ("acme:s1", "s1", "team:s1"):
        insert(store, now, [State.ERROR, State.COMPLETED], schedule_id)
    own_id, *_ = insert(store, now + HOUR, [State.ERROR])
    change(store, own_id, tenant=bent)
    found = list(tenants_with_events(store.mongo.collection("events")))
    assert found == sorted({"acme", "default", "team", *bent})

"""What workers do to events that they have claimed reaches those events alone, while their claim holds."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from scheduler_app.domain.action import CALLBACKS
from scheduler_app.domain.states import Kind, State
from scheduler_app.store import Store
from scheduler_app.store.events.claims import Expiration, Postponement
from scheduler_app.store.events.completions import ExpectedCompletion
from tests.builders import event
from tests.documents import event_document

SECOND = timedelta(seconds=1)
Act = Callable[[Store, Sequence[str], str, datetime], object]


def expect(store: Store, ids: Sequence[str], token: str, now: datetime) -> None:
    store.completions.expect([ExpectedCompletion(each, token, "digest", 1, 60.0, None) for each in ids])


def expire(store: Store, ids: Sequence[str], token: str, now: datetime) -> None:
    store.expirations.expire_claimed([Expiration(each, token, "too late") for each in ids], now)


def isolate(store: Store, ids: Sequence[str], token: str, now: datetime) -> None:
    for each in ids:
        store.claims.isolate(each, token)


def postpone(store: Store, ids: Sequence[str], token: str, now: datetime) -> None:
    store.claims.postpone([Postponement(each, token, now + SECOND, now, "no room") for each in ids], now)


ACTS: dict[str, Act] = {
    "cancel": lambda store, ids, token, now: store.claims.cancel_claimed(ids, token, now, "withdrawn"),
    "expect": expect,
    "expire": expire,
    "give back": lambda store, ids, token, now: store.claims.give_back(ids, token, now, "back"),
    "isolate": isolate,
    "postpone": postpone,
    "renew": lambda store, ids, token, now: store.claims.renew(ids, token, 3_600),
}


def claim(store: Store, now: datetime, ids: Sequence[str], queues: Sequence[str] = (CALLBACKS,)) -> str:
    token, won = store.claims.claim(ids, until=now, now=now, lease_seconds=600, worker="w1", queues=queues)
    assert len(won) == len(ids)
    return token


def insert(store: Store, now: datetime, count: int) -> list[str]:
    made = [event(now - number * SECOND) for number in range(count)]
    store.events.insert(made, now, "made")
    return [each.id for each in made]


@pytest.mark.parametrize("act", ACTS)
def test_what_is_done_to_one_event_of_a_claim_leaves_the_others_alone(
    store: Store, now: datetime, act: str
) -> None:
    of_the_same, mine, recovered, another_s = insert(store, now, 4)
    token = claim(store, now, [of_the_same, mine, recovered])
    claim(store, now, [another_s])
    events = store.mongo.collection("events")
    events.update_one({"_id": recovered}, {"$set": {"state": State.RETRYING.value}})  # and the token stays
    before = {row["_id"]: row for row in events.find()}
    ACTS[act](store, [mine, recovered], token, now)
    ACTS[act](store, [another_s], token, now)
    changed = {each for each, row in before.items() if event_document(store, each) != row}
    assert changed == {mine}


def test_a_claim_takes_the_events_that_it_names_alone(store: Store, now: datetime) -> None:
    named, tried, other = insert(store, now, 3)
    events = store.mongo.collection("events")
    events.update_one({"_id": tried}, {"$set": {"attempt": 1}})
    claim(store, now, [named])
    claim(store, now, [tried])
    assert event_document(store, other)["state"] == "ready_queue"


def test_of_a_renewal_those_are_told_that_are_held_still(store: Store, now: datetime) -> None:
    ids = insert(store, now, 3)
    token = claim(store, now, ids)
    assert list(store.claims.renew(ids, token, 60)) == ids
    store.mongo.collection("events").update_one({"_id": ids[1]}, {"$set": {"owner": "another"}})
    assert sorted(store.claims.renew(ids, token, 60)) == sorted([ids[0], ids[2]])


def test_a_postponed_event_is_as_it_was_but_for_what_the_postponement_says(
    store: Store, now: datetime
) -> None:
    [made] = insert(store, now, 1)
    as_made = event_document(store, made)

    def postponed(postponement: Postponement) -> dict[str, Any]:
        assert store.claims.isolate(made, postponement.token)
        assert store.claims.postpone([postponement], now + SECOND) == 1
        found = event_document(store, made)
        last = {"time": now + SECOND, "status": "ready_queue", "message": postponement.message}
        assert found.pop("status")[-1] == last
        return found

    def token(at: datetime) -> str:
        return claim(store, at, [made], (CALLBACKS, "eu"))

    del as_made["status"]
    later = as_made | {"due_at": now + SECOND, "postponed_from": now}
    first = Postponement(made, token(now), now + SECOND, now, "no room")
    assert postponed(first) == later
    moved = Postponement(
        *(made, token(now + SECOND), now + SECOND, now, "elsewhere"),
        queue="eu",
        queue_by_destination=True,
        waits_for="an earlier one",
        held="a switch",
    )
    elsewhere = {"queue": "eu", "routed": True, "queue_by_destination": True}
    assert postponed(moved) == later | elsewhere | {"waits_for": "an earlier one", "held": "a switch"}
    # Where it is stays as it is, and what it waits for does not.
    again = Postponement(made, token(now + SECOND), now + SECOND, now, "no room")
    assert postponed(again) == later | elsewhere
    back = Postponement(made, token(now + SECOND), now + SECOND, now, "back", queue=CALLBACKS)
    assert postponed(back) == later | {"queue": CALLBACKS, "routed": False, "queue_by_destination": False}


def test_an_event_that_is_given_back_is_as_it_was_but_for_its_history(store: Store, now: datetime) -> None:
    [made] = insert(store, now, 1)
    before = event_document(store, made)
    token = claim(store, now, [made])
    assert store.claims.isolate(made, token)
    assert store.claims.give_back([made], token, now + SECOND, "back") == 1
    found = event_document(store, made)
    assert found.pop("status")[2:] == [{"time": now + SECOND, "status": "ready_queue", "message": "back"}]
    del before["status"]
    assert found == before


def test_an_expired_event_keeps_nothing_of_its_claim(store: Store, now: datetime) -> None:
    ids = insert(store, now, 2)
    before = [event_document(store, each) for each in ids]
    token = claim(store, now, ids)
    living = {"isolated": token, "postponed_from": now, "waits_for": "another", "dispatcher": "d"}
    store.mongo.collection("events").update_many({}, {"$set": living})
    expirations = [Expiration(each, token, f"{each} is too late") for each in ids]
    assert store.expirations.expire_claimed(expirations, now + SECOND) == 2
    for each, row in zip(ids, before, strict=True):
        found = event_document(store, each)
        said = {"time": now + SECOND, "status": "expired", "message": f"{each} is too late"}
        assert found.pop("status")[2:] == [said]
        del row["status"], row["due_at"]
        assert found == row | {"state": "expired", "archived_at": now + SECOND}


def test_the_newest_occurrence_that_is_due_is_of_the_schedule_and_was_not_withdrawn(
    store: Store, now: datetime
) -> None:
    mine, newer, newest, withdrawn, by_hand, future = (event(now + place * SECOND) for place in range(6))
    other = event(now + 3 * SECOND, "s2")
    made = [mine, newer, newest, withdrawn, by_hand._replace(kind=Kind.MANUAL), future, other]
    store.events.insert(made, now, "made")
    which = {"_id": withdrawn.id}
    store.mongo.collection("events").update_one(which, {"$set": {"state": State.CANCELLED.value}})
    until = now + 4 * SECOND
    assert store.expirations.newest_due(mine, until) == newest.run_time
    assert store.expirations.newest_due(newest, until) is None
    assert store.expirations.newest_due(mine, newer.run_time) == newer.run_time

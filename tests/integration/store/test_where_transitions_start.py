"""Each verb moves an event only from the states where its transition starts, whatever else of it fits."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import pytest

from scheduler_app.domain.states import TRANSITIONS, State
from scheduler_app.store import Store
from scheduler_app.store.events.claims import Expiration, Postponement
from scheduler_app.store.events.outbox import Deferral
from scheduler_app.store.events.outcomes import OutcomeRecord
from scheduler_app.store.events.overlaps import UnsentOutcome
from tests.builders import event

SECOND = timedelta(seconds=1)
TOKEN = "token"
Act = Callable[[Store, Sequence[str], datetime], object]


def cancel(store: Store, ids: Sequence[str], now: datetime) -> None:
    for each in ids:
        store.cancellations.cancel(each, now, "x")


def expire_claimed(store: Store, ids: Sequence[str], now: datetime) -> None:
    store.expirations.expire_claimed([Expiration(each, TOKEN, "x") for each in ids], now)


def postpone(store: Store, ids: Sequence[str], now: datetime) -> None:
    store.claims.postpone([Postponement(each, TOKEN, now + SECOND, now, "x") for each in ids], now)


def put_off(store: Store, ids: Sequence[str], now: datetime) -> None:
    store.outbox.put_off([Deferral(each, now + SECOND, now, "x") for each in ids], now, now)


def record(store: Store, ids: Sequence[str], now: datetime) -> None:
    store.outcomes.record(
        [OutcomeRecord(each, TOKEN, State.COMPLETED, "x", None, {"number": 1}, now) for each in ids]
    )


def skip(store: Store, ids: Sequence[str], now: datetime) -> None:
    store.overlaps.end([UnsentOutcome(each, TOKEN, State.SKIPPED, "x") for each in ids], now)


VERBS: dict[str, Act] = {
    "cancel": cancel,
    "cancel_claimed": lambda store, ids, now: store.claims.cancel_claimed(ids, TOKEN, now, "x"),
    "claim": lambda store, ids, now: store.claims.claim(
        ids, until=now, now=now, lease_seconds=60, worker="w"
    ),
    "dismiss": lambda store, ids, now: store.events.dismiss(ids, now, "x"),
    "expire_claimed": expire_claimed,
    "give_back": lambda store, ids, now: store.claims.give_back(ids, TOKEN, now, "x"),
    "hold": lambda store, ids, now: store.holding.hold(ids, "default/all", now, now, "x"),
    "mark_dispatched": lambda store, ids, now: store.outbox.move({"eu": ids}, now),
    "postpone": postpone,
    "put_off": put_off,
    "record": record,
    "redrive": lambda store, ids, now: store.events.redrive(ids, now, "x"),
    "skip": skip,
    "skip_waiting": lambda store, ids, now: store.blacked_out.skip(ids, now - 3600 * SECOND, now, now, "x"),
    "supersede": lambda store, ids, now: store.overlaps.supersede(event(now), now),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_moves_events_of_its_sources_alone(store: Store, now: datetime, verb: str) -> None:
    of_state = {state: event(now - (1 + place) * SECOND) for place, state in enumerate(State)}
    store.events.insert(list(of_state.values()), now, "made")
    events = store.mongo.collection("events")
    for state, made in of_state.items():
        # As if a crash, or a defect, had left all of it.
        fields = {"state": state.value, "owner": TOKEN, "dispatcher": TOKEN, "lease_until": now}
        events.update_one({"_id": made.id}, {"$set": fields})
    before = {row["_id"]: row for row in events.find()}
    VERBS[verb](store, [each.id for each in of_state.values()], now)
    moved = {state for state, made in of_state.items() if events.find_one(before[made.id]) is None}
    assert moved == TRANSITIONS[verb].sources


def test_what_was_cancelled_after_a_later_one_began_was_to_run_before_it(store: Store, now: datetime) -> None:
    begun = event(now, revision=2)
    earlier, twin = event(now - SECOND, revision=2), event(now, revision=1)
    later = event(now + SECOND, revision=1)
    store.events.insert([begun, earlier, twin, later], now, "made")
    store.overlaps.supersede(begun, now)
    assert later.id < begun.id
    living = {row["_id"] for row in store.mongo.collection("events").find({"state": State.READY_QUEUE})}
    assert living == {begun.id, later.id}


def test_only_a_running_event_waits_for_its_receiver_s_report_or_is_cancelled_meanwhile(
    store: Store, now: datetime
) -> None:
    completion = {"awaiting": True, "tokens": [], "attempt": 1, "seconds": 60.0}
    made = {state: event(now - (1 + place) * SECOND) for place, state in enumerate(State)}
    store.events.insert(list(made.values()), now, "made")
    for state, each in made.items():
        fields = {"state": state.value, "owner": TOKEN, "completion": completion}
        store.mongo.collection("events").update_one({"_id": each.id}, {"$set": fields})
    found = store.completions.overdue(now, limit=100)
    assert [each.event_id for each in found] == [made[State.RUNNING].id]
    cancelled = {state for state, each in made.items() if store.cancellations.cancel(each.id, now, "no")}
    assert cancelled == {*TRANSITIONS["cancel"].sources, *TRANSITIONS["cancel_awaited"].sources}


def test_a_cut_that_no_event_is_named_for_cancels_none(store: Store, now: datetime) -> None:
    made = event(now)
    store.events.insert([made], now, "made")
    assert store.cancellations.cancel_these_past_cut([], now, "cut") == 0
    assert store.cancellations.cancel_these_past_cut([made.id], now, "cut") == 1

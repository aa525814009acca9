"""The store's verbs on events, on a real mongod."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from scheduler_app.domain.action import CALLBACKS
from scheduler_app.domain.event import Event
from scheduler_app.domain.states import FINAL, LIVING, MAX_ISOLATED_LOSSES, State
from scheduler_app.store import Store
from scheduler_app.store.events.claims import Postponement
from scheduler_app.store.events.documents import KEPT_LAST, to_event
from scheduler_app.store.events.fields import DOCUMENT_VERSION
from scheduler_app.store.events.outcomes import OutcomeRecord
from tests.builders import event
from tests.documents import event_document
from tests.integration.store.taking import send, take

SECOND = timedelta(seconds=1)


def claimed(store: Store, now: datetime, ids: Sequence[str], lease: float = 600.0) -> tuple[str, list[Event]]:
    return store.claims.claim(ids, until=now, now=now, lease_seconds=lease, worker="w1")


def claim(store: Store, now: datetime, *ids: str, lease: float = 600.0) -> tuple[str, list[str]]:
    token, won = claimed(store, now, ids, lease)
    return token, [event.id for event in won]


def record(
    event_id: str, token: str, state: State, now: datetime, due_at: datetime | None = None
) -> OutcomeRecord:
    return OutcomeRecord(event_id, token, state, "said", due_at, {"number": 1, "status_code": 200}, now)


def document(store: Store, event_id: str) -> dict[str, Any]:
    found = event_document(store, event_id)
    assert found is not None
    return found


def lines(store: Store, event_id: str) -> list[str]:
    return [line["status"] for line in document(store, event_id)["status"]]


def test_the_same_occurrence_becomes_an_event_once(store: Store, now: datetime) -> None:
    first, second = event(now), event(now + SECOND)
    assert store.events.insert([first], now, "made") == 1
    assert store.events.insert([first, second], now, "made again") == 1
    assert document(store, first.id)["status"][0]["message"] == "made"


def test_a_new_event_says_all_that_others_look_for(store: Store, now: datetime) -> None:
    made = event(now)
    store.events.insert([made], now, "made")
    assert document(store, made.id) == {
        "_id": made.id,
        "v": DOCUMENT_VERSION,
        "tenant": "default",
        "partition": made.partition,
        "schedule_id": "s1",
        "revision": 1,
        "kind": "scheduled",
        "run_time": now,
        "state": "ready_queue",
        "due_at": now,
        "queue": CALLBACKS,
        "origin": made.origin,
        "attempt": 0,
        "dispatches": 0,
        "lost_leases": 0,
        "status": [{"time": now, "status": "ready_queue", "message": "made"}],
        "attempts": [],
        "created_at": now,
    }


def test_a_redriven_event_that_has_ended_before_it_is_read_back_is_among_the_redriven(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that redrives it stands still in between, and workers do not."""
    made = event(now)
    store.events.insert([made], now, "made")
    token, _ = claim(store, now, made.id)
    store.outcomes.record([record(made.id, token, State.ERROR, now)])
    read = store.events._majority.find

    def read_later(*arguments: Any, **options: Any) -> Any:
        token, won = claim(store, now, made.id)
        assert won
        store.outcomes.record([record(made.id, token, State.COMPLETED, now)])
        return read(*arguments, **options)

    monkeypatch.setattr(store.events, "_majority", SimpleNamespace(find=read_later))
    redriven = store.events.redrive([made.id], now, "redriven")
    assert [each.id for each in redriven] == [made.id]
    assert lines(store, made.id)[-2:] == ["running", "completed"]


def test_a_redriven_event_has_lost_no_leases_yet(store: Store, now: datetime) -> None:
    made = event(now)
    store.events.insert([made], now, "made")
    spent = {"state": "error", "attempt": 7, "lost_leases": 9, "isolated_losses": 3, "dispatches": 5}
    store.mongo.collection("events").update_one({"_id": made.id}, {"$set": spent})
    (again,) = store.events.redrive([made.id], now, "redriven")
    found = document(store, made.id)
    assert [found[name] for name in ("lost_leases", "isolated_losses", "dispatches")] == [0, 0, 0]
    assert (found["attempts_before"], again.lost_leases) == (7, 0)


def test_a_finished_occurrence_does_not_come_back(store: Store, now: datetime) -> None:
    made = event(now)
    store.events.insert([made], now, "made")
    token, _ = claim(store, now, made.id)
    store.outcomes.record([record(made.id, token, State.COMPLETED, now)])
    assert store.events.insert([made], now, "made again") == 0
    assert document(store, made.id)["state"] == "completed"


def test_one_of_two_claims_wins(store: Store, now: datetime) -> None:
    made = event(now)
    store.events.insert([made], now, "made")
    assert claim(store, now, made.id)[1] == [made.id]
    assert claim(store, now, made.id)[1] == []


@pytest.mark.parametrize("at_once", [1, 3])
def test_a_claim_knows_an_event_that_came_back_by_what_it_became(
    store: Store, now: datetime, at_once: int
) -> None:
    fresh, tried, brought_back = event(now), event(now, "tried"), event(now, "brought back")
    store.events.insert([fresh, tried, brought_back], now, "made")
    token, _ = claim(store, now, tried.id)
    store.outcomes.record([record(tried.id, token, State.RETRYING, now, now + SECOND)])
    token, _ = claim(store, now, brought_back.id)
    store.outcomes.record([record(brought_back.id, token, State.ERROR, now)])
    store.mongo.collection("events").update_one({"_id": brought_back.id}, {"$set": {"attempt": 0}})
    store.events.redrive([brought_back.id], now + 2 * SECOND, "redriven")
    ids = [fresh.id, tried.id, brought_back.id]
    won = [
        each
        for first in range(0, 3, at_once)
        for each in claimed(store, now + 3 * SECOND, ids[first : first + at_once])[1]
    ]
    assert [(each.id, each.due_at, each.attempt) for each in won] == [
        (fresh.id, now, 0),
        (tried.id, now + SECOND, 1),
        (brought_back.id, now + 2 * SECOND, 0),
    ]
    for each in ids:
        assert document(store, each)["state"] == "running"
        assert lines(store, each).count("running") == (1 if each == fresh.id else 2)


def test_what_a_claim_says_of_an_event_is_what_is_stored_of_it(store: Store, now: datetime) -> None:
    made = event(now + timedelta(milliseconds=7), "a-1", 12)
    store.events.insert([made], now, "made")
    _, (won,) = claimed(store, made.due_at, [made.id])
    assert won == to_event(document(store, made.id))


def test_of_new_events_a_claim_reads_nothing_and_dispatch_writes_each_page_once(
    store: Store, now: datetime
) -> None:
    made = [event(now, f"s{number}") for number in range(3)]
    store.events.insert(made, now, "made")

    def asked() -> tuple[int, int]:
        """Reads and updates of events so far, as mongod counts them."""
        counts = store.mongo.client.admin.command("top")["totals"][f"{store.mongo.db.name}.events"]
        return counts["queries"]["count"], counts["update"]["count"]

    due = store.outbox.due(now, limit=10)
    reads, updates = asked()
    token, taken = store.outbox.take(due, now, now, lease_seconds=600)
    assert len(taken) == 3
    store.outbox.sent(token)
    assert asked() == (reads, updates + 1)
    assert len(claim(store, now, *(each.id for each in made))[1]) == 3
    assert asked() == (reads, updates + 2)


def test_a_claim_gives_the_soonest_first_whatever_their_ids(store: Store, now: datetime) -> None:
    """Also where MongoDB has to be asked what became of them, because one of them is no new event."""
    late, early, soonest = event(now, "a"), event(now - SECOND, "b"), event(now - 2 * SECOND, "c")
    store.events.insert([late, early, soonest], now, "made")
    ids = [late.id, early.id, soonest.id]
    token, won = claimed(store, now, ids)
    assert [each.id for each in won] == [soonest.id, early.id, late.id]
    store.claims.give_back(ids, token, now, "given back")
    store.mongo.collection("events").update_one({"_id": early.id}, {"$set": {"attempt": 1}})
    assert claim(store, now, *ids)[1] == [soonest.id, early.id, late.id]


def test_an_event_beyond_the_horizon_is_not_claimed(store: Store, now: datetime) -> None:
    made = event(now + SECOND)
    store.events.insert([made], now, "made")
    assert claim(store, now, made.id)[1] == []
    assert claim(store, now + SECOND, made.id)[1] == [made.id]


def test_what_a_worker_has_claimed_meanwhile_is_not_put_back(store: Store, now: datetime) -> None:
    made = event(now)
    store.events.insert([made], now, "made")
    token, taken = take(store.outbox, now, limit=10, lease_seconds=-1)
    assert [e.id for e in taken] == [made.id]
    assert claim(store, now, made.id)[1] == [made.id]
    assert store.outbox.put_back_abandoned(now, limit=10) == 0
    assert store.outbox.put_back(token, now) == 0
    assert document(store, made.id)["state"] == "running"


def test_what_one_dispatcher_has_taken_another_leaves_alone(store: Store, now: datetime) -> None:
    store.events.insert([event(now)], now, "made")
    assert take(store.outbox, now, limit=10, lease_seconds=600)[1]
    assert not take(store.outbox, now, limit=10, lease_seconds=600)[1]


def test_what_a_dispatcher_took_that_died_is_put_back_when_its_lease_is_over(
    store: Store, now: datetime
) -> None:
    lost, begun = event(now), event(now + SECOND)
    store.events.insert([lost], now, "made")
    take(store.outbox, now, limit=10, lease_seconds=-1)
    store.events.insert([begun], now, "made")
    take(store.outbox, now + SECOND, limit=10, lease_seconds=600)
    assert store.outbox.put_back_abandoned(now, limit=10) == 1
    assert store.outbox.put_back_abandoned(now, limit=10) == 0
    assert lines(store, lost.id) == ["ready_queue", "worker_queue", "ready_queue"]
    assert document(store, lost.id)["dispatches"] == 0
    assert document(store, begun.id)["state"] == "worker_queue"
    assert send(store.outbox, now) == [lost.id]


def test_what_was_sent_is_not_put_back(store: Store, now: datetime) -> None:
    made = event(now)
    store.events.insert([made], now, "made")
    token, _ = take(store.outbox, now, limit=10, lease_seconds=-1)
    store.outbox.sent(token)
    assert store.outbox.put_back_abandoned(now, limit=10) == 0
    assert store.outbox.put_back(token, now) == 0
    assert document(store, made.id)["state"] == "worker_queue"


def test_a_page_that_was_taken_over_puts_back_nothing_of_the_next_one(store: Store, now: datetime) -> None:
    made = event(now)
    store.events.insert([made], now, "made")
    take(store.outbox, now, limit=10, lease_seconds=-1)
    store.recoveries.recover_messages(now + 60 * SECOND, grace_seconds=10, limit=10)
    assert send(store.outbox, now) == [made.id]
    assert store.outbox.put_back_abandoned(now, limit=10) == 0
    assert document(store, made.id)["state"] == "worker_queue"


def test_of_a_page_that_another_has_had_a_part_of_the_rest_is_won(store: Store, now: datetime) -> None:
    store.events.insert([event(now + i * SECOND) for i in range(3)], now, "made")
    page = store.outbox.due(now + 10 * SECOND, limit=3)
    assert store.outbox.take(page[1:2], now + 10 * SECOND, now, lease_seconds=600)[1] == page[1:2]
    token, won = store.outbox.take(page, now + 10 * SECOND, now, lease_seconds=600)
    assert won == [page[0], page[2]]
    assert store.outbox.put_back(token, now) == 2
    assert document(store, page[1].id)["state"] == "worker_queue"


def test_dispatch_takes_the_oldest_first_and_marks_them_once(store: Store, now: datetime) -> None:
    made = [event(now + i * SECOND) for i in range(5)]
    store.events.insert(list(reversed(made)), now, "made")
    assert send(store.outbox, now + 10 * SECOND, limit=3) == [e.id for e in made[:3]]
    assert document(store, made[0].id)["dispatches"] == 1
    assert lines(store, made[0].id) == ["ready_queue", "worker_queue"]


def test_a_success_is_final_and_leaves_no_due_time(store: Store, now: datetime) -> None:
    made = event(now)
    store.events.insert([made], now, "made")
    token, _ = claim(store, now, made.id)
    assert store.outcomes.record([record(made.id, token, State.COMPLETED, now)]) == []
    found = document(store, made.id)
    assert found["state"] == "completed"
    assert found["attempt"] == 1
    assert found["attempts"][0]["status_code"] == 200
    assert found["archived_at"] == now
    assert not {"due_at", "owner", "lease_until", "dispatcher"} & found.keys()


def test_a_failure_waits_for_its_next_due_time(store: Store, now: datetime) -> None:
    made = event(now)
    store.events.insert([made], now, "made")
    token, _ = claim(store, now, made.id)
    store.outcomes.record([record(made.id, token, State.RETRYING, now, now + SECOND)])
    assert claim(store, now, made.id)[1] == []
    assert claim(store, now + SECOND, made.id)[1] == [made.id]
    assert "archived_at" not in document(store, made.id)


def test_a_record_that_is_written_again_after_a_fault_counts_once(store: Store, now: datetime) -> None:
    made = event(now)
    store.events.insert([made], now, "made")
    token, _ = claim(store, now, made.id)
    again = record(made.id, token, State.RETRYING, now, now + SECOND)
    assert store.outcomes.record([again]) == []
    assert store.outcomes.record([again]) == []
    assert document(store, made.id)["attempt"] == 1
    assert len(document(store, made.id)["attempts"]) == 1


def test_a_recovered_event_keeps_the_time_at_which_it_fell_due(store: Store, now: datetime) -> None:
    made = event(now)
    store.events.insert([made], now, "made")
    for lost in (1, 2):
        claim(store, now + 3 * lost * SECOND, made.id, lease=-1)
        later = now + 3 * lost * SECOND
        assert store.recoveries.recover_workers(later, delay_seconds=2, limit=10) == ([made.id], [])
        found = document(store, made.id)
        assert (found["due_at"], found["postponed_from"]) == (later + 2 * SECOND, now)


def test_a_worker_that_was_only_slow_still_records(store: Store, now: datetime) -> None:
    made = event(now)
    store.events.insert([made], now, "made")
    token, _ = claim(store, now, made.id, lease=-1)
    assert store.recoveries.recover_workers(now, delay_seconds=2, limit=10) == ([made.id], [])
    assert document(store, made.id)["state"] == "retrying"
    assert document(store, made.id)["attempt"] == 0
    assert store.outcomes.record([record(made.id, token, State.COMPLETED, now)]) == []
    assert document(store, made.id)["state"] == "completed"


def test_a_record_after_somebody_else_s_claim_is_kept_as_late_and_changes_no_state(
    store: Store, now: datetime
) -> None:
    made = event(now)
    store.events.insert([made], now, "made")
    slow, _ = claim(store, now, made.id, lease=-1)
    store.recoveries.recover_workers(now, delay_seconds=0, limit=10)
    quick, won = claim(store, now, made.id)
    assert won == [made.id]
    late = record(made.id, slow, State.COMPLETED, now)
    assert store.outcomes.record([late]) == [late]
    store.outcomes.record_late([late])
    store.outcomes.record_late([late])
    found = document(store, made.id)
    assert found["state"] == "running"
    assert [attempt.get("late") for attempt in found["attempts"]] == [True]
    assert store.outcomes.record([record(made.id, quick, State.COMPLETED, now)]) == []
    assert document(store, made.id)["attempt"] == 1


def test_a_lease_that_still_runs_is_not_recovered(store: Store, now: datetime) -> None:
    made = event(now)
    store.events.insert([made], now, "made")
    claim(store, now, made.id)
    assert store.recoveries.recover_workers(now + 3600 * SECOND, delay_seconds=2, limit=10) == ([], [])


def test_an_event_whose_own_request_was_never_made_is_not_set_aside(store: Store, now: datetime) -> None:
    made = event(now)
    store.events.insert([made], now, "made")
    for lost in range(1, 11):
        claim(store, now, made.id, lease=-1)
        assert store.recoveries.recover_workers(now, delay_seconds=0, limit=10) == ([made.id], [])
        assert document(store, made.id)["lost_leases"] == lost


def test_an_event_that_loses_three_workers_while_it_is_tried_alone_is_set_aside(
    store: Store, now: datetime
) -> None:
    made = event(now)
    store.events.insert([made], now, "made")
    for loss in range(1, MAX_ISOLATED_LOSSES + 1):
        token, _ = store.claims.claim([made.id], until=now, now=now, lease_seconds=-1, worker="w")
        assert store.claims.isolate(made.id, token)
        # Between two such losses there may be others, of which it is not suspected.
        expected: tuple[list[str], list[str]] = ([made.id], [])
        if loss == MAX_ISOLATED_LOSSES:
            expected = ([], [made.id])
        assert store.recoveries.recover_workers(now, delay_seconds=0, limit=10) == expected
        if loss < MAX_ISOLATED_LOSSES:
            claim(store, now, made.id, lease=-1)
            assert store.recoveries.recover_workers(now, delay_seconds=0, limit=10) == ([made.id], [])
    found = document(store, made.id)
    assert (found["state"], found["attempt"]) == ("error", 0)
    assert "while its own request was being made" in found["status"][-1]["message"]


def test_the_mark_of_an_older_claim_does_not_count(store: Store, now: datetime) -> None:
    made = event(now)
    store.events.insert([made], now, "made")
    events = store.mongo.collection("events")
    events.update_one({"_id": made.id}, {"$set": {"isolated_losses": 2, "isolated": "older"}})
    claim(store, now, made.id, lease=-1)
    assert store.recoveries.recover_workers(now, delay_seconds=0, limit=10) == ([made.id], [])


def test_only_the_claim_that_holds_an_event_may_mark_renew_or_postpone_it(
    store: Store, now: datetime
) -> None:
    made = event(now)
    store.events.insert([made], now, "made")
    old, _ = store.claims.claim([made.id], until=now, now=now, lease_seconds=-1, worker="w")
    store.recoveries.recover_workers(now, delay_seconds=0, limit=10)
    new, _ = store.claims.claim([made.id], until=now, now=now, lease_seconds=600, worker="w")
    later = now + 60 * SECOND
    assert not store.claims.isolate(made.id, old)
    assert list(store.claims.renew([made.id], old, 10)) == []
    assert store.claims.postpone([Postponement(made.id, old, later, now, "no room")], now) == 0
    assert list(store.claims.renew([made.id], new, 10)) == [made.id]
    assert store.claims.postpone([Postponement(made.id, new, later, now, "no room")], now) == 1
    found = document(store, made.id)
    assert (found["state"], found["due_at"], found["postponed_from"]) == ("ready_queue", later, now)
    assert not {"owner", "lease_until", "row"} & found.keys()


def test_a_lost_message_is_repaired_after_its_grace_which_doubles(store: Store, now: datetime) -> None:
    made = event(now)
    store.events.insert([made], now, "made")

    def dispatch(at: datetime) -> None:
        assert send(store.outbox, at) == [made.id]

    def recover(at: datetime) -> list[str]:
        return store.recoveries.recover_messages(at, grace_seconds=10, limit=10)

    dispatch(now)
    assert recover(now + 10 * SECOND) == []
    assert recover(now + 11 * SECOND) == [made.id]
    assert document(store, made.id)["state"] == "ready_queue"
    dispatch(now + 11 * SECOND)
    assert recover(now + 30 * SECOND) == []
    assert recover(now + 32 * SECOND) == [made.id]


def test_the_grace_of_a_retry_begins_anew(store: Store, now: datetime) -> None:
    made = event(now)
    store.events.insert([made], now, "made")

    def dispatch(at: datetime) -> None:
        assert send(store.outbox, at) == [made.id]

    for number in range(3):
        at = now + number * SECOND
        dispatch(at)
        token, _ = claim(store, at, made.id)
        assert store.outcomes.record([record(made.id, token, State.RETRYING, at, at + SECOND)]) == []
    dispatch(now + 3 * SECOND)
    assert store.recoveries.recover_messages(now + 13 * SECOND, grace_seconds=10, limit=10) == []
    assert store.recoveries.recover_messages(now + 14 * SECOND, grace_seconds=10, limit=10) == [made.id]


def test_a_message_whose_event_was_given_back_was_not_lost(store: Store, now: datetime) -> None:
    """The grace of the next one does not double, nor does a doubled message count twice."""
    made = event(now)
    store.events.insert([made], now, "made")
    for number in range(4):
        at = now + number * SECOND
        assert send(store.outbox, at) == [made.id]
        for _ in range(2):
            token, _ = claim(store, at, made.id)
            assert store.claims.give_back([made.id], token, at, "back") == 1
            assert document(store, made.id)["dispatches"] == 0
    assert send(store.outbox, now + 4 * SECOND) == [made.id]
    assert store.recoveries.recover_messages(now + 15 * SECOND, grace_seconds=10, limit=10) == [made.id]


def test_a_doubled_message_of_a_postponed_event_counts_once(store: Store, now: datetime) -> None:
    made = event(now)
    store.events.insert([made], now, "made")
    assert send(store.outbox, now) == [made.id]
    for _ in range(2):
        token, _ = claim(store, now, made.id)
        assert store.claims.postpone([Postponement(made.id, token, now, now, "no room")], now) == 1
        assert document(store, made.id)["dispatches"] == 0


def test_what_is_given_back_is_no_attempt(store: Store, now: datetime) -> None:
    made = event(now)
    store.events.insert([made], now, "made")
    token, _ = claim(store, now, made.id)
    assert store.claims.give_back([made.id], token, now, "later") == 1
    found = document(store, made.id)
    assert (found["state"], found["attempt"]) == ("ready_queue", 0)
    assert claim(store, now, made.id)[1] == [made.id]


def test_a_cut_cancels_what_older_revisions_hold_after_it_and_nothing_else(
    store: Store, now: datetime
) -> None:
    owed, cut, running = event(now), event(now + SECOND), event(now + 2 * SECOND)
    newer, other = event(now + SECOND, revision=2), event(now + SECOND, schedule_id="s2")
    store.events.insert([owed, cut, running, newer, other], now, "made")
    claim(store, now + 2 * SECOND, running.id)
    assert store.cancellations.cancel_past_cut("s1", 2, now, now, "withdrawn") == 1
    states = {e.id: document(store, e.id)["state"] for e in (owed, cut, running, newer, other)}
    assert states == {
        owed.id: "ready_queue",
        cut.id: "cancelled",
        running.id: "running",
        newer.id: "ready_queue",
        other.id: "ready_queue",
    }
    assert store.cancellations.look_past_cut("s1", 2, now).running


def test_after_a_cut_the_last_sent_occurrence_is_known(store: Store, now: datetime) -> None:
    first, second, unsent = (event(now + seconds * SECOND) for seconds in (1, 2, 3))
    store.events.insert([second, first, unsent], now, "made")
    for sent in (second, first):
        token, _ = claim(store, now + 2 * SECOND, sent.id)
        store.outcomes.record([record(sent.id, token, State.COMPLETED, now)])
    store.cancellations.cancel_past_cut("s1", 2, now, now, "withdrawn")
    past = store.cancellations.look_past_cut("s1", 2, now)
    assert (past.running, past.last_sent) == (False, now + 2 * SECOND)


def test_what_a_lost_worker_may_have_sent_stays_owed_past_a_cut(store: Store, now: datetime) -> None:
    begun, waiting = event(now + SECOND), event(now + 2 * SECOND)
    store.events.insert([begun, waiting], now, "made")
    claim(store, now + SECOND, begun.id, lease=-1)
    store.recoveries.recover_workers(now + SECOND, delay_seconds=2, limit=10)
    assert store.cancellations.cancel_past_cut("s1", 2, now, now, "withdrawn") == 1
    assert document(store, begun.id)["state"] == "retrying"
    assert store.cancellations.look_past_cut("s1", 2, now).last_sent == now + SECOND


def test_histories_keep_their_first_line_and_their_last_fifty(store: Store, now: datetime) -> None:
    made = event(now)
    store.events.insert([made], now, "made")
    for i in range(60):
        token, _ = claim(store, now, made.id)
        store.claims.give_back([made.id], token, now, f"back {i}")
    status = document(store, made.id)["status"]
    assert len(status) == 51
    assert status[0]["message"] == "made"
    assert status[-1]["message"] == "back 59"


def test_a_history_is_bounded_however_often_its_event_is_dispatched(store: Store, now: datetime) -> None:
    store.events.insert([event(now)], now, "the first line")
    for _ in range(2 * KEPT_LAST):
        token, taken = take(store.outbox, now, limit=1, lease_seconds=60)
        assert len(taken) == 1
        store.outbox.put_back(token, now)
    document = store.mongo.collection("events").find_one()
    assert document is not None
    assert len(document["status"]) == KEPT_LAST + 1
    assert document["status"][0]["message"] == "the first line"
    take(store.outbox, now, limit=1, lease_seconds=60)
    document = store.mongo.collection("events").find_one()
    assert document is not None
    assert len(document["status"]) == KEPT_LAST + 2


def test_an_answer_that_looks_like_a_field_path_is_kept_as_text(store: Store, now: datetime) -> None:
    made = event(now)
    store.events.insert([made], now, "made")
    token, _ = claim(store, now, made.id)
    attempt = {"number": 1, "snippet": "$owner", "error": "$$NOW"}
    store.outcomes.record([OutcomeRecord(made.id, token, State.ERROR, "$state", None, attempt, now)])
    found = document(store, made.id)
    assert found["attempts"][0]["snippet"] == "$owner"
    assert found["status"][-1]["message"] == "$state"


@pytest.mark.parametrize("state", sorted(FINAL))
def test_nothing_moves_a_finished_event(store: Store, now: datetime, state: State) -> None:
    made = event(now)
    store.events.insert([made], now, "made")
    token, _ = claim(store, now, made.id)
    store.outcomes.record([record(made.id, token, state, now)])
    before = document(store, made.id)
    assert claim(store, now, made.id)[1] == []
    assert take(store.outbox, now, limit=10, lease_seconds=600)[1] == []
    assert store.cancellations.cancel_all("s1", 1, now, "withdrawn") == 0
    assert store.claims.give_back([made.id], token, now, "back") == 0
    assert store.recoveries.recover_workers(now, delay_seconds=0, limit=10) == ([], [])
    assert document(store, made.id) == before


def test_every_state_is_either_living_or_final() -> None:
    assert set(State) == LIVING | FINAL
    assert not LIVING & FINAL

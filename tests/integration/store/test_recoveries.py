"""Which messages count as lost, and which workers, judged by an event's own fields."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduler_app.domain.action import FRESH_FOR
from scheduler_app.domain.states import MAX_ISOLATED_LOSSES, SUSPECT_AFTER
from scheduler_app.store import Store
from scheduler_app.store.recoveries import MAX_GRACE_DOUBLINGS
from scheduler_app.store.waiting_work import Work
from tests.builders import event
from tests.documents import event_document

SECOND = timedelta(seconds=1)
GRACE = 10


def put(store: Store, now: datetime, second: int = 0, **fields: Any) -> str:
    """An event with these fields."""
    made = event(now + second * SECOND)
    store.events.insert([made], now, "made")
    store.mongo.collection("events").update_one({"_id": made.id}, {"$set": fields})
    return made.id


def row(store: Store, event_id: str) -> dict[str, Any]:
    found = event_document(store, event_id)
    assert found is not None
    return found


def lost(store: Store, now: datetime, **rest: Any) -> list[str]:
    return store.recoveries.recover_messages(now, grace_seconds=GRACE, limit=10, **rest)


@pytest.mark.parametrize(
    ("fields", "seconds"),
    [
        ({}, 10),
        ({"dispatches": 1}, 10),
        ({"dispatches": 2}, 20),
        ({"dispatches": 3}, 40),
        ({"dispatches": 3, "attempt": 1}, 20),
        ({"dispatches": 3, "attempt": 2, "attempts_before": 1}, 20),
        ({"dispatches": 3, "lost_leases": 1}, 20),
        ({"dispatches": 3, "lost_leases": 2}, 10),
        ({"dispatches": 1, "attempt": 5}, 10),
        ({"dispatches": 99}, 10 * 2**MAX_GRACE_DOUBLINGS),
        ({"dispatches": "x", "attempt": "x", "attempts_before": "x", "lost_leases": "x"}, 10),
        ({"dispatched_at": "x"}, 10),
    ],
)
def test_a_message_is_lost_after_a_grace_that_doubles_with_each_that_led_to_no_claim(
    store: Store, now: datetime, fields: dict[str, Any], seconds: int
) -> None:
    given: dict[str, Any] = {"state": "worker_queue", "dispatched_at": now}
    made = put(store, now, **given | fields)
    assert lost(store, now + seconds * SECOND) == []
    assert lost(store, now + seconds * SECOND + timedelta(milliseconds=1)) == [made]
    found = row(store, made)
    assert (found["state"], found["status"][-1]["message"]) == (
        "ready_queue",
        "Recovered: its message was lost",
    )
    assert lost(store, now + 999 * SECOND) == []


@pytest.mark.parametrize(
    ("dispatched_after", "seconds"), [(-5, 10), (30, 40), (99, 109), (40 + 59, 109), (3_600, 10)]
)
def test_the_grace_counts_from_its_dispatch_unless_that_lies_ahead(
    store: Store, now: datetime, dispatched_after: int, seconds: int
) -> None:
    dispatched_at = now + dispatched_after * SECOND
    made = put(store, now, state="worker_queue", dispatched_at=dispatched_at)
    assert lost(store, now + seconds * SECOND) == []
    assert lost(store, now + (seconds + 1) * SECOND) == [made]


def test_what_waits_or_runs_or_has_an_impossible_time_lost_no_message(store: Store, now: datetime) -> None:
    put(store, now, 0, state="ready_queue")
    put(store, now, 1, state="running")
    put(store, now, 2, state="worker_queue", due_at=datetime(1969, 1, 1, tzinfo=UTC))
    put(store, now, 3, state="worker_queue", queue="slow", routed=True)
    last = put(store, now, 4, state="worker_queue")
    first = put(store, now, -4, state="worker_queue")
    later = now + 60 * SECOND
    assert lost(store, later, queue="slow") != []
    assert store.recoveries.recover_messages(later, grace_seconds=GRACE, limit=1) == [first]
    assert lost(store, later) == [last]


def test_only_what_was_late_or_was_not_when_it_was_dispatched_is_recovered_where_that_is_asked(
    store: Store, now: datetime
) -> None:
    late_by = FRESH_FOR // SECOND
    ids = [
        put(store, now, 0, state="worker_queue", dispatched_at=now + (late_by - 1) * SECOND),
        put(store, now, 1, state="worker_queue", dispatched_at=now + (1 + late_by) * SECOND),
        put(store, now, 2, state="worker_queue", dispatched_at=now, lost_leases=SUSPECT_AFTER),
    ]
    later = now + 600 * SECOND
    assert lost(store, later, sent_late=False) == ids[:1]
    assert lost(store, later, sent_late=True) == ids[1:]
    assert lost(store, later) == []


def running(store: Store, now: datetime, second: int = 0, *, over: bool = True, **fields: Any) -> str:
    """A claimed event whose lease, by mongod's clock, was over a minute ago, or has a minute left."""
    lease_until = store.mongo.server_time() + (-60 if over else 60) * SECOND
    given: dict[str, Any] = {
        "state": "running",
        "owner": "token",
        "lease_until": lease_until,
        "dispatches": 1,
    }
    return put(store, now, second, **given | fields)


def recovered(store: Store, now: datetime, **rest: Any) -> tuple[list[str], list[str]]:
    again, spent = store.recoveries.recover_workers(now, delay_seconds=2, limit=10, **rest)
    return sorted(again), sorted(spent)


def test_an_event_whose_lease_is_over_is_tried_again_after_a_delay_and_keeps_its_owner(
    store: Store, now: datetime
) -> None:
    made = running(store, now, isolated="other", due_at=now)
    held = running(store, now, 1, over=False)
    awaited = running(store, now, 2, completion={"awaiting": True})
    assert Work.LEASE_OVER in store.waiting_work.kinds(now + 60 * SECOND)
    assert recovered(store, now + 60 * SECOND) == ([made], [])
    found = row(store, made)
    assert (found["state"], found["owner"], found["lost_leases"]) == ("retrying", "token", 1)
    assert (found["due_at"], found["postponed_from"]) == (now + 62 * SECOND, now)
    assert "Recovered: its worker did not report" in found["status"][-1]["message"]
    assert not found.keys() & {"lease_until", "isolated"}
    assert found["isolated_losses"] == 0, "another suspect's request was being made"
    assert [row(store, each)["state"] for each in (held, awaited)] == ["running"] * 2
    assert Work.LEASE_OVER not in store.waiting_work.kinds(now + 60 * SECOND)
    assert recovered(store, now + 60 * SECOND) == ([], [])


def test_an_event_that_was_postponed_keeps_the_time_at_which_it_fell_due(store: Store, now: datetime) -> None:
    made = running(store, now, postponed_from=now - 60 * SECOND)
    recovered(store, now)
    assert row(store, made)["postponed_from"] == now - 60 * SECOND


def test_leases_end_later_by_as_much_as_mongod_s_clock_has_jumped_ahead(store: Store, now: datetime) -> None:
    made = running(store, now)
    assert recovered(store, now, jumped_ahead_seconds=3_600.0) == ([], [])
    assert recovered(store, now, jumped_ahead_seconds=50.0) == ([made], [])


def test_losses_during_its_own_request_end_an_event_in_error_and_others_do_not(
    store: Store, now: datetime
) -> None:
    last = MAX_ISOLATED_LOSSES - 1
    spent = running(store, now, 0, isolated="token", isolated_losses=last, lost_leases=4)
    not_yet = running(store, now, 1, isolated="token", isolated_losses=last - 1)
    beside = running(store, now, 2, isolated="another", isolated_losses=last)
    plain = running(store, now, 3, isolated_losses=last)
    assert recovered(store, now) == (sorted([not_yet, beside, plain]), [spent])
    found = row(store, spent)
    assert (found["state"], found["lost_leases"], found["isolated_losses"]) == ("error", 5, last + 1)
    assert found["archived_at"] == now
    assert found["notify"] == {"when": "on_failure", "since": now}
    assert "workers were lost while its own request was being made" in found["status"][-1]["message"]
    assert [row(store, each)["isolated_losses"] for each in (not_yet, beside, plain)] == [last, last, last]


def test_a_corrupt_count_of_losses_sets_its_event_aside_and_no_other(store: Store, now: datetime) -> None:
    bent, made = running(store, now, lost_leases="x"), running(store, now, 1, lost_leases=None)
    assert recovered(store, now) == ([made], [])
    assert (row(store, bent)["state"], row(store, made)["lost_leases"]) == ("error", 1)

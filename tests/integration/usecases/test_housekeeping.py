"""What recovery and inspection find, how far they look, and what they say of it."""

from datetime import datetime, timedelta

import pytest

from scheduler_app.domain.action import QueueLengths
from scheduler_app.domain.event import Event
from scheduler_app.domain.states import MAX_ISOLATED_LOSSES, State
from scheduler_app.store import Store
from scheduler_app.usecases.duties import housekeeping
from scheduler_app.usecases.duties.housekeeping import (
    INSPECTED_AGE,
    INSPECTION_LOOK_BACK,
    NEARLY_EMPTY,
    RETRY_DELAY_SECONDS,
    Inspection,
    Recovery,
    RecoveryResult,
)
from tests.builders import LONG_OVER, event, schedule
from tests.documents import event_document

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def made(store: Store, now: datetime) -> list[Event]:
    """Three events that were due an hour ago."""
    events = [event(now - 60 * MINUTE, f"s{number}") for number in range(3)]
    store.events.insert(events, now, "made")
    return events


def test_recovery_says_of_how_many_workers_were_lost(store: Store, made: list[Event], now: datetime) -> None:
    store.claims.claim([each.id for each in made], until=now, now=now, lease_seconds=LONG_OVER, worker="w1")
    events = store.mongo.collection("events")
    last = {"isolated": "$owner", "isolated_losses": MAX_ISOLATED_LOSSES - 1}
    events.update_one({"_id": made[0].id}, [{"$set": last}])
    assert Recovery(store).recover_workers(now) == RecoveryResult(workers=2, messages=0, set_aside=1)
    again = events.distinct("due_at", {"state": State.RETRYING.value})
    assert again == [now + timedelta(seconds=RETRY_DELAY_SECONDS)]


def test_recovery_says_how_many_messages_were_not_sent_or_lost(
    store: Store, made: list[Event], now: datetime
) -> None:
    recovery, ready = Recovery(store), store.outbox.due(now, limit=10)
    store.outbox.take(ready, now, now, lease_seconds=-1)
    assert recovery.recover_dispatches(now) == RecoveryResult(workers=0, messages=3, set_aside=0)
    store.outbox.sent(store.outbox.take(ready, now, now, lease_seconds=600)[0])
    full, later = QueueLengths(fresh=NEARLY_EMPTY + 1, late=NEARLY_EMPTY + 1), now + 10 * MINUTE
    assert recovery.recover_messages(later, queue=full) == RecoveryResult(0, 0, 0)
    assert recovery.recover_messages(later, queue=QueueLengths()) == RecoveryResult(0, 3, 0)


def test_a_beat_looks_again_at_once_after_a_page_of_whatever_was_lost() -> None:
    assert RecoveryResult(workers=4, messages=2, set_aside=1).total == 7


def forgotten(store: Store, now: datetime, at: datetime) -> str:
    """An event that waits for no time."""
    made = event(at, f"at-{at:%H-%M-%S}")
    store.events.insert([made], now, "made")
    store.mongo.collection("events").update_one({"_id": made.id}, {"$unset": {"due_at": ""}})
    return made.id


def test_an_event_that_waits_for_no_time_is_looked_for_once_when_it_is_old_enough(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "DOCUMENTS_A_PASS", 2)
    inspection = Inspection(store)
    too_old = forgotten(store, now, now - INSPECTION_LOOK_BACK - SECOND)
    found = [forgotten(store, now, now - 10 * number * MINUTE) for number in (1, 2, 3)]
    young = forgotten(store, now, now - INSPECTED_AGE)
    assert inspection.inspect(now) == 2
    assert inspection.inspect(now) == 1, "a full pass may have left some"
    behind = forgotten(store, now, now - 5 * MINUTE)
    assert inspection.inspect(now + SECOND) == 1
    states = {each: event_document(store, each)["state"] for each in (too_old, *found, young, behind)}
    assert states == dict.fromkeys((*found, young), "error") | dict.fromkeys((too_old, behind), "ready_queue")


def test_an_inspection_says_how_many_documents_it_found(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "DOCUMENTS_A_PASS", 1)
    schedules, events = store.mongo.collection("schedules"), store.mongo.collection("events")
    store.schedules.insert_many([schedule(now, name) for name in ("a", "b")])
    schedules.update_one({"_id": "a"}, {"$set": {"name": 5}})
    # It is found although the pass reads no further than the first schedule.
    schedules.update_one({"_id": "b"}, {"$set": {"next_run_at": "noon"}})
    store.events.insert([event(now, "odd")], now, "made")
    events.update_one({"schedule_id": "odd"}, {"$set": {"state": "unknown"}})
    forgotten(store, now, now - 10 * MINUTE)
    assert Inspection(store).inspect(now) == 4
    assert schedules.distinct("state") == events.distinct("state") == ["error"]


def test_an_inspection_reads_all_schedules_page_by_page_and_begins_again(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "DOCUMENTS_A_PASS", 2)
    monkeypatch.setattr(housekeeping, "PASSES_BETWEEN_LOOKS", 3)
    store.schedules.insert_many([schedule(now, f"s{number}") for number in range(6)])
    pages: list[list[str]] = []
    monkeypatch.setattr(store.last_runs, "keep", lambda ids, before: pages.append(ids))
    inspection = Inspection(store)
    for _ in range(8):
        inspection.inspect(now)
    # The first round does not know yet that it takes longer than what lies between two looks.
    assert pages[4:] == [["s0", "s1"], ["s2", "s3"], ["s4", "s5"], []]


def test_all_that_waits_is_read_for_arrays_in_one_pass_of_many(
    store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "PASSES_A_LOOK_FOR_ARRAYS", 4)
    found, looked_in = list[int](), list[int]()

    def remembers() -> list[str]:
        looked_in.append(len(found))
        return ["due_at"]

    monkeypatch.setattr(store.inspections, "array_fields", remembers)
    inspection = Inspection(store)
    for _ in range(9):
        found.append(inspection.inspect(now))
    assert (looked_in, set(found)) == ([0, 4, 8], {0})

"""A message that a worker holds because it is behind is late, and not lost."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from scheduler_app.config import Settings
from scheduler_app.domain.action import CALLBACKS, QueueLengths
from scheduler_app.store import Store
from scheduler_app.usecases.duties import housekeeping
from scheduler_app.usecases.duties.housekeeping import (
    ASK_WORKERS_SECONDS,
    MOST_GRACE_SECONDS,
    Recovery,
    WorkersBehind,
)
from tests.builders import event

SECOND = timedelta(seconds=1)


@pytest.fixture
def overdue(store: Store, now: datetime) -> str:
    """An event that was dispatched, and has been due for a minute."""
    made = event(now - 60 * SECOND)
    store.events.insert([made], made.due_at, "made")
    dispatched = {"state": "worker_queue", "dispatched_at": made.due_at, "dispatches": 1}
    store.mongo.collection("events").update_one({}, {"$set": dispatched})
    return made.id


def recovered(store: Store, now: datetime) -> int:
    return Recovery(store).recover_messages(now, queue=QueueLengths()).messages


def report(settings: Settings, **facts: Any) -> None:
    other = Store(settings)
    other.processes.report("worker", **facts)
    other.close()


@pytest.mark.usefixtures("overdue")
def test_what_no_worker_can_hold_any_more_is_recovered(
    store: Store, settings: Settings, now: datetime
) -> None:
    report(settings, queues=[CALLBACKS], behind_since=None)
    report(settings, queues=[CALLBACKS], behind_since=now - 5 * SECOND)
    report(settings, queues=["other"], behind_since=now - 90 * SECOND)
    assert recovered(store, now) == 1


@pytest.mark.usefixtures("overdue")
def test_what_a_worker_may_hold_is_left_to_it(store: Store, settings: Settings, now: datetime) -> None:
    report(settings, queues=[CALLBACKS], behind_since=now - 5 * SECOND)
    report(settings, queues=[CALLBACKS], behind_since=now - 59 * SECOND)
    assert recovered(store, now) == 0


def test_a_worker_that_stays_behind_does_not_hold_up_recovery_for_ever(
    store: Store, settings: Settings, overdue: str, now: datetime
) -> None:
    report(settings, queues=[CALLBACKS], behind_since=now - 3_600 * SECOND)
    assert recovered(store, now) == 0
    assert recovered(store, now + MOST_GRACE_SECONDS * SECOND) == 1
    assert store.events.get(overdue) is not None


@pytest.mark.usefixtures("overdue")
@pytest.mark.parametrize("wrong", ["x", 5, [1], {"$x": 1}])
def test_a_report_that_cannot_be_read_counts_as_none(
    store: Store, settings: Settings, now: datetime, wrong: object
) -> None:
    report(settings, queues=[CALLBACKS], behind_since=wrong)
    assert recovered(store, now) == 1


def test_workers_are_asked_again_after_a_while_and_one_that_has_caught_up_holds_nothing_up(
    store: Store, settings: Settings, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_at = 100.0
    monotonic = asked_at
    monkeypatch.setattr(housekeeping, "monotonic", lambda: monotonic)
    behind, worker = WorkersBehind(store), Store(settings)
    worker.processes.report("worker", queues=[CALLBACKS], behind_since=now - 59 * SECOND)
    assert behind.grace_seconds(CALLBACKS, now) == 69
    worker.processes.report("worker", queues=[CALLBACKS], behind_since=None)
    worker.close()
    monotonic = asked_at + ASK_WORKERS_SECONDS - 0.1
    assert behind.grace_seconds(CALLBACKS, now) == 69
    monotonic = asked_at + ASK_WORKERS_SECONDS
    assert behind.grace_seconds(CALLBACKS, now) == 10

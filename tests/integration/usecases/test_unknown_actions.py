"""Actions of a kind that this release does not know, or that this worker does not execute."""

from datetime import datetime, timedelta

from scheduler_app.actions.kind import Executors
from scheduler_app.clock import clock
from scheduler_app.domain.event import Event
from scheduler_app.domain.schedule import ScheduleState
from scheduler_app.store import Store
from scheduler_app.store.schedules.documents import CorruptSchedule
from scheduler_app.usecases.duties.expansion import Expansion
from scheduler_app.worker import Pipeline
from tests.acceptance.journal import Journal
from tests.builders import event, schedule
from tests.executors import executors
from tests.integration.usecases.test_delivery import Bench, bench, journal, start
from tests.processes import PATIENCE_SECONDS

__all__ = ["bench", "journal", "start"]  # fixtures

SECOND = timedelta(seconds=1)


def make_unknown(store: Store, schedule_id: str, kind: object = "carrier_pigeon") -> None:
    which = {"_id": schedule_id}
    store.mongo.collection("schedules").update_one(which, {"$set": {"action.type": kind}})


def test_a_schedule_of_an_unknown_kind_is_left_to_another_release_and_the_others_go_on(
    bench: Bench, journal: Journal
) -> None:
    now = clock.now()
    bench.schedule(journal.url("/unknown"), "unknown")
    bench.schedule(journal.url("/healthy"), "healthy")
    make_unknown(bench.store, "unknown")
    found = bench.store.schedules.get("unknown")
    assert isinstance(found, CorruptSchedule)
    assert found.readable_elsewhere
    assert "'carrier_pigeon', and this release knows http" in found.reason
    ids = [bench.event(now, each) for each in ("unknown", "healthy")]
    assert bench.deliver(ids) == 2
    assert [bench.state(each) for each in ids] == ["ready_queue", "completed"]
    assert "carrier_pigeon" in bench.document(ids[0])["status"][-1]["message"]
    assert not journal.calls["/unknown"]


def test_a_beat_sets_no_schedule_aside_whose_kind_it_does_not_know(bench: Bench) -> None:
    now = clock.now()
    for name in ("unknown", "healthy"):
        bench.schedule("http://127.0.0.1:9/", name)
    make_unknown(bench.store, "unknown")
    expansion = Expansion(bench.store, timeframe_seconds=5)
    made = {each.schedule_id for each in expanded(expansion, now)}
    assert made == {"healthy"}
    row = bench.store.mongo.collection("schedules").find_one({"_id": "unknown"})
    assert row is not None
    assert row["state"] == ScheduleState.ACTIVE.value


def expanded(expansion: Expansion, now: datetime) -> list[Event]:
    """The events of two ticks."""
    return [event for _ in range(2) for event in expansion.expand_page(now).events]


def test_a_kind_that_is_no_text_is_a_corrupt_document(bench: Bench) -> None:
    bench.schedule("http://127.0.0.1:9/", "bent")
    make_unknown(bench.store, "bent", 5)
    found = bench.store.schedules.get("bent")
    assert isinstance(found, CorruptSchedule)
    assert not found.readable_elsewhere
    assert "action.type is an int, not text" in found.reason


def test_a_worker_leaves_what_it_does_not_execute_to_others(store: Store, journal: Journal) -> None:
    now = clock.now()
    http = executors()
    pipeline = Pipeline(
        store,
        Executors({"another": http.of("http")}),
        now=clock.now,
        worker="w1",
        horizon_seconds=5,
        max_events=100,
    )
    store.schedules.insert(schedule(now - 10 * SECOND, "s1", url=journal.url("/a")))
    due = event(now, "s1")
    store.events.insert([due], now, "made")
    pipeline.start()
    try:
        assert pipeline.delivery.deliver([due.id]) == 1
        assert pipeline.wait_until_empty(PATIENCE_SECONDS)
    finally:
        pipeline.stop()
    found = store.events.get(due.id)
    assert found is not None
    assert found.state == "ready_queue"
    assert found.due_at is not None
    assert found.due_at >= now + timedelta(minutes=1)
    assert "w1 leaves it to others: it executes no actions of kind http" in found.status[-1]["message"]
    assert not journal.calls["/a"]

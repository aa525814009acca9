"""How a worker process ends within its grace period, and what it does when its host's clock is wrong."""

import json
import math
import os
import resource
import threading
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast
from urllib.request import urlopen

import pytest
import redis
from celery import Celery
from celery.exceptions import Reject
from kombu.exceptions import OperationalError
from prometheus_client import CollectorRegistry

from scheduler_app.broker import inspection, task
from scheduler_app.clock import clock, monotonic
from scheduler_app.config import Settings
from scheduler_app.embedded import free_port
from scheduler_app.store import Store
from scheduler_app.usecases.heartbeat import Presence
from scheduler_app.worker import Pipeline, process
from scheduler_app.worker.origins import Load
from scheduler_app.worker.process import WorkerGauges, WorkerProcess, held_events_report
from tests.acceptance.journal import Journal
from tests.builders import event, schedule
from tests.executors import executors
from tests.processes import PATIENCE_SECONDS, wait_until

SECOND = timedelta(seconds=1)


def pipeline_of(store: Store) -> Pipeline:
    """Not started."""
    return Pipeline(
        store,
        executors(),
        now=clock.now,
        worker="w1",
        horizon_seconds=5,
        max_events=100,
        queues=("callbacks", "slow"),
    )


class Bench:
    """A worker process but for its beginning, which belongs to a whole process."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self.store = store
        self.app = Celery("test", broker=settings.broker_url, set_as_current=False)
        self.app.conf.update(broker_connection_retry=False, broker_transport_options={"max_retries": 1})
        self.pipeline = pipeline_of(store)
        self.pipeline.start()
        self.process = WorkerProcess(settings, "w1@host", self.app, self.pipeline, self._heartbeat)

    def _heartbeat(self, role: str, **rest: Any) -> Presence:
        assert role == "worker"
        return Presence(self.store, clock, role, **rest)

    def events(self, url: str, count: int) -> list[str]:
        now = clock.now()
        self.store.schedules.insert(schedule(now - 60 * SECOND, url=url, timeout_seconds=60))
        made = [event(now - number * SECOND) for number in range(count)]
        self.store.events.insert(made, now, "made")
        return [each.id for each in made]

    def states(self) -> list[str]:
        found = self.store.mongo.collection("events").find({}, {"state": 1}).sort("_id")
        return [row["state"] for row in found]


@pytest.fixture
def journal() -> Iterator[Journal]:
    with closing(Journal()) as made:
        yield made


@pytest.fixture
def exits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The statuses with which the process would have been ended at once."""
    found: list[int] = []
    monkeypatch.setattr(os, "_exit", found.append)
    monkeypatch.setattr(process, "LAST_WORDS_SECONDS", 0.0)
    return found


@pytest.fixture
def make(store: Store, settings: Settings, exits: list[int]) -> Iterator[Callable[..., Bench]]:
    """Makes them; while `exits` stands in for the end of this process, their grace comes to its end."""
    made: list[Bench] = []

    def bench(**changes: Any) -> Bench:
        made.append(Bench(store, replace(settings, **changes)))
        return made[-1]

    yield bench
    for each in made:
        each.pipeline.stop_starting()
        each.pipeline.interrupt()
        each.pipeline.stop()
        end_the_grace(each.process)


def end_the_grace(made: WorkerProcess) -> None:
    """Its thread would end this process of tests, later."""
    made._hurry.set()
    for thread in threading.enumerate():
        if thread.name == "grace":
            thread.join()


def _listening(client: Any) -> Any:
    return client.pubsub()


def commands(listener: Any) -> list[tuple[str, str, list[str]]]:
    """The remote commands that were sent since the last call: name, queue and destinations."""
    found = []
    while (heard := listener.get_message(timeout=0.2)) is not None:
        if heard["type"] == "pmessage":
            envelope = json.loads(heard["data"])
            body = json.loads(b64decode(envelope["body"]))
            found.append((body["method"], body["arguments"]["queue"], body["destination"]))
    return found


def test_a_worker_whose_clock_is_further_off_than_the_horizon_consumes_nothing_until_it_is_right(
    make: Callable[..., Bench], settings: Settings
) -> None:
    bench = make()
    horizon = settings.horizon_seconds
    judge = bench.process._judge_clock
    with closing(redis.Redis.from_url(settings.broker_url)) as client, _listening(client) as listener:
        listener.psubscribe("*pidbox*")
        judge(horizon)
        judge(-horizon)
        assert commands(listener) == []
        assert bench.process._facts()["consuming"] is True
        judge(horizon + 0.1)
        assert commands(listener) == [
            ("cancel_consumer", "callbacks", ["w1@host"]),
            ("cancel_consumer", "slow", ["w1@host"]),
        ]
        judge(-horizon - 0.1)
        assert commands(listener) == []
        assert bench.process._facts()["consuming"] is False
        judge(0.0)
        assert commands(listener) == [
            ("add_consumer", "callbacks", ["w1@host"]),
            ("add_consumer", "slow", ["w1@host"]),
        ]
    assert bench.process._facts()["queues"] == ["callbacks", "slow"]


def test_a_worker_reports_itself_by_its_name_with_what_it_serves_and_hears_of_its_clock(
    make: Callable[..., Bench], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A measurement between the two reports would say that its clock is right. Whether one is due depends on
    # when an earlier test made one.
    monkeypatch.setattr("scheduler_app.clock.RESYNC_SECONDS", math.inf)
    bench = make()
    heartbeat = bench.process.heartbeat
    heartbeat.beat_once()
    (found,) = bench.store.processes.alive()
    assert (found.role, found.name, found.queues) == ("worker", "w1@host", ("callbacks", "slow"))
    assert (found.consuming, found.events_limit) == (True, 100)
    heartbeat._on_offset(settings.horizon_seconds + 1)
    heartbeat.beat_once()
    assert [each.consuming for each in bench.store.processes.alive()] == [False]


def test_a_broker_that_was_away_is_told_of_a_wrong_clock_by_the_next_measurement(
    make: Callable[..., Bench], settings: Settings
) -> None:
    bench = make(broker_url="redis://127.0.0.1:1")
    for _ in range(2):
        with pytest.raises(OperationalError):
            bench.process._judge_clock(settings.horizon_seconds + 1)
        assert bench.process._facts()["consuming"] is True


def test_a_worker_that_ends_takes_no_message_gives_back_what_waits_and_waits_for_what_is_in_flight(
    make: Callable[..., Bench], journal: Journal, slow: Callable[[], None], exits: list[int]
) -> None:
    bench = make(worker_soft_shutdown_seconds=60.0)
    flying, waiting = bench.events(journal.url("/slow"), 2)
    assert bench.process._deliver([flying]) == 1
    wait_until(lambda: len(journal.calls["/slow"]) == 1, "the request")
    assert bench.process._in_flight()["in_flight"] == [flying]
    bench.process.heartbeat.start()
    stopping = threading.Thread(target=bench.process.stop)
    stopping.start()
    wait_until(bench.process._ending.locked, "the end to begin")
    wait_until(lambda: bench.pipeline.capacity._stopping, "claims to stop")
    wait_until(lambda: bench.pipeline.recorder._gathered._at_once, "outcomes to be gathered no more")
    assert all(thread.daemon for thread in threading.enumerate() if thread.name == "grace")
    with pytest.raises(Reject) as rejected:
        bench.process._deliver([waiting])
    assert rejected.value.requeue is True
    assert stopping.is_alive()
    slow()
    stopping.join(PATIENCE_SECONDS)
    assert not stopping.is_alive()
    bench.process.heartbeat.join(PATIENCE_SECONDS)
    assert not bench.process.heartbeat.is_alive()
    assert sorted(bench.states()) == ["completed", "ready_queue"]
    assert exits == []


@pytest.mark.parametrize("twice", [False, True], ids=["when-it-is-over", "when-it-is-asked-twice"])
def test_after_its_grace_a_worker_gives_back_what_is_in_flight_and_ends_by_force(
    make: Callable[..., Bench], journal: Journal, slow: Callable[[], None], exits: list[int], *, twice: bool
) -> None:
    bench = make(worker_soft_shutdown_seconds=60.0 if twice else 0.0)
    (flying,) = bench.events(journal.url("/slow"), 1)
    assert bench.process._deliver([flying]) == 1
    wait_until(lambda: len(journal.calls["/slow"]) == 1, "the request")
    bench.process.shut_down()
    if twice:
        bench.process.shut_down()
    wait_until(lambda: exits == [1], "the process to be ended")
    assert bench.pipeline.wait_until_empty(PATIENCE_SECONDS)
    assert bench.states() == ["ready_queue"]
    assert bench.pipeline.recorder._ended.is_set(), "a MongoDB that is away is waited for no longer"
    end_the_grace(bench.process)
    assert exits == [1], "there is one grace, however often its end is asked for"


def test_the_last_words_are_for_what_was_interrupted(
    make: Callable[..., Bench], exits: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, said = make(worker_soft_shutdown_seconds=0.0), list[str]()
    monkeypatch.setattr(bench.pipeline, "interrupt", lambda: said.append("interrupted"))
    monkeypatch.setattr(process, "time", SimpleNamespace(sleep=lambda seconds: said.append("last words")))
    bench.process._enforce_grace(0.0)
    assert said == ["interrupted", "last words"]
    assert exits == [1]


def test_a_worker_that_has_started_delivers_and_can_be_asked_what_it_does(
    store: Store,
    settings: Settings,
    journal: Journal,
    slow: Callable[[], None],
    exits: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    registry = CollectorRegistry()
    monkeypatch.setattr(process, "REGISTRY", registry)
    monkeypatch.setattr(inspection, "_report", None)
    monkeypatch.setattr(task, "_deliver", None)
    assert inspection.in_flight(None) == {"error": "this worker has not started yet"}
    port = free_port()
    settings = replace(settings, metrics_port=port, metrics_host="127.0.0.1")
    app = Celery("test", broker=settings.broker_url, set_as_current=False)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, hard - 1), hard))
    made = WorkerProcess(
        settings,
        "w1@host",
        app,
        pipeline_of(store),
        lambda role, **rest: Presence(store, clock, role, **rest),
    )
    before = set(threading.enumerate())
    made.start()
    started = set(threading.enumerate()) - before
    assert all(thread.daemon for thread in started), "none keeps the process from ending"
    try:
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
        now = clock.now()
        store.schedules.insert(schedule(now - 60 * SECOND, url=journal.url("/slow")))
        due = event(now)
        store.events.insert([due], now, "made")
        assert task._deliver is not None
        assert task._deliver([due.id]) == 1
        wait_until(lambda: len(journal.calls["/slow"]) == 1, "the request")
        assert inspection.in_flight(None)["in_flight"] == [due.id]
        assert registry.get_sample_value("scheduler_worker_events", {"state": "in_flight"}) == 1
        assert made.heartbeat.is_alive()
        with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            assert b"scheduler_" in answer.read()
        slow()
    finally:
        slow()
        made.stop()
        assert exits == []
        end_the_grace(made)
    ours = [thread for thread in started if type(thread).__module__.startswith("scheduler_app.worker")]
    assert len(ours) >= 9
    wait_until(lambda: not any(thread.is_alive() for thread in ours), "its threads to end")


def test_the_parts_end_in_the_order_in_which_events_pass_them(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them still takes what the one before it leaves."""
    pipeline, ended = pipeline_of(store), list[str]()
    askers = ("followers", "leases", "withholding", "rejudging")
    for name in (*askers, "handover", "flow_control", "courier", "recorder", "reports"):
        part = getattr(pipeline, name)
        monkeypatch.setattr(part, "stop", lambda name=name: ended.append(f"{name} stops"))
        monkeypatch.setattr(part, "join", lambda _, name=name: ended.append(f"{name} ended"))
    pipeline.stop()
    assert ended == [
        *(f"{name} stops" for name in (*askers, "handover", "flow_control", "courier")),
        *(f"{name} ended" for name in ("handover", "flow_control", "courier")),
        *("recorder stops", "recorder ended", "reports stops", "reports ended"),
    ]


def load(name: str, in_flight: int = 1, waiting: int = 2, postponed: int = 3, full: float = 4.06) -> Load:
    return Load(name, in_flight, 9, waiting, postponed, full)


def test_a_worker_reports_the_origins_that_cannot_keep_up_and_no_others(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = pipeline_of(store)
    loads = [load("idle", postponed=0, full=0.0), load("full", postponed=0), load("postponed", full=0.0)]
    pipeline.courier._loads = (*loads, *(load(f"o{number}") for number in range(5)))
    report = held_events_report(pipeline)
    assert (report["events"], report["events_limit"], report["unrecorded_seconds"]) == (0, 100, 0.0)
    assert [each["origin"] for each in report["origins"]] == ["full", "postponed", "o0", "o1", "o2"]
    assert report["origins"][0] == {
        "origin": "full",
        "in_flight": 1,
        "waiting": 2,
        "postponed": 0,
        "full_seconds": 4.1,
    }
    pipeline.backlog.put(1, 94.75)
    monkeypatch.setattr(process, "monotonic", lambda: 100.01)
    assert held_events_report(pipeline)["unrecorded_seconds"] == 5.3


def test_the_gauges_of_a_worker_name_the_busiest_origins_and_count_the_rest(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = pipeline_of(store)
    pipeline.courier._loads = (load("a", in_flight=4), load("b", in_flight=1))
    pipeline.courier._flying = cast(Any, dict.fromkeys(map(str, range(7))))
    pipeline.capacity.reserve(20)
    pipeline.backlog.put(3, monotonic() - 5)
    registry = CollectorRegistry()
    registry.register(WorkerGauges(pipeline))

    def gauge(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"scheduler_{name}", labels)

    assert [
        gauge("origin_events", origin="a", state=each) for each in ("in_flight", "waiting", "postponed")
    ] == [
        4,
        2,
        3,
    ]
    assert gauge("origin_events", origin="other", state="in_flight") == 2
    states = ("unrecorded", "in_flight", "waiting")
    assert [gauge("worker_events", state=each) for each in states] == [3, 7, 10]
    assert gauge("worker_events_limit") == 100
    assert 5 <= (gauge("oldest_unrecorded_seconds") or 0) < 300
    pipeline.courier._flying = {}
    assert gauge("origin_events", origin="other", state="in_flight") == 0
    monkeypatch.setattr(pipeline.flow_control, "open_breakers", lambda now: ["d"])
    assert gauge("destination_breaker_open", destination="d") == 1
    pipeline.capacity.release(19)
    assert gauge("worker_events", state="waiting") == 0, "what is looked at meanwhile may change"

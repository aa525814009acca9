"""One worker process: how it starts, its pool of threads, the events that it says it holds, and how it ends
within its grace period without losing an event.
"""

import os
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import click
from celery import Celery
from celery.concurrency import get_implementation
from celery.concurrency.thread import TaskPool as ThreadPool
from celery.exceptions import Reject
from prometheus_client import REGISTRY
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from scheduler_app.broker import inspection, task
from scheduler_app.broker.held_messages import held_messages
from scheduler_app.clock import clock, monotonic
from scheduler_app.config import InvalidSetting, Settings
from scheduler_app.health.startup import serve_metrics_of
from scheduler_app.telemetry import get_logger, metrics
from scheduler_app.usecases.heartbeat import Presence
from scheduler_app.worker import Pipeline, WorkerStopping

#: Origins that a worker names in its report.
REPORTED_ORIGINS = 5
OTHER = "other"


class WorkerGauges(Collector):
    """Reads its gauges when Prometheus asks. Names the busiest origins; `other` stands for the rest."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline

    def collect(self) -> Iterator[Metric]:
        pipeline = self._pipeline
        unrecorded, in_flight = pipeline.backlog.count, pipeline.courier.in_flight
        yield metrics.worker_events.family(
            {
                "unrecorded": unrecorded,
                "in_flight": in_flight,
                "waiting": max(0, pipeline.capacity.held - unrecorded - in_flight),
            }
        )
        yield metrics.worker_events_limit.family(pipeline.capacity.limit)
        yield metrics.oldest_unrecorded.family(pipeline.backlog.age(monotonic()))
        yield self._origins()
        open_breakers = pipeline.flow_control.open_breakers(monotonic())
        yield metrics.breaker_open.family(dict.fromkeys(open_breakers, 1))
        yield from pipeline.reports.origins.collect()

    def _origins(self) -> Metric:
        loads = self._pipeline.courier.loads()
        numbers: dict[tuple[str, str], float] = {}
        for load in loads:
            numbers[load.origin, "in_flight"] = load.in_flight
            numbers[load.origin, "waiting"] = load.waiting
            numbers[load.origin, "postponed"] = load.postponed
        rest = self._pipeline.courier.in_flight - sum(load.in_flight for load in loads)
        numbers[OTHER, "in_flight"] = max(0, rest)
        return metrics.origin_events.family(numbers)


def held_events_report(pipeline: Pipeline) -> dict[str, Any]:
    """Returns how full the worker is, and the origins that cannot keep up, for its process document."""
    return {
        "events": pipeline.capacity.held,
        "events_limit": pipeline.capacity.limit,
        "unrecorded_seconds": round(pipeline.backlog.age(monotonic()), 1),
        "origins": [
            {
                "origin": load.origin,
                "in_flight": load.in_flight,
                "waiting": load.waiting,
                "postponed": load.postponed,
                "full_seconds": round(load.full_seconds, 1),
            }
            for load in pipeline.courier.loads()
            if load.postponed or load.full_seconds
        ][:REPORTED_ORIGINS],
    }


def check_pool(pool: Any) -> None:
    """Raises InvalidSetting for a pool that does not share this process's claims, courier and recorder;
    `pool` is a class, or a name as in --pool."""
    found = get_implementation(_pool_asked_for() or pool)
    if not issubclass(found, ThreadPool):
        name = found.__module__.rpartition(".")[2]
        raise InvalidSetting(f"--pool {name} cannot deliver callbacks; leave it out, or give --pool threads")


def _pool_asked_for() -> str | None:
    """The --pool of the command line, word for word. Celery takes `prefork`, its own default, for no answer
    and gives the configured pool instead."""
    command = click.get_current_context(silent=True)
    if command is None or command.parent is None:
        return None  # not started by the command line
    _, words, _ = _parsed(command.parent, sys.argv[1:])
    options, _, _ = _parsed(command, words[1:])
    asked: str | None = options.get("pool")
    return asked


def _parsed(context: click.Context, words: list[str]) -> tuple[dict[str, Any], list[str], Any]:
    return context.command.make_parser(context).parse_args(list(words))


log = get_logger(__name__)

#: Time beyond the grace period, in seconds: for writing outcomes and giving events back.
LAST_WORDS_SECONDS = 3.0
#: Events that `inspect in_flight` names.
MAX_EVENTS_SHOWN = 1_000


class MakeHeartbeat(Protocol):
    """`Assembly.heartbeat`."""

    def __call__(
        self,
        role: str,
        *,
        name: str,
        facts: Callable[[], Mapping[str, Any]],
        on_offset: Callable[[float], None],
    ) -> Presence: ...


class WorkerProcess:
    """The parts that the threads of one worker process share, and their start and end."""

    def __init__(
        self,
        settings: Settings,
        name: str,
        app: Celery,
        pipeline: Pipeline,
        make_heartbeat: MakeHeartbeat,
    ) -> None:
        """`name` is the worker's node name in Celery, `app` the application that it consumes by."""
        self._settings = settings
        self._name = name
        self._app = app
        self._consuming = True
        self._ending = threading.Lock()
        self._hurry = threading.Event()
        self.pipeline = pipeline
        self.heartbeat = make_heartbeat("worker", name=name, facts=self._facts, on_offset=self._judge_clock)

    def start(self) -> None:
        _raise_file_limit()
        serve_metrics_of(self._settings, self.heartbeat.trouble, metrics.Role.WORKER)
        inspection.set_in_flight_report(self._in_flight)
        REGISTRY.register(WorkerGauges(self.pipeline))
        self.pipeline.start()
        self.heartbeat.start()
        task.set_delivery(self._deliver)

    def _deliver(self, ids: Sequence[str]) -> int:
        try:
            return self.pipeline.delivery.deliver(ids)
        except WorkerStopping:
            raise Reject("the worker ends; another one takes the message", requeue=True) from None

    def shut_down(self) -> None:
        """Gives back events whose attempts have not started; those in flight have the grace period left.

        A second call ends the grace period.
        """
        if not self._ending.acquire(blocking=False):
            self._hurry.set()
            return
        self.pipeline.stop_starting()
        grace = self._settings.worker_soft_shutdown_seconds
        watchdog = threading.Thread(target=self._enforce_grace, args=(grace,), name="grace", daemon=True)
        watchdog.start()

    def stop(self) -> None:
        """Waits for attempts in flight until the grace period ends. Called after the last task returned."""
        if not self._ending.locked():  # a remote `shutdown` comes without the signal
            self.shut_down()
        self.pipeline.wait_until_empty()
        self.pipeline.stop()
        self.heartbeat.stop()

    def _enforce_grace(self, grace: float) -> None:
        self._hurry.wait(grace)
        log.warning("worker.grace_over", message="Requests in flight are dropped and their events given back")
        self.pipeline.interrupt()
        time.sleep(LAST_WORDS_SECONDS)
        # Something is still held: MongoDB is away, most likely. Leases and recovery do the rest.
        log.error("worker.forced", message="The worker ends with events open; their leases will run out")
        os._exit(1)

    def _in_flight(self) -> dict[str, Any]:
        shown = self.pipeline.courier.event_ids()[:MAX_EVENTS_SHOWN]
        return {"in_flight": list(shown), **held_events_report(self.pipeline)}

    def _facts(self) -> dict[str, Any]:
        return {
            "consuming": self._consuming,
            "queues": list(self.pipeline.queues),
            "behind_since": held_messages.behind_since(clock.now()),
            **held_events_report(self.pipeline),
        }

    def _judge_clock(self, offset: float) -> None:
        """Celery holds a message until its eta by this host's own clock: where that is further off than the
        horizon, every message would be too early or too late. `offset` is measured from `now`, which a jump
        of mongod's clock does not move: that stops no worker."""
        fit = abs(offset) <= self._settings.horizon_seconds
        if fit == self._consuming:
            return
        # Noted only once the command is sent: a broker that is away is told again by the next measurement.
        if fit:
            for queue in self.pipeline.queues:
                self._app.control.add_consumer(queue, destination=[self._name])
            log.info("worker.consuming", message="The clock is right again; consuming")
        else:
            for queue in self.pipeline.queues:
                self._app.control.cancel_consumer(queue, destination=[self._name])
            log.error("worker.clock_unfit", message="The clock is too far off; not consuming until it is set")
        self._consuming = fit


def _raise_file_limit() -> None:
    """Raises the limit on open files: the courier may have more connections than the usual 1,024."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))

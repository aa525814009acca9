"""One worker process: how it starts, and how it ends within its grace period without losing an event."""

import os
import resource
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from celery import Celery
from celery.exceptions import Reject
from prometheus_client import REGISTRY

from scheduler_app.broker import inspection, task
from scheduler_app.config import Settings
from scheduler_app.health.startup import serve_metrics_of
from scheduler_app.telemetry import get_logger
from scheduler_app.telemetry.metrics import Role
from scheduler_app.usecases.heartbeat import Presence
from scheduler_app.worker import Pipeline, Stopping
from scheduler_app.worker.gauges import WorkerGauges, report

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
        serve_metrics_of(self._settings, self.heartbeat.trouble, Role.WORKER)
        inspection.answer_with(self._in_flight)
        REGISTRY.register(WorkerGauges(self.pipeline))
        self.pipeline.start()
        self.heartbeat.start()
        task.deliver_by(self._deliver)

    def _deliver(self, ids: Sequence[str]) -> int:
        try:
            return self.pipeline.delivery.deliver(ids)
        except Stopping:
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
        return {"in_flight": list(shown), **report(self.pipeline)}

    def _facts(self) -> dict[str, Any]:
        return {"consuming": self._consuming, "queues": list(self.pipeline.queues), **report(self.pipeline)}

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

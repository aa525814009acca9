"""A worker's beginning and end: what its tasks share, and how it gives back what it cannot finish."""

import os
import resource
import threading
import time
from typing import Any

from celery import Celery, signals

from scheduler_app.callback import Guard, Sender, parse_networks
from scheduler_app.celery_app import settings
from scheduler_app.celery_app.settings import QUEUE
from scheduler_app.clock import clock
from scheduler_app.config import Settings
from scheduler_app.delivery import Courier, Delivery, Recorder
from scheduler_app.presence import Presence
from scheduler_app.store import Store
from scheduler_app.telemetry import configure_logs, get_logger, serve_metrics

log = get_logger(__name__)

#: Beyond the grace of requests in flight: for writing outcomes and giving back.
LAST_WORDS_SECONDS = 3.0


class Worker:
    """What the tasks of one worker process share."""

    def __init__(self, settings: Settings, name: str, app: Celery) -> None:
        self._settings = settings
        self._name = name
        self._app = app
        self._consuming = True
        self._ending = threading.Lock()
        self._hurry = threading.Event()
        self.store = Store(settings)
        guard = Guard(parse_networks(settings.callback_allowed_networks))
        self.recorder = Recorder(self.store)
        self.courier = Courier(
            lambda: Sender(guard, ca_bundle=settings.callback_ca_bundle or None), self.recorder, clock.now
        )
        self.delivery = Delivery(
            self.store,
            self.courier,
            self.recorder,
            horizon_seconds=settings.horizon_seconds,
            now=clock.now,
            worker=name,
        )
        self.presence = Presence(
            self.store, clock, "worker", name=name, facts=self._facts, on_offset=self._judge_clock
        )

    def start(self) -> None:
        _raise_file_limit()
        serve_metrics(self._settings.metrics_port, self._settings.metrics_host, self.presence.trouble)
        self.recorder.start()
        self.courier.start()
        self.presence.start()

    def shut_down(self) -> None:
        """Gives back at once what has not started; what is in flight has its grace first.

        Asked a second time, it has none.
        """
        if not self._ending.acquire(blocking=False):
            self._hurry.set()
            return
        self.courier.stop_starting()
        grace = self._settings.worker_soft_shutdown_seconds
        watchdog = threading.Thread(target=self._enforce_grace, args=(grace,), daemon=True)
        watchdog.start()

    def stop(self) -> None:
        """After the last task has returned."""
        self.courier.stop()
        self.recorder.stop()
        self.presence.stop()

    def _enforce_grace(self, grace: float) -> None:
        self._hurry.wait(grace)
        log.warning("worker.grace_over", message="Requests in flight are dropped and their events given back")
        self.courier.interrupt()
        self.recorder.stop()
        time.sleep(LAST_WORDS_SECONDS)
        # Something still holds the pool: MongoDB is away, most likely. Leases and recovery do the rest.
        log.error("worker.forced", message="The worker ends with tasks open; their leases will run out")
        os._exit(1)

    def _facts(self) -> dict[str, Any]:
        return {"consuming": self._consuming}

    def _judge_clock(self, offset: float) -> None:
        """Celery holds a message until its eta by this host's own clock: where that is further off than the
        horizon, every message would be too early or too late. `offset` is measured from `now`, which a jump
        of mongod's clock does not move: that stops no worker."""
        fit = abs(offset) <= self._settings.horizon_seconds
        if fit == self._consuming:
            return
        self._consuming = fit
        if fit:
            log.info("worker.consuming", message="The clock is right again; consuming")
            self._app.control.add_consumer(QUEUE, destination=[self._name])
        else:
            log.error("worker.clock_unfit", message="The clock is too far off; not consuming until it is set")
            self._app.control.cancel_consumer(QUEUE, destination=[self._name])


def _raise_file_limit() -> None:
    """As many connections at once as the courier may have need more than the 1,024 files of many a shell."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


_worker: Worker | None = None


def worker() -> Worker:
    """The worker of this process; only a task asks for it."""
    if _worker is None:
        raise RuntimeError("no worker runs in this process")
    return _worker


def connect(app: Celery) -> None:
    """Binds the worker's beginning and end to Celery's signals."""

    @signals.worker_init.connect(weak=False)
    def start(sender: Any, **_: Any) -> None:
        global _worker
        configure_logs(settings.log_level, settings.log_format)
        _worker = Worker(settings, sender.hostname, app)
        if not _worker.store.envelope.encrypts:
            log.info("secrets.plain", message="SECRETS_KEY is not set: stored secrets are not encrypted")
        _worker.start()

    @signals.worker_shutting_down.connect(weak=False)
    def shut_down(**_: Any) -> None:
        # In a signal handler: another thread does what takes locks.
        if _worker is not None:
            threading.Thread(target=_worker.shut_down, daemon=True).start()

    @signals.worker_shutdown.connect(weak=False)
    def stop(**_: Any) -> None:
        if _worker is not None:
            _worker.stop()

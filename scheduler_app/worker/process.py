"""A worker's beginning and end: what its tasks share, and how it gives back what it cannot finish."""

import os
import resource
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

import click
from celery import Celery, signals
from celery.concurrency import get_implementation
from celery.concurrency.thread import TaskPool as ThreadPool
from celery.exceptions import Reject
from prometheus_client import REGISTRY

from scheduler_app.actions.http import Guard, Sender, parse_networks
from scheduler_app.broker import inspection, task
from scheduler_app.broker.options import QUEUE
from scheduler_app.broker.own_tasks import delivers_callbacks
from scheduler_app.clock import clock
from scheduler_app.config import InvalidSetting, Settings
from scheduler_app.domain.ports import parse_ports
from scheduler_app.health.startup import check_ca_bundle, check_replica_set, serve_metrics_of, starting
from scheduler_app.store import Store
from scheduler_app.telemetry import configure_logs, get_logger
from scheduler_app.telemetry.metrics import Role
from scheduler_app.usecases.heartbeat import Presence
from scheduler_app.worker import Pipeline, Stopping
from scheduler_app.worker.gauges import WorkerGauges, report

log = get_logger(__name__)

#: Beyond the grace of requests in flight: for writing outcomes and giving back.
LAST_WORDS_SECONDS = 3.0
#: Events that `inspect in_flight` names.
MAX_EVENTS_SHOWN = 1_000


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
        guard = Guard(
            parse_networks(settings.callback_allowed_networks), parse_ports(settings.callback_denied_ports)
        )
        self.pipeline = Pipeline(
            self.store,
            Sender(guard, ca_bundle=settings.callback_ca_bundle or None),
            now=clock.now,
            worker=name,
            horizon_seconds=settings.horizon_seconds,
            max_events=settings.worker_max_events,
            origin_concurrency=settings.callback_origin_concurrency,
        )
        self.presence = Presence(
            self.store, clock, "worker", name=name, facts=self._facts, on_offset=self._judge_clock
        )

    def start(self) -> None:
        _raise_file_limit()
        serve_metrics_of(self._settings, self.presence.trouble, Role.WORKER)
        inspection.answer_with(self._in_flight)
        REGISTRY.register(WorkerGauges(self.pipeline))
        self.pipeline.start()
        self.presence.start()
        task.deliver_by(self._deliver)

    def _deliver(self, ids: Sequence[str]) -> int:
        try:
            return self.pipeline.delivery.deliver(ids)
        except Stopping:
            raise Reject("the worker ends; another one takes the message", requeue=True) from None

    def shut_down(self) -> None:
        """Gives back at once what has not started; what is in flight has its grace first.

        A second call ends the grace.
        """
        if not self._ending.acquire(blocking=False):
            self._hurry.set()
            return
        self.pipeline.stop_starting()
        grace = self._settings.worker_soft_shutdown_seconds
        watchdog = threading.Thread(target=self._enforce_grace, args=(grace,), daemon=True)
        watchdog.start()

    def stop(self) -> None:
        """After the last task has returned: waits for what is in flight, as long as its grace lasts."""
        if not self._ending.locked():  # a remote `shutdown` comes without the signal
            self.shut_down()
        self.pipeline.wait_until_empty()
        self.pipeline.stop()
        self.presence.stop()

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
        return {"consuming": self._consuming, **report(self.pipeline)}

    def _judge_clock(self, offset: float) -> None:
        """Celery holds a message until its eta by this host's own clock: where that is further off than the
        horizon, every message would be too early or too late. `offset` is measured from `now`, which a jump
        of mongod's clock does not move: that stops no worker."""
        fit = abs(offset) <= self._settings.horizon_seconds
        if fit == self._consuming:
            return
        # Noted only once the command is sent: a broker that is away is told again by the next measurement.
        if fit:
            self._app.control.add_consumer(QUEUE, destination=[self._name])
            log.info("worker.consuming", message="The clock is right again; consuming")
        else:
            self._app.control.cancel_consumer(QUEUE, destination=[self._name])
            log.error("worker.clock_unfit", message="The clock is too far off; not consuming until it is set")
        self._consuming = fit


def _raise_file_limit() -> None:
    """As many connections at once as the courier may have need more than the 1,024 files of many a shell."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


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


_worker: Worker | None = None


@signals.worker_init.connect(weak=False)
def _start(sender: Any, **_: Any) -> None:
    global _worker
    settings: Settings = sender.app.settings
    configure_logs(settings.log_level, settings.log_format)
    # Celery only logs what a handler raises, and the worker would claim events and call nobody.
    with starting():
        if not delivers_callbacks(sender.app):
            return
        check_pool(sender.pool_cls)
        check_ca_bundle(settings.callback_ca_bundle)
        _worker = Worker(settings, sender.hostname, sender.app)
        check_replica_set(_worker.store)
        _worker.start()
    if not _worker.store.secret_box.encrypts:
        log.info("secrets.plain", message="SECRETS_KEY is not set: stored secrets are not encrypted")


@signals.worker_shutting_down.connect(weak=False)
def _shut_down(**_: Any) -> None:
    # In a signal handler: another thread does what takes locks.
    if _worker is not None:
        threading.Thread(target=_worker.shut_down, daemon=True).start()


@signals.worker_shutdown.connect(weak=False)
def _stop(**_: Any) -> None:
    if _worker is not None:
        _worker.stop()

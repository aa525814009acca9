"""Binds a worker to Celery's signals. Every process of Celery's imports this module; only a worker that
delivers callbacks starts anything."""

import threading
from typing import TYPE_CHECKING, Any

from celery import signals

from scheduler_app.broker.task import delivers_callbacks
from scheduler_app.config import Settings
from scheduler_app.domain.http_action import HTTP
from scheduler_app.health.startup import check_replica_set, starting
from scheduler_app.loading import settle_heap, without_garbage_collection
from scheduler_app.telemetry import configure_logs, get_logger

if TYPE_CHECKING:
    from scheduler_app.worker.process import WorkerProcess

log = get_logger(__name__)

_worker: "WorkerProcess | None" = None


@signals.worker_init.connect(weak=False)
def _start(sender: Any, **_: Any) -> None:
    global _worker
    settings: Settings = sender.app.settings
    configure_logs(settings.log_level, settings.log_format)
    # Celery only logs what a handler raises, and the worker would claim events and deliver none.
    with starting():
        if not delivers_callbacks(sender.app):
            return
        with without_garbage_collection():
            # Here, and not above: Flower, beat and the commands of Celery deliver nothing.
            from scheduler_app.assembly import assemble
            from scheduler_app.health.configuration import log_refused_actions
            from scheduler_app.worker.process import WorkerProcess, check_pool

        check_pool(sender.pool_cls)
        assembly = assemble(settings, sender.app)
        queues = sorted(sender.app.amqp.queues.consume_from)
        pipeline = assembly.pipeline(sender.hostname, queues)
        _worker = WorkerProcess(settings, sender.hostname, sender.app, pipeline, assembly.heartbeat)
        check_replica_set(assembly.store)
        served = {kind.name for kind in assembly.kinds_served(queues)}
        log_refused_actions(assembly.store, settings, served - {HTTP})
        _worker.start()
    settle_heap()
    if not assembly.store.secret_box.encrypts:
        log.info("secrets.plain", message="SECRETS_KEY is not set: stored secrets are not encrypted")


@signals.worker_shutting_down.connect(weak=False)
def _shut_down(**_: Any) -> None:
    # This runs inside a signal handler, where taking a lock could deadlock: another thread does the work.
    if _worker is not None:
        threading.Thread(target=_worker.shut_down, daemon=True).start()


@signals.worker_shutdown.connect(weak=False)
def _stop(**_: Any) -> None:
    if _worker is not None:
        _worker.stop()

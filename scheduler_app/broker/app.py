"""The Celery application for given settings: Celery's settings and why each differs from its default, and
what its processes and Flower's print and show by themselves. Celery's own commands get an application made
on demand.
"""

import json
import logging
import os
import sys
from datetime import UTC, datetime
from functools import cache, partial
from typing import Any

from celery import Celery
from celery.signals import celeryd_init, import_modules, setup_logging

from scheduler_app.broker import task
from scheduler_app.broker.backend import Backend
from scheduler_app.broker.backends import backend_of
from scheduler_app.broker.task import OWN_QUEUE, QUEUE, delivery_queue, route_task
from scheduler_app.broker.worker_steps import FastTimers
from scheduler_app.config import Settings, conceal_secrets, load_settings
from scheduler_app.health.startup import starting
from scheduler_app.telemetry import configure_logs, get_logger, is_json


def require_login_for_metrics() -> None:
    """Does nothing in a process that is not Flower's."""
    pages = sys.modules.get("flower.views.monitor")
    if pages is None:
        return
    from tornado.web import authenticated

    pages.Metrics.get = authenticated(pages.Metrics.get)


log = get_logger(__name__)

_STDERR = 2


def set_up_worker_log(settings: Settings) -> None:
    """Prepares the lines of a worker of this process, should one start."""

    @celeryd_init.connect(weak=False)
    def begin(instance: Any, **_: Any) -> None:
        # Before Celery sets up its own logs: it has warnings before that.
        configure_logs(settings.log_level, settings.log_format)
        if is_json(settings.log_format):
            logging.captureWarnings(True)
            instance.emit_banner = partial(_log_banner, instance)
            # Imported here: the API makes an application of Celery's, too, and has no use for its worker.
            from celery.apps import worker

            worker.safe_say = _write_line


def _log_banner(instance: Any) -> None:
    log.info(
        "worker.starting",
        message="A worker starts",
        concurrency=instance.concurrency,
        pool=instance.pool_cls.__module__.rpartition(".")[2],
        queues=sorted(instance.app.amqp.queues.consume_from),
    )


def _write_line(message: str, _: object = None) -> None:
    """Celery calls it inside of signal handlers, where a lock of the logs could be held: it takes none."""
    line = {
        "event": message,
        "logger": "celery.apps.worker",
        "level": "info",
        "timestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
    }
    os.write(_STDERR, f"{json.dumps(line)}\n".encode())


def set_up_flower_log(settings: Settings) -> None:
    """Gives Flower's lines our form, with the level that Flower was given. Does nothing in other processes:
    only Flower has set up the logs of Tornado."""
    tornado_log = sys.modules.get("tornado.log")
    root = logging.getLogger()
    if tornado_log is not None and any(
        isinstance(handler.formatter, tornado_log.LogFormatter) for handler in root.handlers
    ):
        configure_logs(logging.getLevelName(root.level), settings.log_format)


def celery_settings(settings: Settings) -> dict[str, Any]:
    """Returns the configuration of a Celery application. Raises InvalidSetting for an unusable BROKER_URL."""
    return {
        "broker_url": settings.broker,
        "broker_use_ssl": settings.broker_tls.options(settings.broker),
        "broker_connection_retry_on_startup": True,
        # For ever: a worker that gives up after 100 tries is one that a long outage of Redis has ended.
        "broker_connection_max_retries": None,
        # A Redis that refuses a command (it is full, or still loading) is waited for like one that is away.
        "broker_channel_error_retry": True,
        # Where a broker has heartbeats (Redis has not): a line that is cut is noticed in 20 s, not 240.
        "broker_heartbeat": 10,
        "broker_transport_options": backend_of(settings.broker).transport_options(settings),
        "task_queues": [delivery_queue(QUEUE)],
        # Tasks of a user's own have queues of their own: see `own_tasks`.
        "task_routes": (route_task,),
        "task_default_queue": OWN_QUEUE,
        "task_default_exchange": "",
        "task_default_routing_key": OWN_QUEUE,
        "task_create_missing_queues": True,
        "task_serializer": "json",
        "accept_content": ["json"],
        "task_ignore_result": True,
        # A message is acknowledged when its outcomes are written. What a crash leaves comes again, harmless.
        "task_acks_late": True,
        "task_reject_on_worker_lost": True,
        "task_acks_on_failure_or_timeout": True,
        # The next tick of beat is the retry; a publish that blocks would hold up everything else that is due.
        "task_publish_retry": False,
        "task_send_sent_event": True,
        # What a worker has fetched no other worker can take, and nothing that comes later can overtake. (What
        # has an eta does not count.)
        "worker_prefetch_multiplier": 1,
        # Nothing that is put into the queue ends the worker.
        "worker_consumer": "scheduler_app.broker.consumer:TolerantConsumer",
        # The only pool that shares one claim, one courier and one recorder. It is also checked at the start.
        "worker_pool": "threads",
        # Bounds what a worker holds; the horizon keeps it far from that.
        "worker_eta_task_limit": 5000,
        "worker_disable_rate_limits": True,
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        "worker_hijack_root_logger": False,
        "worker_redirect_stdouts": False,
        "worker_concurrency": settings.worker_concurrency,
        "enable_utc": True,
        "timezone": "UTC",
        "beat_scheduler": "scheduler_app.beat.scheduler:MongoScheduler",
        "beat_max_loop_interval": settings.prequeuer_ticker_interval_seconds,
    }


#: Imported by each of Celery's processes: it binds a worker's beginning and end to Celery's signals.
WORKER_PROCESS = "scheduler_app.worker_signals"


class Application(Celery):  # type: ignore[misc]
    """A Celery application that knows the settings and the broker it was made for."""

    settings: Settings
    broker: Backend

    @property
    def Beat(self) -> Any:
        """Celery's class, which prints no banner where logs are JSON."""
        beat = super().Beat

        def begin(*, quiet: bool = False, **options: Any) -> Any:
            return beat(quiet=quiet or is_json(self.settings.log_format), **options)

        return begin


def make_app(settings: Settings, *, answer_seconds: float | None = None) -> Application:
    """A Celery application for these settings, with the task. It connects to nothing yet. A broker that takes
    longer than `answer_seconds` for a step is away; None: it is waited for longer. Raises InvalidSetting for
    an unusable BROKER_URL."""
    backend = backend_of(settings.broker)
    app = Application("rrule-scheduler", include=[WORKER_PROCESS])
    app.settings = settings
    app.broker = backend
    app.conf.update(celery_settings(settings))
    if answer_seconds is not None:
        app.conf.broker_connection_timeout = answer_seconds
        app.conf.broker_transport_options |= backend.impatient_options(answer_seconds)
    app.steps["worker"].update({FastTimers, *backend.worker_steps})
    task.register(app)
    return app


@cache
def current() -> Application:
    """The application of this process, made when it is first asked for; a wrong setting ends the process."""
    # It registers the command `inspect in_flight`, and brings much of Celery's worker: not for the API.
    from scheduler_app.broker import inspection  # noqa: F401

    with starting():
        settings = load_settings()
        conceal_secrets(settings)
        app = make_app(settings)
    set_up_worker_log(settings)

    @setup_logging.connect(weak=False)
    def configure(loglevel: Any = None, **_: Any) -> None:
        # LOG_LEVEL rules; Celery's own --loglevel has a default that would win over it.
        configure_logs(settings.log_level, settings.log_format)

    @import_modules.connect(weak=False)
    def loaded(**_: Any) -> None:
        # Flower sends this signal too, once its own modules are loaded.
        require_login_for_metrics()
        set_up_flower_log(settings)

    return app

"""The form of what Celery and Flower print by themselves: where logs are JSON, so is each of these lines."""

import json
import logging
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

from celery.signals import celeryd_init

from scheduler_app.config import Settings
from scheduler_app.telemetry import configure_logs, get_logger, is_json

log = get_logger(__name__)

_STDERR = 2


def of_workers(settings: Settings) -> None:
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

            worker.safe_say = _say


def _log_banner(instance: Any) -> None:
    log.info(
        "worker.starting",
        message="A worker starts",
        concurrency=instance.concurrency,
        pool=instance.pool_cls.__module__.rpartition(".")[2],
        queues=sorted(instance.app.amqp.queues.consume_from),
    )


def _say(message: str, _: object = None) -> None:
    """Celery calls it inside of signal handlers, where a lock of the logs could be held: it takes none."""
    line = {
        "event": message,
        "logger": "celery.apps.worker",
        "level": "info",
        "timestamp": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
    }
    os.write(_STDERR, f"{json.dumps(line)}\n".encode())


def beat_of(beat: Callable[..., Any], settings: Settings) -> Callable[..., Any]:
    """Returns `beat`, Celery's class, so that it prints no banner where logs are JSON."""

    def begin(*, quiet: bool = False, **options: Any) -> Any:
        return beat(quiet=quiet or is_json(settings.log_format), **options)

    return begin


def of_flower(settings: Settings) -> None:
    """Gives Flower's lines our form, with the level that Flower was given. Does nothing in other processes:
    only Flower has set up the logs of Tornado."""
    tornado_log = sys.modules.get("tornado.log")
    root = logging.getLogger()
    if tornado_log is not None and any(
        isinstance(handler.formatter, tornado_log.LogFormatter) for handler in root.handlers
    ):
        configure_logs(logging.getLevelName(root.level), settings.log_format)

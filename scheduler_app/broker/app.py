"""The Celery application: made for settings, or, for Celery's own commands, for those of this process."""

from functools import cache
from typing import Any
from urllib.parse import urlsplit

from celery import Celery
from celery.signals import setup_logging
from kombu.transport import resolve_transport

from scheduler_app.broker import (
    inspection,  # noqa: F401  registers the command `inspect in_flight`
    task,
)
from scheduler_app.broker.options import celery_settings
from scheduler_app.broker.redis import use_sturdy_transport
from scheduler_app.broker.repairs import FastTimers, GiveBack
from scheduler_app.config import InvalidSetting, Settings, load_settings
from scheduler_app.health.startup import starting
from scheduler_app.telemetry import configure_logs

#: Imported by each of Celery's processes: it binds a worker's beginning and end to Celery's signals.
WORKER_PROCESS = "scheduler_app.worker.process"


class Application(Celery):  # type: ignore[misc]
    """A Celery application that knows the settings it was made for."""

    settings: Settings


def check_broker_url(url: str) -> None:
    """Raises InvalidSetting for a BROKER_URL that no installed transport can open."""
    try:
        resolve_transport(urlsplit(url).scheme)
    except (KeyError, ValueError, ImportError) as error:
        raise InvalidSetting(
            f"BROKER_URL cannot be used ({str(error).strip(chr(39))}); it begins with redis://, rediss://,"
            " sentinel:// or amqp://"
        ) from None


def make_app(settings: Settings) -> Application:
    """A Celery application for these settings, with the task. It connects to nothing yet. Raises
    InvalidSetting for an unusable BROKER_URL."""
    use_sturdy_transport()
    check_broker_url(settings.broker)
    app = Application("rrule-scheduler", include=[WORKER_PROCESS], set_as_current=True)
    app.settings = settings
    app.conf.update(celery_settings(settings))
    app.steps["worker"].update({FastTimers, GiveBack})
    task.register(app)
    return app


@cache
def current() -> Application:
    """The application of this process, made when it is first asked for; a wrong setting ends the process."""
    with starting():
        settings = load_settings()
        app = make_app(settings)

    @setup_logging.connect(weak=False)
    def configure(loglevel: Any = None, **_: Any) -> None:
        # LOG_LEVEL rules; Celery's own --loglevel has a default that would win over it.
        configure_logs(settings.log_level, settings.log_format)

    return app

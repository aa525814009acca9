"""The Celery application. Importing this module reads the settings: a wrong one ends the process."""

from typing import Any
from urllib.parse import urlsplit

from celery import Celery
from celery.signals import setup_logging
from kombu.entity import Exchange
from kombu.transport import resolve_transport

from scheduler_app.celery_app import inspection
from scheduler_app.celery_app.repairs import FastTimers, GiveBack
from scheduler_app.celery_app.settings import celery_settings
from scheduler_app.celery_app.transport import use_sturdy_transport
from scheduler_app.config import InvalidSetting, Settings, load_settings
from scheduler_app.startup import starting
from scheduler_app.telemetry import configure_logs

__all__ = ["app", "inspection", "make_app", "settings"]


def check_broker_url(url: str) -> None:
    """Raises InvalidSetting for a BROKER_URL that no installed transport can open."""
    try:
        resolve_transport(urlsplit(url).scheme)
    except (KeyError, ValueError, ImportError) as error:
        raise InvalidSetting(
            f"BROKER_URL cannot be used ({str(error).strip(chr(39))}); it begins with redis://, rediss://,"
            " sentinel:// or amqp://"
        ) from None


def _nameless(queue: str) -> Exchange:
    return Exchange("")


def make_app(settings: Settings) -> Celery:
    """A Celery application for these settings. Raises InvalidSetting for an unusable BROKER_URL."""
    use_sturdy_transport()
    check_broker_url(settings.broker)
    app = Celery("rrule-scheduler", include=["scheduler_app.tasks"], set_as_current=True)
    app.conf.update(celery_settings(settings))
    # The nameless exchange for queues that are made on demand, too.
    app.amqp.autoexchange = _nameless
    app.steps["worker"].update({FastTimers, GiveBack})
    return app


with starting():
    settings = load_settings()
    app = make_app(settings)


@setup_logging.connect
def _configure_logs(loglevel: Any = None, **_: Any) -> None:
    # LOG_LEVEL rules; Celery's own --loglevel has a default that would win over it.
    configure_logs(settings.log_level, settings.log_format)

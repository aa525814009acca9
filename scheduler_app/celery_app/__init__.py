"""The Celery application. Importing this module reads the settings: a wrong one ends the process."""

import sys
from typing import Any

from celery import Celery
from celery.signals import setup_logging

from scheduler_app.celery_app import inspection
from scheduler_app.celery_app.repairs import FastTimers, GiveBack
from scheduler_app.celery_app.settings import celery_settings
from scheduler_app.celery_app.transport import use_sturdy_transport
from scheduler_app.config import InvalidSetting, Settings, load_settings
from scheduler_app.telemetry import configure_logs

__all__ = ["app", "inspection", "make_app", "settings"]


def make_app(settings: Settings) -> Celery:
    """A Celery application for these settings."""
    use_sturdy_transport()
    app = Celery("rrule-scheduler", include=["scheduler_app.tasks"], set_as_current=True)
    app.conf.update(celery_settings(settings))
    app.steps["worker"].update({FastTimers, GiveBack})
    return app


def _settings() -> Settings:
    try:
        return load_settings()
    except InvalidSetting as error:
        sys.exit(f"scheduler: {error}")


settings = _settings()
app = make_app(settings)


@setup_logging.connect
def _configure_logs(loglevel: Any = None, **_: Any) -> None:
    # LOG_LEVEL rules; Celery's own --loglevel has a default that would win over it.
    configure_logs(settings.log_level, settings.log_format)

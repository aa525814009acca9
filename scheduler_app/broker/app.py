"""Makes the Celery application for given settings; Celery's own commands get one made on demand."""

from functools import cache
from typing import Any

from celery import Celery
from celery.signals import import_modules, setup_logging

from scheduler_app.broker import flower_metrics, log_lines, task
from scheduler_app.broker.backend import Backend
from scheduler_app.broker.backends import backend_of
from scheduler_app.broker.options import celery_settings
from scheduler_app.broker.worker_steps import FastTimers
from scheduler_app.config import Settings, conceal_secrets, load_settings
from scheduler_app.health.startup import starting
from scheduler_app.telemetry import configure_logs

#: Imported by each of Celery's processes: it binds a worker's beginning and end to Celery's signals.
WORKER_PROCESS = "scheduler_app.worker_signals"


class Application(Celery):  # type: ignore[misc]
    """A Celery application that knows the settings and the broker it was made for."""

    settings: Settings
    broker: Backend

    @property
    def Beat(self) -> Any:
        return log_lines.beat_of(super().Beat, self.settings)


def make_app(settings: Settings, *, answer_seconds: float | None = None) -> Application:
    """A Celery application for these settings, with the task. It connects to nothing yet. A broker that takes
    longer than `answer_seconds` for a step is away; None: it is waited for longer. Raises InvalidSetting for
    an unusable BROKER_URL."""
    backend = backend_of(settings.broker)
    app = Application("rrule-scheduler", include=[WORKER_PROCESS], set_as_current=True)
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
    log_lines.of_workers(settings)

    @setup_logging.connect(weak=False)
    def configure(loglevel: Any = None, **_: Any) -> None:
        # LOG_LEVEL rules; Celery's own --loglevel has a default that would win over it.
        configure_logs(settings.log_level, settings.log_format)

    @import_modules.connect(weak=False)
    def loaded(**_: Any) -> None:
        # Flower sends this signal too, once its own modules are loaded.
        flower_metrics.ask_for_login()
        log_lines.of_flower(settings)

    return app

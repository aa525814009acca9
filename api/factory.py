"""The application factory."""

from dataclasses import replace

from flask import Flask

from scheduler_app.api import (
    auth,
    computing,
    cross_site,
    declared_parameters,
    deprecations,
    dry_run,
    edit_log,
    forwarded,
    hop_limit,
    idempotency,
    pages,
    problems,
    routes,
    size_limits,
    time_limits,
    versions,
    wrong_keys,
)
from scheduler_app.api.openapi import spec_options
from scheduler_app.api.routes import echo, health, manual, metrics, swagger_ui
from scheduler_app.api.tasks_facade import answers as tasks_answers
from scheduler_app.assembly import Assembly, assemble
from scheduler_app.broker.app import make_app
from scheduler_app.config import Settings, conceal_secrets, load_settings
from scheduler_app.health.startup import starting
from scheduler_app.telemetry import configure_logs, get_logger

log = get_logger(__name__)

#: How long a request waits for each step of the broker: its events are dispatched by beats otherwise.
BROKER_SECONDS = 1.0


def create_app(settings: Settings | None = None) -> Flask:
    """The application. Without `settings` they are read as in every process, and a wrong one ends it."""
    if settings is None:
        with starting():
            settings = load_settings()
            conceal_secrets(settings)
        configure_logs(settings.log_level, settings.log_format)
    app = routed(settings)
    serve(app, settings).heartbeat("api").start()
    return app


def check_settings() -> None:
    """Ends the process as `create_app` would, with a sentence, where the settings cannot be used. It connects
    to nothing."""
    with starting():
        settings = load_settings()
        _assembled(settings)


def routed(settings: Settings) -> Flask:
    """Returns the application with all its routes and checks. It has no database and no broker: `serve` gives
    it both."""
    app = Flask("rrule-scheduler")
    app.json.sort_keys = False  # type: ignore[attr-defined]
    app.config.update(spec_options(settings))
    # First: the last of all to see an answer.
    tasks_answers.register(app)
    api = routes.register(app)
    problems.register(app)
    size_limits.register(app)
    time_limits.register(app)
    auth.register(app, settings)
    pages.register(app, settings)
    cross_site.register(app, settings)
    declared_parameters.register(app)
    deprecations.register(app)
    hop_limit.register(app)
    time_limits.register_question(app)
    dry_run.register(app)
    edit_log.register(app)
    idempotency.register(app)
    computing.register(app)
    health.register(app)
    echo.register(app)
    metrics.register(app)
    swagger_ui.register(app, api)
    manual.register(app)
    app.wsgi_app = forwarded.Forwarded(  # type: ignore[method-assign]
        versions.Versions(app.wsgi_app), settings.trusted_networks, takes_host=bool(settings.api_keys)
    )
    return app


def serve(app: Flask, settings: Settings) -> Assembly:
    """Gives the application its use cases, over the database and the broker of `settings`, and returns them.
    Raises SystemExit where they cannot be used."""
    with starting():
        made = _assembled(settings)
    made = replace(made, manager=replace(made.manager, on_edit=edit_log.noting(made.store)))
    app.extensions["scheduler"] = made
    app.extensions["turns"] = computing.Turns()
    app.extensions["wrong_keys"] = wrong_keys.WrongKeys()
    if not settings.api_keys:
        log.warning("api.open", message="API_KEYS is not set: every program on this host may use the API")
    if not made.store.secret_box.encrypts:
        log.info("secrets.plain", message="SECRETS_KEY is not set: stored secrets are not encrypted")
    return made


def _assembled(settings: Settings) -> Assembly:
    app_of_broker = make_app(settings, answer_seconds=BROKER_SECONDS)
    return assemble(settings, app_of_broker, limiter_seconds=BROKER_SECONDS)

"""The application factory."""

from dataclasses import replace

from flask import Flask

from api import (
    auth,
    cross_site,
    declared_parameters,
    dry_run,
    edit_log,
    hop_limit,
    idempotency,
    pages,
    problems,
    routes,
    size_limits,
)
from api.openapi import spec_options
from api.routes import echo, health, manual, metrics, swagger_ui
from api.tasks_facade import answers as tasks_answers
from scheduler_app.assembly import Assembly, assemble
from scheduler_app.broker.app import make_app
from scheduler_app.config import Settings, load_settings
from scheduler_app.health.startup import starting
from scheduler_app.telemetry import configure_logs, get_logger

log = get_logger(__name__)


def create_app(settings: Settings | None = None) -> Flask:
    """The application. Without `settings` they are read as in every process, and a wrong one ends it."""
    if settings is None:
        with starting():
            settings = load_settings()
        configure_logs(settings.log_level, settings.log_format)
    app = routed(settings)
    serve(app, settings).heartbeat("api").start()
    return app


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
    auth.register(app, settings)
    pages.register(app, settings)
    cross_site.register(app)
    size_limits.register(app)
    declared_parameters.register(app)
    hop_limit.register(app)
    dry_run.register(app)
    edit_log.register(app)
    idempotency.register(app)
    health.register(app)
    echo.register(app)
    metrics.register(app)
    swagger_ui.register(app, api)
    manual.register(app)
    return app


def serve(app: Flask, settings: Settings) -> Assembly:
    """Gives the application its use cases, over the database and the broker of `settings`, and returns them.
    Raises SystemExit where they cannot be used."""
    with starting():
        made = assemble(settings, make_app(settings))
    made = replace(made, manager=replace(made.manager, on_edit=edit_log.noting(made.store)))
    app.extensions["scheduler"] = made
    if not settings.api_keys:
        log.warning("api.open", message="API_KEYS is not set: every program on this host may use the API")
    if not made.store.secret_box.encrypts:
        log.info("secrets.plain", message="SECRETS_KEY is not set: stored secrets are not encrypted")
    return made

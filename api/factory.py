"""The application factory."""

from flask import Flask
from flask_smorest import Api

from api import (
    auth,
    bulk,
    calendars,
    cross_site,
    docs,
    dry_run,
    edits,
    errors,
    events,
    export,
    hops,
    idempotency,
    limits,
    manual,
    metrics,
    ops,
    parameters,
    paths,
    previews,
    schedules,
    signing,
)
from api.openapi import spec_options
from api.services import make_services
from scheduler_app.broker import CeleryPublisher, make_app
from scheduler_app.config import Settings, load_settings
from scheduler_app.health.startup import starting
from scheduler_app.telemetry import configure_logs, get_logger

log = get_logger(__name__)


def create_app(settings: Settings | None = None) -> Flask:
    """The API. Without `settings` they are read as every process reads them, and a wrong one ends it."""
    if settings is None:
        with starting():
            settings = load_settings()
        configure_logs(settings.log_level, settings.log_format)
    app = Flask("rrule-scheduler")
    app.json.sort_keys = False  # type: ignore[attr-defined]
    app.config.update(spec_options(settings))
    with starting():
        made = make_services(settings, CeleryPublisher(make_app(settings)))
    app.extensions["scheduler"] = made
    paths.register(app)
    api = Api(app)
    errors.register(app)
    auth.register(app, settings)
    cross_site.register(app)
    limits.register(app)
    parameters.register(app)
    hops.register(app)
    dry_run.register(app)
    idempotency.register(app)
    ops.register(app)
    metrics.register(app)
    docs.register(app, api)
    manual.register(app)
    for noun in (schedules, bulk, edits, export, previews, signing, events, calendars):
        api.register_blueprint(noun.blueprint)
    if not settings.api_keys:
        log.warning("api.open", message="API_KEYS is not set: whoever can reach loopback may use the API")
    if not made.store.envelope.encrypts:
        log.info("secrets.plain", message="SECRETS_KEY is not set: stored secrets are not encrypted")
    made.presence.start()
    return app

"""The application factory, and the specification without a running application, for the manual."""

from flask import Flask

from scheduler_app.api import (
    acts,
    auth,
    blueprint,
    edits,
    idempotency,
    known_keys,
    narrowing,
    pages,
    problems,
    request_limits,
    request_shares,
    routes,
    services,
    versions,
)
from scheduler_app.api.openapi import Node, complete_specification, spec_options
from scheduler_app.api.routes import documentation, heartbeats, operations
from scheduler_app.assembly import Assembly, assemble
from scheduler_app.broker.app import make_app
from scheduler_app.config import Settings, conceal_secrets, load_settings
from scheduler_app.health.startup import check_has_key, starting
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
    to nothing, unless only a stored key could open the API."""
    with starting():
        settings = load_settings()
        assembly = _assembled(settings)
        check_has_key(settings, assembly.store, assembly.now())


def routed(settings: Settings) -> Flask:
    """Returns the application with all its routes and checks. It has no database and no broker: `serve` gives
    it both."""
    app = Flask("rrule-scheduler")
    app.json.sort_keys = False  # type: ignore[attr-defined]
    app.config.update(spec_options(settings))
    # First: the last of all to see an answer.
    problems.register_task_errors(app)
    api = routes.register(app)
    problems.register_problems(app)
    request_limits.register_size_limits(app)
    request_limits.register_time_limits(app)
    auth.register_auth(app, settings, pages.page_access(settings))
    pages.register(app)
    request_shares.register_shares(app)
    auth.register_cross_site_check(app, settings)
    blueprint.register_declared_parameters(app)
    versions.register_deprecations(app)
    request_limits.register_hop_limit(app)
    request_limits.register_mongo_check(app)
    services.register_dry_run(app)
    acts.register_acts(app)
    idempotency.register(app)
    request_shares.register_computing_turns(app)
    operations.register_health(app)
    operations.register_echo(app)
    heartbeats.register_pings(app)
    operations.register_metrics(app)
    documentation.register_swagger_ui(app, api)
    documentation.register_manual(app)
    narrowing.check_narrowings(app)
    app.wsgi_app = auth.Forwarded(  # type: ignore[method-assign]
        versions.Versions(app.wsgi_app), settings.trusted_networks, takes_host=settings.needs_key
    )
    return app


def serve(app: Flask, settings: Settings) -> Assembly:
    """Gives the application its use cases, over the database and the broker of `settings`, and returns them.
    Raises SystemExit where they cannot be used."""
    with starting():
        assembly = _assembled(settings)
        check_has_key(settings, assembly.store, assembly.now())
    app.extensions["scheduler"] = assembly
    app.extensions["turns"], app.extensions["thread_turns"] = request_shares.new_turns()
    app.extensions["wrong_keys"] = auth.WrongKeys()
    app.extensions["known_keys"] = known_keys.KnownKeys(assembly)
    if not settings.needs_key:
        log.warning("api.open", message="API_KEYS is not set: every program on this host may use the API")
    if not assembly.secret_box.encrypts:
        log.info("secrets.plain", message="SECRETS_KEY is not set: stored secrets are not encrypted")
    return assembly


def _assembled(settings: Settings) -> Assembly:
    app_of_broker = make_app(settings, answer_seconds=BROKER_SECONDS)
    return assemble(settings, app_of_broker, limiter_seconds=BROKER_SECONDS, describe=edits.describe_edit)


def specification(settings: Settings) -> Node:
    """The OpenAPI document of every route below /api/v1, as `/docs/openapi.yml` gives it for `settings`."""
    app = Flask("rrule-scheduler")
    app.config.update(spec_options(settings))
    return complete_specification(routes.register(app).spec.to_dict())

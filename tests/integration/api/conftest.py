"""The API in this process, over the real mongod and Redis."""

import secrets
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from scheduler_app import assembly
from scheduler_app.api import auth, factory, request_limits, request_shares
from scheduler_app.api.factory import routed, serve
from scheduler_app.api.pages import forms, go, overview, run_neighbours
from scheduler_app.api.routes import operations
from scheduler_app.api.services import Services
from scheduler_app.broker import publisher
from scheduler_app.clock import clock
from scheduler_app.config import Settings
from scheduler_app.embedded import Mongod, Redis
from scheduler_app.health import ready, status
from scheduler_app.store import Store, expectations, figure_counters, paging, processes, search
from scheduler_app.store.events import events, figures, lists, run_counts
from scheduler_app.store.schedules import last_runs, schedules
from scheduler_app.usecases import owed_events, quotas, stops
from scheduler_app.usecases.duties import dispatch, expansion, owed_expansion
from scheduler_app.usecases.forecast import ForecastService
from scheduler_app.usecases.questions.run_calendar import RunCalendars
from tests.openid_provider import (
    PUBLIC_URL,
    Browser,
    OpenIdProvider,
    be_patient,
    openid_provider,
    sign_in_settings,
)
from tests.processes import PATIENCE_SECONDS

#: What a request, or a duty, gives up or cuts short after a moment, and how long a process counts as alive.
_LIMITS = (
    *((request_limits, name) for name in ("GET_SECONDS", "CHANGE_SECONDS", "MUCH_SECONDS")),
    *((each, "LOOK_SECONDS") for each in (forms, go, run_neighbours)),
    *((each, "ANSWER_SECONDS") for each in (operations, ready, status, stops)),
    *((each, "MISSED_SECONDS") for each in (expansion, owed_expansion, processes)),
    (factory, "BROKER_SECONDS"),
    (publisher, "PATIENCE_SECONDS"),
    (overview, "CHANGES_SECONDS"),
    (quotas, "WAIT_SECONDS"),
    (owed_events, "MOST_SECONDS"),
    (dispatch, "SELECTION_SECONDS"),
)
#: The same in milliseconds, which MongoDB keeps.
_LIMITS_MS = (
    *((each, "MAX_MS") for each in (expectations, figure_counters, figures, last_runs, lists)),
    *((each, "MAX_MS") for each in (run_counts, schedules, search)),
    *((each, "LOOK_MS") for each in (events, schedules)),
)

#: Applications without a database, which their routes do not depend on: to make one takes a sixth of a second
#: of CPU, more than most tests. By their settings those that no test uses now, and what each was made with.
_idle: defaultdict[Settings, list[Flask]] = defaultdict(list)
_extensions: dict[Flask, dict[str, Any]] = {}


def start(settings: Settings) -> Flask:
    """The application without its heartbeat; it publishes to the broker of its settings."""
    idle = _idle[_of_routes(settings)]
    if idle:
        app = idle.pop()
        app.extensions = dict(_extensions[app])
    else:
        app = routed(settings)
        _extensions[app] = dict(app.extensions)
    serve(app, settings)
    return app


def stop(app: Flask) -> None:
    found: Services = app.extensions["scheduler"]
    found.store.close()
    _idle[_of_routes(found.settings)].append(app)


def _of_routes(settings: Settings) -> Settings:
    """The settings but for those of the servers, and the key for what is stored there."""
    return replace(settings, mongo_uri="", mongo_database="", broker_url="", secrets_key="")


@pytest.fixture(scope="module", autouse=True)
def patient() -> Iterator[None]:
    """A request is not refused or answered in part because this machine stands still for seconds: it waits
    for MongoDB, for Redis, for its turn and for what others make; what is counted by rules is counted whole
    and anew each time; and the wrong keys of a test are all of one minute. Tests of these bounds set them
    themselves, and a module that needs the product's own has a fixture of this name."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name in _LIMITS:
            patch.setattr(module, name, PATIENCE_SECONDS)
        for module, name in _LIMITS_MS:
            patch.setattr(module, name, int(PATIENCE_SECONDS * 1000))
        patch.setattr(request_shares.Turns.take, "__defaults__", (PATIENCE_SECONDS,))
        patch.setattr(auth, "monotonic", lambda: 0.0)
        patch.setattr(paging, "monotonic", lambda: 0.0)
        patch.setattr(assembly, "ForecastService", partial(ForecastService, max_seconds=PATIENCE_SECONDS))
        patch.setattr(
            assembly,
            "RunCalendars",
            partial(
                RunCalendars,
                max_seconds=PATIENCE_SECONDS,
                first_seconds=PATIENCE_SECONDS,
                kept_from=PATIENCE_SECONDS,
            ),
        )
        yield


class ToldTime:
    """A clock that a test sets by hand."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    def __call__(self) -> datetime:
        return self.at


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> ToldTime:
    """What the application takes for the time."""
    told = ToldTime(clock.now())
    monkeypatch.setattr(clock, "now", told)
    return told


@pytest.fixture
def make_api(settings: Settings, store: Store) -> Iterator[Callable[..., Flask]]:
    """Makes the application with some settings of its own."""
    made: list[Flask] = []

    def make(**changes: Any) -> Flask:
        made.append(start(replace(settings, **changes)))
        return made[-1]

    yield make
    for app in made:
        stop(app)


@pytest.fixture(scope="module")
def shared_client(mongod_server: Mongod, redis_server: Redis) -> Iterator[FlaskClient]:
    """One application for a module's tests that find what they want among what others made."""
    name = f"test_{secrets.token_hex(6)}"
    app = start(
        Settings(
            mongo_uri=mongod_server.uri,
            mongo_database=name,
            broker_url=redis_server.url,
            callback_allowed_networks="127.0.0.0/8",
        )
    )
    app.extensions["scheduler"].store.prepare()
    yield app.test_client()
    app.extensions["scheduler"].store.mongo.client.drop_database(name)
    stop(app)


@pytest.fixture(scope="session")
def running_provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenIdProvider]:
    with openid_provider(tmp_path_factory.mktemp("openid"), PUBLIC_URL) as provider:
        yield provider


@pytest.fixture
def provider(running_provider: OpenIdProvider, monkeypatch: pytest.MonkeyPatch) -> OpenIdProvider:
    """As it is at its start."""
    running_provider.change("reset")
    be_patient(monkeypatch)
    return running_provider


@pytest.fixture
def make_signing_in(make_api: Callable[..., Flask], provider: OpenIdProvider) -> Callable[..., Flask]:
    """Makes an application in which people sign in with that provider."""

    def make(**changes: Any) -> Flask:
        return make_api(**sign_in_settings(provider) | changes)

    return make


@pytest.fixture
def signing_in(make_signing_in: Callable[..., Flask]) -> Flask:
    return make_signing_in()


@pytest.fixture
def browser(signing_in: Flask, provider: OpenIdProvider) -> Browser:
    return Browser(signing_in, provider)


@pytest.fixture
def app(make_api: Callable[..., Flask]) -> Flask:
    return make_api()


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


@pytest.fixture
def create(client: FlaskClient) -> Callable[..., dict[str, Any]]:
    """Creates a schedule, first due years from now, and returns its answer."""

    def made(**fields: Any) -> dict[str, Any]:
        body = {"name": "test", "callback_url": "http://127.0.0.1:9/"} | fields
        if not {"run_at", "phrase"} & body.keys():
            body.setdefault("rrule", "DTSTART:20400101T000000Z\nRRULE:FREQ=YEARLY")
        answer = client.post("/api/schedules", json=body)
        assert answer.status_code == 201, answer.text
        found: dict[str, Any] = answer.get_json()
        return found

    return made

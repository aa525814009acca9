"""A store of its own for each test, on the real mongod."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from scheduler_app.config import Settings
from scheduler_app.domain.act import SCHEDULERS_OWN
from scheduler_app.embedded import Mongod
from scheduler_app.store import Store, mongo
from scheduler_app.store.acting import acting, current_act
from tests.lent_clients import LentClients
from tests.prepared_databases import PreparedDatabases

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.fixture(scope="session")
def prepared_databases(mongod_server: Mongod) -> Iterator[PreparedDatabases]:
    made = PreparedDatabases(mongod_server.uri)
    yield made
    made.close()


@pytest.fixture(scope="session", autouse=True)
def lent_clients(mongod_server: Mongod) -> Iterator[LentClients]:
    """Stores close their clients, which the next ones use."""
    clients = LentClients(mongod_server.uri)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mongo, "MongoClient", clients.make)
        yield clients
    clients.renew()


@pytest.fixture
def database_name(prepared_databases: PreparedDatabases) -> Iterator[str]:
    """A database of this test alone, with all indexes and no document."""
    name = prepared_databases.take()
    yield name
    prepared_databases.give_back(name)


@pytest.fixture
def settings(mongo_uri: str, database_name: str, redis_url: str) -> Settings:
    return Settings(
        mongo_uri=mongo_uri,
        mongo_database=database_name,
        broker_url=redis_url,
        callback_allowed_networks="127.0.0.0/8",
        prequeuer_event_timeframe_minutes=1,
    )


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    made = Store(settings)
    yield made
    made.close()


@pytest.fixture
def now() -> datetime:
    """A noon; whoever needs another time adds to it."""
    return NOON


@pytest.fixture(
    params=[
        pytest.param(False, id="two-values-of-each-field"),
        pytest.param(True, id="all-values", marks=pytest.mark.long),
    ]
)
def whole(request: pytest.FixtureRequest) -> bool:
    """Whether a table of corruptions is tried as a whole; see `tests.corruption.corruptions`."""
    found: bool = request.param
    return found


@pytest.fixture(autouse=True)
def act_of_nobody() -> Iterator[None]:
    """What a test asked the API for ends with it: the next one's changes are not part of that act."""
    with acting(SCHEDULERS_OWN):
        yield
        assert current_act() is SCHEDULERS_OWN

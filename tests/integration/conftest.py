"""A store of its own for each test, on the real mongod."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from scheduler_app.config import Settings
from scheduler_app.store import Store

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


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
    made.prepare()
    yield made
    made.close()


@pytest.fixture
def now() -> datetime:
    """A noon; whoever needs another time adds to it."""
    return NOON

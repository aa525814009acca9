"""An API of its own for these tests, as a client finds it: behind an address, and with a key."""

import secrets
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from pymongo import MongoClient

from scheduler_app.client import Scheduler
from scheduler_app.embedded import Mongod, Redis
from tests.acceptance.stack import Stack

KEY = secrets.token_hex(24)


@pytest.fixture(scope="package")
def database_name() -> str:
    return f"test_{secrets.token_hex(6)}"


@pytest.fixture(scope="package")
def url(
    mongod_server: Mongod,
    redis_server: Redis,
    tmp_path_factory: pytest.TempPathFactory,
    database_name: str,
) -> Iterator[str]:
    stack = Stack(
        tmp_path_factory.mktemp("api"),
        {
            "MONGO_URI": mongod_server.uri,
            "MONGO_DATABASE": database_name,
            "BROKER_URL": redis_server.url,
            "API_KEYS": KEY,
            "CELERY_BROKERS": "shop=redis://127.0.0.1:1/0",
            "CELERY_TASKS": "shop:*@*,shop:celery.*",
            "SECRETS_KEY": Fernet.generate_key().decode(),
        },
    )
    try:
        stack.api()
        yield stack.url
    finally:
        stack.close()


@pytest.fixture
def scheduler(url: str) -> Iterator[Scheduler]:
    with Scheduler(url, KEY) as made:
        yield made


@pytest.fixture
def dead_letters(mongod_server: Mongod, database_name: str, scheduler: Scheduler) -> Callable[..., list[str]]:
    """Makes dead letters of a schedule: events that no worker was there to send."""

    def made(schedule_id: str, count: int, status_code: int) -> list[str]:
        ids = [scheduler.trigger(schedule_id) for _ in range(count)]
        with MongoClient[dict[str, Any]](mongod_server.uri) as client:
            client[database_name].events.update_many(
                {"_id": {"$in": ids}},
                {
                    "$set": {
                        "state": "error",
                        "archived_at": datetime.now(UTC),
                        "attempts": [{"number": 1, "status_code": status_code, "error": None}],
                    },
                    "$unset": {"due_at": ""},
                },
            )
        return ids

    return made


@pytest.fixture
def tag() -> str:
    """What a test marks its own schedules with; the letter keeps YAML from reading 88479972 as a number."""
    return f"t{secrets.token_hex(4)}"


@pytest.fixture(autouse=True)
def _netrc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Somebody's .netrc names this machine, with a password of its own; it must not take the key's place."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password else\n")
    monkeypatch.setenv("NETRC", str(netrc))

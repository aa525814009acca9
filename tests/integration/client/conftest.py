"""An API of its own for these tests, as a client finds it: behind an address, and with a key."""

import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from scheduler_app.client import Scheduler
from scheduler_app.embedded import Mongod, Redis
from tests.acceptance.stack import Stack

KEY = secrets.token_hex(24)


@pytest.fixture(scope="package")
def url(
    mongod_server: Mongod, redis_server: Redis, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    stack = Stack(
        tmp_path_factory.mktemp("api"),
        {
            "MONGO_URI": mongod_server.uri,
            "MONGO_DATABASE": f"test_{secrets.token_hex(6)}",
            "BROKER_URL": redis_server.url,
            "API_KEYS": KEY,
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
def tag() -> str:
    """What a test marks its own schedules with."""
    return secrets.token_hex(4)


@pytest.fixture(autouse=True)
def _netrc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Somebody's .netrc names this machine, with a password of its own; it must not take the key's place."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password else\n")
    monkeypatch.setenv("NETRC", str(netrc))

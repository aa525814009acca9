"""Real processes over the session's mongod and Redis."""

import secrets
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from redis import Redis as RedisClient

from scheduler_app.embedded import Mongod, Redis
from tests.acceptance.journal import Journal
from tests.acceptance.stack import Stack

Report = Generator[None, pytest.TestReport, pytest.TestReport]


@pytest.fixture(scope="module")
def make_stack(
    mongod_server: Mongod, redis_server: Redis, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Stack]]:
    """Makes a stack with a database of its own and no process yet."""
    made: list[Stack] = []

    def make(**environment: str) -> Stack:
        folder: Path = tmp_path_factory.mktemp("stack")
        # One Redis, but a database each: a worker must not take another stack's messages. What a stack of
        # another module has left there, no test shall count.
        number = len(made) + 1
        with RedisClient(port=redis_server.port, db=number) as client:
            client.flushdb()
        settings = {
            "MONGO_URI": mongod_server.uri,
            "MONGO_DATABASE": f"test_{secrets.token_hex(6)}",
            "BROKER_URL": redis_server.url.removesuffix("/0") + f"/{number}",
            "CALLBACK_ALLOWED_NETWORKS": "127.0.0.0/8",
        }
        made.append(Stack(folder, settings | environment))
        return made[-1]

    yield make
    for stack in made:
        stack.close()


@pytest.fixture(scope="module")
def stack(make_stack: Callable[..., Stack]) -> Stack:
    """API, one beat, one worker: shared by the tests of a module, which keep to their own schedules."""
    ready = make_stack()
    ready.all()
    return ready


@pytest.fixture
def journal() -> Iterator[Journal]:
    made = Journal()
    yield made
    made.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Report:
    """The ends of the processes' logs stand under a failure."""
    report = yield
    used = getattr(item, "funcargs", {}).get("stack")
    if report.failed and isinstance(used, Stack):
        report.sections.append(("logs", used.logs()))
    return report

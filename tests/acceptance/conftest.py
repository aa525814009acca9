"""Real processes over the session's mongod and Redis: one stack for most tests, and others for some."""

import secrets
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from redis import Redis as RedisClient

from scheduler_app.embedded import Mongod, Redis
from tests.acceptance.journal import Journal
from tests.acceptance.shared_stack import SharedStack
from tests.acceptance.stack import Stack
from tests.acceptance.ups import Ups
from tests.celery_application import BROKER, WITHOUT_RESULTS, CeleryApplication, celery_application

UPS = pytest.StashKey[Ups]()
SHARED = pytest.StashKey[SharedStack]()
Report = Generator[None, pytest.TestReport, pytest.TestReport]
FOLDER = Path(__file__).parent
#: The database of the session's Redis that no other stack takes.
SHARED_REDIS_DATABASE = 15


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CeleryApplication]:
    """A user's own Celery application, to whose broker the shared stack may send tasks."""
    with Redis(tmp_path_factory.mktemp("shop-redis")) as redis, celery_application(redis) as application:
        yield application


@pytest.fixture(scope="session")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose programs the workers of commands may run."""
    return tmp_path_factory.mktemp("jobs")


@pytest.fixture(scope="session")
def shared_stack(
    mongod_server: Mongod,
    redis_server: Redis,
    shop: CeleryApplication,
    jobs: Path,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[SharedStack]:
    """It runs nothing before its first `begin()`."""
    brokers = {BROKER: shop.broker, WITHOUT_RESULTS: shop.broker}
    made = SharedStack(
        tmp_path_factory.mktemp("shared-stack"),
        {
            "MONGO_URI": mongod_server.uri,
            "MONGO_DATABASE": f"test_{secrets.token_hex(6)}",
            "BROKER_URL": f"{redis_server.url.removesuffix('/0')}/{SHARED_REDIS_DATABASE}",
            "CALLBACK_ALLOWED_NETWORKS": "127.0.0.0/8",
            "WORKER_SOFT_SHUTDOWN_SECONDS": "1",
            "SECRETS_KEY": Fernet.generate_key().decode(),
            "TASKS_API": "true",
            "ALLOWED_COMMANDS": f"echo *,{jobs}/*,shell:echo one | tr o 0",
            "CELERY_BROKERS": ",".join(f"{name}={url}" for name, url in brokers.items()),
            "CELERY_RESULT_BACKENDS": f"{BROKER}={shop.results}",
            "CELERY_TASKS": ",".join(f"{name}:*@*" for name in brokers),
        },
    )
    request.config.stash[SHARED] = made
    yield made
    made.close()


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
def stack(shared_stack: SharedStack) -> SharedStack:
    """API, one beat, one worker and no document: shared by the tests of a module, which keep to their own
    schedules."""
    shared_stack.begin()
    return shared_stack


@pytest.fixture
def ups(request: pytest.FixtureRequest) -> Ups:
    """Two runs of `scheduler up`, which go from test to test."""
    return request.config.stash.setdefault(UPS, Ups())


@pytest.fixture
def redis_url(redis_server: Redis) -> str:
    """An address of a broker that is empty; the shared stack's messages stay."""
    with RedisClient.from_url(redis_server.url) as client:
        client.flushdb()
    return redis_server.url


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


# After the fixtures of the last test.
@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """What is shared ends with the last acceptance test: what comes next has no use for it."""
    if nextitem and nextitem.path.is_relative_to(FOLDER):
        return
    for each in (item.config.stash.get(SHARED, None), item.config.stash.get(UPS, None)):
        if each:
            each.close()

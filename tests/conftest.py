"""Real servers for the tests: one mongod and one Redis for each xdist worker, started when first asked for.

One each, and not one for all: a start costs a second, in parallel, and nothing has to be agreed between
processes. Both die with the test process, even when that is killed. A test that stops or breaks a server
starts its own (`scheduler_app.embedded`).
"""

import gc
import os
import secrets
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient
from redis import Redis as RedisClient
from xdist.scheduler import LoadFileScheduling

from scheduler_app.broker.backends import BACKENDS
from scheduler_app.embedded import Mongod, Redis, server
from tests import scratch
from tests.ports import own_ports
from tests.processes import Program

#: Files whose tests run one after the other, and share a browser, a RabbitMQ or runs of `scheduler up`.
SHARING = {
    "pages": ("tests/acceptance/pages/",),
    "rabbitmq": ("tests/conformance/broker/", "tests/integration/broker/test_rabbitmq_channel.py"),
    "ups": tuple(f"tests/acceptance/test_{name}.py" for name in ("readme", "up_private", "up_runs")),
}

# This process and those that the tests start keep what they compiled: each of a hundred would compile the
# package anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


class _ByFile(LoadFileScheduling):  # type: ignore[misc]
    """The tests of one file run in one process, and so do those of several files that share what is dear."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return next((what for what, files in SHARING.items() if file.startswith(files)), file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> _ByFile | None:
    return _ByFile(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_configure(config: pytest.Config) -> None:
    """Whatever ends this run, nothing that it started goes on, and nothing stays in the temporary folder."""
    # Ten thousand tests are collected, none of which is garbage: to look for some takes a third of the time.
    gc.disable()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell lets what it starts in the background ignore Ctrl-C, and so would all that the tests start.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(config, "workerinput"):
        scratch.end_with_parent()
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        scratch.enter()
        server.RANGE = own_ports(server.RANGE)


def pytest_collection_finish() -> None:
    """Takes what was collected out of garbage collections, as processes of the product do at their start.

    There is hardly any garbage in it: to look for that first would take a third of a second."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def transports() -> None:
    """kombu remembers the first transport that it finds for a scheme. In the product's processes that is
    ours; here a test's own Celery application could come first."""
    for backend in BACKENDS:
        backend.install()


class _KeepingMongod(Mongod):
    """The tests' `now` is long ago: once a minute all that they had finished by then would be gone."""

    def command(self) -> list[str]:
        return [*super().command(), "--setParameter", "ttlMonitorEnabled=false"]


@pytest.fixture(scope="session")
def mongod_server() -> Iterator[Mongod]:
    # Not pytest's tmp_path: that keeps the folders of the last runs, 300 MB each.
    with (
        tempfile.TemporaryDirectory(prefix="mongod-") as folder,
        _KeepingMongod(Path(folder)) as server,
    ):
        yield server


@pytest.fixture(scope="session")
def redis_server() -> Iterator[Redis]:
    with tempfile.TemporaryDirectory(prefix="redis-") as folder, Redis(Path(folder)) as server:
        yield server


@pytest.fixture
def mongo_uri(mongod_server: Mongod) -> str:
    return mongod_server.uri


@pytest.fixture
def database_name(mongod_server: Mongod) -> Iterator[str]:
    """A database of this test alone, dropped at its end."""
    name = f"test_{secrets.token_hex(6)}"
    yield name
    with MongoClient[dict[str, object]](mongod_server.uri) as client:
        client.drop_database(name)


@pytest.fixture
def redis_url(redis_server: Redis) -> str:
    """The broker's address; empty at the start of each test."""
    with RedisClient(port=redis_server.port) as client:
        client.flushall()
    return redis_server.url


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[..., Program]]:
    """Starts a program in `tmp_path`; what is left of it when the test ends is killed."""
    programs: list[Program] = []

    def start(*command: str, **environment: str) -> Program:
        programs.append(Program(command, tmp_path, environment))
        return programs[-1]

    yield start
    for program in programs:
        program.kill()

"""What the suite needs to know of each broker: how to run one, and how to put into it what is not ours."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

from redis import Redis as Client

from scheduler_app.broker.backends import BACKENDS
from scheduler_app.broker.queues import PRIORITIES, QUEUE
from scheduler_app.broker.redis.backend import RedisBackend, key_prefix
from scheduler_app.domain.lane import Lane
from scheduler_app.embedded import Redis


class Harness(ABC):
    """A server of its own for one test, which has been started."""

    #: The class of the registry's row.
    backend: type

    @abstractmethod
    def __init__(self, folder: Path) -> None:
        """Starts the server, with its data in `folder`."""

    @property
    @abstractmethod
    def url(self) -> str: ...

    @abstractmethod
    def kill(self) -> None: ...

    @abstractmethod
    def start(self) -> None:
        """Starts it again after `kill`, with the same data at the same URL."""

    @abstractmethod
    def put(self, raw: bytes, database: str) -> None:
        """Puts bytes into the queue of the deployment with this MongoDB database, ahead of all messages."""


class RedisHarness(Harness):
    backend = RedisBackend

    def __init__(self, folder: Path) -> None:
        self._server = Redis(folder).start()

    @property
    def url(self) -> str:
        return self._server.url

    def kill(self) -> None:
        self._server.kill()

    def start(self) -> None:
        self._server.start()

    def put(self, raw: bytes, database: str) -> None:
        assert PRIORITIES[Lane.URGENT] == 0, "a list of another priority has a longer name"
        with Client.from_url(self.url) as client:
            client.rpush(f"{key_prefix(database)}{QUEUE}", raw)


HARNESSES: dict[type, Callable[[Path], Harness]] = {harness.backend: harness for harness in (RedisHarness,)}


def missing() -> set[type]:
    """The registered brokers that have no harness."""
    return {type(backend) for backend in BACKENDS} - set(HARNESSES)

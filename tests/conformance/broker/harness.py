"""What the suite needs to know of each broker: how to run one, and how to put into it what is not ours."""

import atexit
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import amqp
from redis import Redis as Client

from scheduler_app.broker.backends import BACKENDS
from scheduler_app.broker.rabbitmq.backend import RabbitmqBackend
from scheduler_app.broker.rabbitmq.transport import LANES, QUORUM, lane_queue, name_prefix
from scheduler_app.broker.redis.backend import RedisBackend, key_prefix
from scheduler_app.broker.task import PRIORITIES, QUEUE
from scheduler_app.domain.action import Lane
from scheduler_app.embedded import RabbitMQ, Redis

#: The deployments of the tests.
DATABASES = ("ours", "with [brackets]*?")
_PASSWORD = "only-for-tests"


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

    @property
    @abstractmethod
    def release(self) -> tuple[str, str]:
        """What the running server says of itself: its name, and its version."""

    @abstractmethod
    def kill(self) -> None: ...

    @abstractmethod
    def start(self) -> None:
        """Starts it again after `kill`, with the same data at the same URL."""

    def end(self) -> None:
        """Is called when the test is over."""
        self.kill()

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

    @property
    def release(self) -> tuple[str, str]:
        with Client.from_url(self.url) as client:
            said = client.info("server")
        if "valkey_version" in said:
            return "Valkey", said["valkey_version"]
        return "Redis", said["redis_version"]

    def kill(self) -> None:
        self._server.kill()

    def start(self) -> None:
        self._server.start()

    def put(self, raw: bytes, database: str) -> None:
        assert PRIORITIES[Lane.URGENT] == 0, "a list of another priority has a longer name"
        with Client.from_url(self.url) as client:
            client.rpush(f"{key_prefix(database)}{QUEUE}", raw)


class RabbitmqHarness(Harness):
    """One server for all tests of a process, since it takes many seconds to start."""

    backend = RabbitmqBackend
    _shared: "RabbitMQ | None" = None

    def __init__(self, folder: Path) -> None:
        if RabbitmqHarness._shared is None:
            kept = tempfile.TemporaryDirectory(prefix="rabbitmq-")
            RabbitmqHarness._shared = RabbitMQ(Path(kept.name), password=_PASSWORD)
            atexit.register(kept.cleanup)
            atexit.register(RabbitmqHarness._shared.kill)
        self._server = RabbitmqHarness._shared
        self._was_killed = False
        if self._server.pid is None:
            self._server.start()

    @property
    def url(self) -> str:
        return self._server.url

    @property
    def release(self) -> tuple[str, str]:
        with self._channel() as channel:
            said = channel.connection.server_properties
        return said["product"], said["version"]

    def kill(self) -> None:
        self._was_killed = True
        self._server.kill()

    def start(self) -> None:
        self._server.start()

    def end(self) -> None:
        if self._was_killed:
            # RabbitMQ 3.10 now and then answers INTERNAL_ERROR for quorum queues that it had at a kill -9.
            self._server.kill()
            RabbitmqHarness._shared = None
            return
        with self._channel() as channel:
            for database in DATABASES:
                for lane in LANES:
                    # Not deleted: RabbitMQ 3.10 does not recover a quorum queue that was deleted and made
                    # again within minutes before a kill -9.
                    channel.queue_purge(_declared(channel, database, lane))

    def put(self, raw: bytes, database: str) -> None:
        with self._channel() as channel:
            name = _declared(channel, database, Lane.URGENT.value)
            channel.basic_publish_confirm(amqp.Message(raw), "", name)

    @contextmanager
    def _channel(self) -> Iterator[Any]:
        with amqp.Connection(f"127.0.0.1:{self._server.port}", "scheduler", _PASSWORD) as connection:
            yield connection.channel()


def _declared(channel: Any, database: str, lane: str) -> str:
    name = lane_queue(name_prefix(database), QUEUE, lane)
    channel.queue_declare(name, durable=True, auto_delete=False, arguments=QUORUM)
    return name


HARNESSES: dict[type, Callable[[Path], Harness]] = {
    harness.backend: harness for harness in (RedisHarness, RabbitmqHarness)
}


def missing() -> set[type]:
    """The registered brokers that have no harness."""
    return {type(backend) for backend in BACKENDS} - set(HARNESSES)

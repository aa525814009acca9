"""The processes that most acceptance tests share: starting them takes longer than many a test."""

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pymongo import MongoClient
from redis import Redis as RedisClient

from scheduler_app.embedded import free_port
from tests.acceptance.stack import Process, Stack, pids_of

PARTS = ("api", "beat", "worker")


class SharedStack(Stack):
    """An API, a beat and a worker over a database that is emptied for each module.

    A module's tests keep to schedules of their own. They may start more processes, and kill or stop the
    three: before the next module the others are ended, and of the three those that have ended are started
    again.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        super().__init__(folder, environment)
        self.parts: dict[str, Process] = {}
        self._url = ""
        #: Where the worker tells its metrics.
        self.metrics_port = free_port()

    def begin(self) -> None:
        """Gives the next module what the first had: three processes, empty logs, no documents but theirs."""
        parts = {name: process for name, process in self.parts.items() if process.poll() is None}
        self._end(process for process in self.running if process not in parts.values())
        self.running = list(parts.values())
        self.parts = parts
        self._empty_redis()
        for log in self.folder.glob("*.log"):
            os.truncate(log, 0)
        self.empty()
        self.mend()
        self.url = self._url

    def mend(self) -> None:
        """Starts those of the three again that have ended, side by side, and waits for them."""
        missing = [name for name in PARTS if name not in self.parts or self.parts[name].poll() is not None]
        starts: dict[str, Callable[[], Process]] = {
            "api": self._begin_api,
            "beat": lambda: self._begin_beat("beat"),
            "worker": lambda: self._begin_worker("worker", METRICS_PORT=str(self.metrics_port)),
        }
        self.parts |= {name: starts[name]() for name in missing}
        for name in missing:
            if name == "api":
                self._wait_for_api(self.parts[name])
                self._url = self.url
            else:
                self.wait_for_node(name, self.parts[name].pid)

    def empty(self) -> None:
        """Removes all documents but those of running processes, and of the partitions that these own."""
        alive = [pid for process in self.running for pid in pids_of(process)]
        with MongoClient[dict[str, Any]](self.environment["MONGO_URI"]) as client:
            database = client[self.environment["MONGO_DATABASE"]]
            collections = database.list_collection_names(filter={"type": "collection"})
            for name in set(collections) - {"nodes", "partitions", "system.views"}:
                database[name].delete_many({})
            database["nodes"].delete_many({"pid": {"$nin": alive}})

    def _empty_redis(self) -> None:
        """Removes what waits there, what processes that were killed have held, which until the visibility
        timeout would count as held by a worker of the next module, and what was counted for destinations: one
        of the same name would begin with its breaker open, or its slots taken."""
        with RedisClient.from_url(self.environment["BROKER_URL"]) as broker:
            queues = broker.scan_iter(match=f"{self.key('')}*", _type="list")
            counted = set(broker.scan_iter(match=f"{self.key('flow:')}*"))
            # Without the instant at which it began, flow control would grant nothing for a while, as after a
            # loss.
            counted.discard(self.key("flow:began").encode())
            broker.delete(self.key("unacked"), self.key("unacked_index"), *queues, *counted)

    @contextmanager
    def stopped(self, name: str) -> Iterator[None]:
        """While one of the three does nothing (SIGSTOP)."""
        os.killpg(self.parts[name].pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.killpg(self.parts[name].pid, signal.SIGCONT)

    def kill_parts(self, *names: str) -> None:
        """kill -9; `mend()` starts them again."""
        for name in names:
            self.kill(self.parts[name])

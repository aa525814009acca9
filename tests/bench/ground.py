"""What every benchmark stands on: real servers in a temporary folder, the product's processes, the sink."""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import requests

from scheduler_app.clock import clock
from scheduler_app.config import Settings
from scheduler_app.domain.states import LIVING
from scheduler_app.embedded import Mongod, RabbitMQ, Redis, free_port
from scheduler_app.store import Store
from tests.acceptance.stack import Stack
from tests.bench.arrivals import Arrival
from tests.bench.costs import Costs
from tests.bench.receiver import Receiver, receiver

CORES = os.cpu_count() or 1
START_SECONDS = 60
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
GUNICORN = Path(__file__).parents[2] / "deploy" / "gunicorn.conf.py"


class Ground:
    """Stores, processes and the sink of one run."""

    def __init__(self, settings: Settings, store: Store, stack: Stack, sink: Receiver) -> None:
        self.settings = settings
        self.store = store
        self.stack = stack
        self.sink = sink
        self.processes: dict[str, int] = {}
        self._metrics: dict[str, int] = {}
        self.costs = Costs(store, settings.broker_url, self.processes, self._metrics)

    @property
    def url(self) -> str:
        return self.sink.url()

    def add(self, kind: str) -> float:
        """One more `worker`, `beat` or `api`; returns the seconds until it was ready."""
        name = f"{kind}{1 + sum(known.startswith(kind) for known in self.processes)}"
        began = time.monotonic()
        if kind == "api":
            self.processes[name] = self._api()
        else:
            port = free_port()
            start = self.stack.worker if kind == "worker" else self.stack.beat
            self.processes[name] = start(name, METRICS_PORT=str(port)).pid
            self._metrics[name] = port
        return time.monotonic() - began

    def arrivals(self) -> list[Arrival]:
        """What came to the sink since the last call."""
        return self.sink.arrivals()

    def idle(self) -> bool:
        """Whether all events are finished. Ask when the last one is due, not before: twenty such questions a
        second were a sixth of the time of mongod's operations at 20 events a second."""
        living = self._living({"$gt": LONG_AGO})
        return self.store.mongo.collection("events").find_one(living, {"_id": 1}, hint="due_v4") is None

    def late(self, moment: datetime) -> int:
        """How many events were due before `moment` and are not finished."""
        living = self._living({"$gt": LONG_AGO, "$lt": moment})
        return self.store.mongo.collection("events").count_documents(living, hint="due_v4")

    def _living(self, due: dict[str, datetime]) -> dict[str, Any]:
        return {"state": {"$in": sorted(LIVING)}, "due_at": due}

    def expanded(self, until: datetime) -> bool:
        """Whether every occurrence up to `until` is an event."""
        early = {"state": "active", "next_run_at": {"$lte": until}}
        return self.store.mongo.collection("schedules").find_one(early, {"_id": 1}) is None

    def completed(self) -> int:
        """Events that ended well; it reads them all, so not while something is measured."""
        return self.store.mongo.collection("events").count_documents({"state": "completed"})

    def _api(self) -> int:
        """As deploy/ has it served."""
        port = free_port()
        process = self.stack.start(
            "api", "gunicorn", "-c", str(GUNICORN), "scheduler_app.api:create_app()", API_PORT=str(port)
        )
        self.stack.url = f"http://127.0.0.1:{port}"
        wait_for(self._healthy, START_SECONDS, f"the API to answer\n{self.stack.logs()}")
        return process.pid

    def _healthy(self) -> bool:
        try:
            return requests.get(f"{self.stack.url}/health", timeout=5).ok
        except (requests.ConnectionError, requests.Timeout):
            return False


@contextmanager
def broker(name: str) -> Iterator[str]:
    """The URL of a broker other than the ground's Redis, which runs meanwhile; empty for that one."""
    if name == "redis":
        yield ""
        return
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, RabbitMQ(Path(folder)) as server:
        yield server.url


@contextmanager
def ground(
    *,
    workers: int = 0,
    beats: int = 0,
    apis: int = 0,
    broker_url: str = "",
    data: Path | None = None,
    **settings: str,
) -> Iterator[Ground]:
    """Starts everything, and ends it again whatever happens. `settings` are the processes' environment,
    `data` is a folder for MongoDB's files, which stays."""
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as folder,
        Mongod(data or Path(folder) / "mongod") as mongod,
        Redis(Path(folder) / "redis") as redis,
        receiver() as sink,
    ):
        environment = {
            "MONGO_URI": mongod.uri,
            "MONGO_DATABASE": "bench",
            "BROKER_URL": broker_url or redis.url,
            "CALLBACK_ALLOWED_NETWORKS": "127.0.0.0/8",
            "LOG_LEVEL": "warning",
            **settings,
        }
        stack = Stack(Path(folder), environment)
        read = Settings(mongo_uri=mongod.uri, mongo_database="bench", broker_url=redis.url)
        store = Store(read)
        try:
            store.prepare()
            made = Ground(read, store, stack, sink)
            made.processes |= {"mongod": mongod.pid or 0, "redis": redis.pid or 0, "sink": sink.pid}
            for kind, count in (("worker", workers), ("beat", beats), ("api", apis)):
                for _ in range(count):
                    made.add(kind)
            yield made
        finally:
            stack.close()
            store.close()


def sleep_until(moment: datetime) -> None:
    time.sleep(max(0.0, (moment - clock.now()).total_seconds()))


def wait_for(condition: Callable[[], bool], seconds: float, what: str, *, every: float = 0.05) -> None:
    """Polls `condition()`, which must cost next to nothing; fails with `what`. Times are seconds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:g} s in vain for {what}")
        time.sleep(every)

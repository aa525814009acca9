"""What every benchmark stands on: real servers in a temporary folder, the product's processes, the sink."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import requests

from scheduler_app.config import Settings
from scheduler_app.embedded import Mongod, Redis
from scheduler_app.store import Store
from tests.acceptance.stack import Stack


@dataclass(frozen=True)
class Arrival:
    """A request at the sink; Unix seconds."""

    at: float
    key: str
    run_time: float


@dataclass
class Ground:
    """Stores, processes and the sink of one run."""

    settings: Settings
    store: Store
    stack: Stack
    sink_port: int
    processes: dict[str, int]
    before: dict[str, float] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.sink_port}/"

    def arrivals(self) -> list[Arrival]:
        """What came to the sink since the last call."""
        rows = requests.get(f"{self.url}report", timeout=120).json()
        return [Arrival(at, key, _unix(run_time)) for at, key, run_time in rows]

    def living(self) -> int:
        """Events that are not finished; by index alone, so that asking costs the run nothing."""
        return sum(self.store.events.living_by_state().values())

    def start_counting_cpu(self) -> None:
        self.before = {name: _cpu(pid) for name, pid in self.processes.items()}

    def cpu_seconds(self) -> dict[str, float]:
        """CPU used by each kind of process since `start_counting_cpu`."""
        return {name: round(_cpu(pid) - self.before[name], 3) for name, pid in self.processes.items()}


@contextmanager
def ground(*, workers: int, beats: int = 1, **settings: str) -> Iterator[Ground]:
    """Starts everything, and ends it again whatever happens."""
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as folder,
        Mongod(Path(folder) / "mongod") as mongod,
        Redis(Path(folder) / "redis") as redis,
        _sink() as (sink_port, sink_pid),
    ):
        environment = {
            "MONGO_URI": mongod.uri,
            "MONGO_DATABASE": "bench",
            "BROKER_URL": redis.url,
            "CALLBACK_ALLOWED_NETWORKS": "127.0.0.0/8",
            "LOG_LEVEL": "warning",
            **settings,
        }
        stack = Stack(Path(folder), environment)
        read = Settings(mongo_uri=mongod.uri, mongo_database="bench", broker_url=redis.url)
        store = Store(read)
        try:
            store.prepare()
            processes = {"mongod": mongod.pid or 0, "redis": redis.pid or 0, "sink": sink_pid}
            for number in range(workers):
                name = f"worker{number + 1}"
                processes[name] = stack.worker(name).pid
            for number in range(beats):
                name = f"beat{number + 1}"
                processes[name] = stack.beat(name).pid
            yield Ground(read, store, stack, sink_port, processes)
        finally:
            stack.close()
            store.close()


@contextmanager
def _sink() -> Iterator[tuple[int, int]]:
    process = subprocess.Popen([sys.executable, "-m", "tests.bench.sink"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline()), process.pid
    finally:
        process.kill()
        process.wait()


def _cpu(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def _unix(run_time: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(run_time).timestamp()


def percentiles(values: list[float]) -> dict[str, float]:
    """p50, p99 and max."""
    ordered = sorted(values)
    last = len(ordered) - 1
    return {
        "p50": round(ordered[last // 2], 2),
        "p99": round(ordered[int(last * 0.99)], 2),
        "max": round(ordered[-1], 2),
    }


def wait_for(condition: object, seconds: float, what: str) -> None:
    """Polls `condition()`; fails with `what`."""
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:g} s in vain for {what}")
        time.sleep(0.2)


CORES = os.cpu_count() or 1

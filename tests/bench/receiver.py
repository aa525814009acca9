"""A receiver of callbacks: a process of its own (tests/bench/sink.py), and what it has seen."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import requests

from tests.bench.arrivals import Arrival


@dataclass(frozen=True)
class Receiver:
    """Its process, and a port for each of its origins."""

    pid: int
    ports: tuple[int, ...]

    def url(self, number: int = 0) -> str:
        """The root of one of its origins; they are taken in turn."""
        return f"http://127.0.0.1:{self.ports[number % len(self.ports)]}/"

    def arrivals(self) -> list[Arrival]:
        """What came since the last call."""
        rows = requests.get(f"{self.url()}report", timeout=120).json()
        return [Arrival.of(*row) for row in rows]

    def held(self) -> int:
        """How many connections wait for an answer that does not come, or does not end."""
        return int(requests.get(f"{self.url()}held", timeout=120).json())


@contextmanager
def receiver(ports: int = 1) -> Iterator[Receiver]:
    """Starts it, and ends it whatever happens."""
    command = [sys.executable, "-m", "tests.bench.sink", str(ports)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield Receiver(process.pid, tuple(map(int, process.stdout.readline().split())))
    finally:
        process.kill()
        process.wait()

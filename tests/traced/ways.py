"""The ways that are traced, and what their threads do."""

import json
import secrets
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

from pymongo import MongoClient

from tests.traced.tracer import ROOT

#: By the way, the threads that it passes, in its order: how their names begin, and what they do.
THREADS = {
    "POST": {"MainThread": "a thread of the API"},
    "occurrence": {
        "MainThread": "a beat: its duties `expand` and `dispatch`",
        "Thread-": "a worker, Celery's loop: takes the message",
        "ThreadPoolExecutor-": "a worker, a thread of Celery's pool: claims",
        "handover": "a worker, a thread `handover`: judges when the event is due",
        "courier": "a worker, the thread `courier`: sends",
        "recorder": "a worker, the thread `recorder`: records",
    },
}
#: Threads by which no occurrence passes until it is recorded: they go on by themselves, and what they enter
#: depends on when they do.
BY_THEMSELVES = ("flow-control", "followers", "leases", "presence", "rejudging", "reports", "withholding")


class Step(NamedTuple):
    """What one thread adds to a way."""

    thread: str
    files: tuple[str, ...]
    """Those that no thread before it has entered."""


class Trace(NamedTuple):
    """What one request or occurrence entered."""

    steps: tuple[Step, ...]
    moves: int

    @property
    def files(self) -> list[str]:
        return [file for step in self.steps for file in step.files]


def traced(way: str, mongo_uri: str, redis_url: str) -> list[Trace]:
    """Goes the way in a new process, in a database of its own. Of a POST it returns the first request of that
    process and the second one."""
    database = f"traced_{secrets.token_hex(6)}"
    command = [sys.executable, "-m", "tests.traced", way, mongo_uri, database, redis_url]
    try:
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    finally:
        with MongoClient[dict[str, object]](mongo_uri) as client:
            client.drop_database(database)
    return [_trace(way, found) for found in json.loads(done.stdout.splitlines()[-1])]


def _trace(way: str, seen: Mapping[str, Any]) -> Trace:
    threads = THREADS[way]
    strange = [name for name in seen if not name.startswith((*threads, *BY_THEMSELVES))]
    assert not strange, f"tests/traced/ways.py does not say what these threads do: {strange}"
    entered: set[str] = set()
    steps, moves = [], 0
    for begins, does in threads.items():
        (thread,) = [each for name, each in seen.items() if name.startswith(begins)]
        steps.append(Step(does, tuple(file for file in thread["files"] if file not in entered)))
        entered.update(thread["files"])
        moves += thread["moves"]
    return Trace(tuple(steps), moves)

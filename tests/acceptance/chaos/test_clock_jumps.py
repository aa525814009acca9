"""mongod's clock jumps by a minute and back: no callback is early or lost, no lease ends, workers go on.

It needs libfaketime (`apt-get install faketime`), under mongod alone.
"""

import shutil
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from socket import socket
from typing import Any

import pytest
import requests
from pymongo import MongoClient

from scheduler_app.embedded import Mongod
from tests.acceptance.journal import Journal
from tests.acceptance.stack import Stack
from tests.integration.actions.receiver import Seen, says
from tests.processes import wait_until

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(300)]

SECONDLY = 5
#: A callback that takes so long has a lease of 35 s, which a jump by a minute passes over.
SLOW_SECONDS = 8
#: An API, a beat, two workers.
PROCESSES = 4
#: Each process measures mongod's clock every 10 s and reports every 5 s. libfaketime delays mongod's own
#: timers after a jump, and other tests may use the same cores.
MEASURED_WITHIN_SECONDS = 60
LATE_SECONDS = 5.0


def library() -> str:
    """Where libfaketime is. Raises FileNotFoundError, which says how to install it."""
    found = [
        *Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"),
        *Path("/usr/local/lib").glob("**/libfaketimeMT.*"),
    ]
    if not found:
        raise FileNotFoundError("this test needs libfaketime: apt-get install faketime")
    return str(found[0])


class JumpingMongod(Mongod):
    """A mongod whose wall clock is off by what stands in a file; its monotonic one is right."""

    def command(self) -> list[str]:
        env = shutil.which("env")
        assert env
        return [
            env,
            f"LD_PRELOAD={library()}",
            f"FAKETIME_TIMESTAMP_FILE={self._file}",
            "FAKETIME_NO_CACHE=1",
            "FAKETIME_DONT_FAKE_MONOTONIC=1",
            *super().command(),
        ]

    def jump(self, seconds: int) -> None:
        """Puts its clock so far from the true time."""
        fresh = self._file.with_suffix(".new")
        fresh.write_text(f"{seconds:+d}s\n")
        fresh.rename(self._file)

    @property
    def _file(self) -> Path:
        return self.directory.parent / "faketime"


@pytest.fixture
def mongod(tmp_path: Path) -> Iterator[JumpingMongod]:
    made = JumpingMongod(tmp_path / "mongod")
    made.jump(0)
    with made:
        yield made


@pytest.fixture
def two_workers(make_stack: Callable[..., Stack], mongod: JumpingMongod) -> Stack:
    stack = make_stack(MONGO_URI=mongod.uri)
    stack.api()
    stack.beat()
    stack.worker("w1")
    stack.worker("w2")
    return stack


def nodes(stack: Stack) -> list[dict[str, Any]]:
    with MongoClient[dict[str, Any]](stack.environment["MONGO_URI"]) as client:
        return list(client[stack.environment["MONGO_DATABASE"]]["nodes"].find())


def everybody_sees(stack: Stack, jump: int) -> bool:
    """After a jump ahead MongoDB drops the processes' reports as old, until they report again."""
    measured: dict[Any, float] = {node["_id"]: node["clock_jump_seconds"] for node in nodes(stack)}
    print(f"waiting for {PROCESSES} processes to measure {jump:+d} s; measured now:", measured)
    return sum(abs(each - jump) < 1 for each in measured.values()) == PROCESSES


def takes_its_time(seen: Seen, connection: socket) -> bool:
    time.sleep(SLOW_SECONDS)
    return says()(seen, connection)


def test_a_jump_of_mongods_clock_and_back_makes_nothing_early_and_loses_nothing(
    two_workers: Stack, mongod: JumpingMongod, journal: Journal
) -> None:
    stack, slow = two_workers, journal.script("/slow", takes_its_time)
    schedules = [stack.create(journal.url(f"/{number}"), rrule="FREQ=SECONDLY") for number in range(SECONDLY)]
    schedules.append(stack.create(slow, rrule="FREQ=SECONDLY;INTERVAL=2", timeout_seconds=20))
    for jump in (60, 0, -60, 0):
        mongod.jump(jump)
        seen = partial(everybody_sees, stack, jump)
        wait_until(seen, f"a jump of {jump} s to be seen")
        workers = [node for node in nodes(stack) if node["role"] == "worker"]
        assert [node["consuming"] for node in workers] == [True, True]
        checks = requests.get(f"{stack.url}/readyz").json()["checks"]
        assert [name for name, check in checks.items() if not check["ok"]] == (["clocks"] if jump else [])
        time.sleep(SLOW_SECONDS)  # the length of the fault: slow callbacks begin and end in it
    for schedule_id in schedules:
        stack.post(f"/schedules/{schedule_id}/pause", status=200)
    for schedule_id in schedules:
        wait_until(lambda: not stack.events(schedule_id, "pending"), "nothing to be pending")  # noqa: B023
    for path, calls in journal.calls.items():
        step = 2 if path == "/slow" else 1
        came = [datetime.fromisoformat(call.run_time) for call in calls]
        assert len(set(came)) == len(came), f"{path} was called twice for one instant"
        owed = int((max(came) - min(came)).total_seconds()) // step + 1
        assert len(came) == owed, f"lost by {path}"
        lags = [call.at - due.timestamp() for call, due in zip(calls, came, strict=True)]
        assert min(lags) >= 0, f"{path} was called early"
        assert max(lags) < LATE_SECONDS
    assert "recover.workers" not in stack.logs()

"""Two deployments share one Redis, database and all: neither sees the other's messages or commands."""

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.acceptance.journal import Journal
from tests.acceptance.shared_stack import SharedStack
from tests.acceptance.stack import ONCE, Stack

COUNT, TRIES = 40, 3


@pytest.mark.timeout(180)
def test_each_makes_all_of_its_own_callbacks_and_hears_only_its_own_commands(
    stack: SharedStack, make_stack: Callable[..., Stack], journal: Journal
) -> None:
    one, other = stack, make_stack(BROKER_URL=stack.environment["BROKER_URL"])
    # The workers have the same name: only the prefix tells which is meant.
    workers = [one.parts["worker"], other.all()[2]]

    def go_straight(path: str) -> bool:
        """Whether no message went to the other deployment: that would have been recovered, 10 s later."""
        made = [each.create_many(COUNT, journal.url(path), rrule=ONCE) for each in (one, other)]
        straight = True
        for each, schedules in zip((one, other), made, strict=True):
            for schedule in schedules:
                (event,) = each.finished(schedule)
                assert event["state"] == "completed"
                told = " ".join(line["message"] for line in event["status"])
                straight &= event["attempts"][0]["lag_ms"] < 9_000 and "lost" not in told
        assert len(journal.calls[path]) == 2 * COUNT
        return straight

    # A machine that stands still for so long makes one of several tries late.
    assert any(go_straight(f"/{number}") for number in range(TRIES))

    name = f"worker@{socket.gethostname()}"
    options = ("--json", "--timeout", "30", "--destination", name)
    command = (sys.executable, "-m", "celery", "-A", "scheduler_app", "inspect", *options, "stats")

    def inspected(stack: Stack) -> int:
        done = subprocess.run(command, env=stack.environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        pid: int = json.loads(done.stdout)[name]["pid"]
        return pid

    with ThreadPoolExecutor(2) as side_by_side:
        assert list(side_by_side.map(inspected, (one, other))) == [worker.pid for worker in workers]

"""Two deployments share one Redis, database and all: neither sees the other's messages or commands."""

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from tests.acceptance.journal import Journal
from tests.acceptance.stack import Stack

COUNT = 40


@pytest.mark.timeout(180)
def test_each_makes_all_of_its_own_callbacks_and_hears_only_its_own_commands(
    make_stack: Callable[..., Stack], journal: Journal
) -> None:
    one = make_stack()
    other = make_stack(BROKER_URL=one.environment["BROKER_URL"])
    for stack in (one, other):
        stack.api()
        stack.beat()
        # The same name: only the prefix tells who is meant.
        stack.worker()
    due = (datetime.now(UTC) + timedelta(seconds=2)).isoformat()
    made = [stack.create_many(COUNT, journal.url("/"), run_at=due) for stack in (one, other)]
    for stack, schedules in zip((one, other), made, strict=True):
        for schedule in schedules:
            (event,) = stack.finished(schedule)
            assert event["state"] == "completed"
            # A message that went to the other deployment would have been recovered, 10 s later.
            assert event["attempts"][0]["lag_ms"] < 9_000
            assert "lost" not in " ".join(line["message"] for line in event["status"])
    assert len(journal.calls["/"]) == 2 * COUNT

    worker = f"worker@{socket.gethostname()}"
    options = ("--json", "--timeout", "5", "--destination", worker)
    command = (sys.executable, "-m", "celery", "-A", "scheduler_app", "inspect", *options, "stats")
    for stack in (one, other):
        done = subprocess.run(command, env=stack.environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        pid = stack.running[2].pid
        assert json.loads(done.stdout)[worker]["pid"] == pid

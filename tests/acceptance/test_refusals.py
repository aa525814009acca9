"""One worker with wrong settings does not turn the others' events into errors."""

import json
import re
import subprocess
import sys

import pytest
import requests

from scheduler_app.embedded import free_port
from tests.acceptance.journal import Journal
from tests.acceptance.shared_stack import SharedStack
from tests.acceptance.stack import ONCE
from tests.processes import wait_until

COUNT = 30


@pytest.mark.timeout(180)
def test_what_one_worker_refuses_another_sends_and_doctor_says_who_differs(
    stack: SharedStack, journal: Journal
) -> None:
    port = free_port()
    stack.kill_parts("worker")
    wrong = stack.worker("wrong", CALLBACK_ALLOWED_NETWORKS="", METRICS_PORT=str(port))

    def refused() -> float:
        text = requests.get(f"http://127.0.0.1:{port}/metrics").text
        (count,) = re.findall(r"^scheduler_callbacks_refused_total ([\d.]+)", text, re.MULTILINE)
        return float(count)

    def is_tried(schedule: str) -> bool:
        return any(event["attempts"] for event in stack.events(schedule, "pending"))

    made = stack.create_many(COUNT, journal.url("/"), rrule=ONCE, max_retries=50, retry_backoff_max_seconds=8)
    wait_until(lambda: refused() >= COUNT, "the wrong worker to refuse them")
    # Some may have been refused twice by then, and others not yet.
    wait_until(lambda: all(map(is_tried, made)), "it to refuse each of them", pause=0.2)
    assert not journal.calls["/"]
    stack.mend()
    command = (sys.executable, "-m", "scheduler_app.cli", "doctor", "--json")
    done = subprocess.run(command, env=stack.environment, capture_output=True, text=True)
    (found,) = [check for check in json.loads(done.stdout)["checks"] if check["name"] == "settings"]
    assert found["status"] == "wrong"
    assert found["found"].startswith("CALLBACK_ALLOWED_NETWORKS is")
    # Whoever mends it takes the wrong one away.
    wrong.terminate()
    wrong.wait()
    for schedule in made:
        (event,) = stack.finished(schedule)
        assert event["state"] == "completed"
        first, last = event["attempts"][0], event["attempts"][-1]
        assert first["error"].startswith("refused by this worker's settings: the receiver has a private")
        assert (last["status_code"], last["error"]) == (200, None)
    assert len(journal.calls["/"]) == COUNT
    assert stack.parts["worker"].poll() is None

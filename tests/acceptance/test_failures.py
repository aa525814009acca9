"""A receiver that fails is told of by everybody who is asked, whoever dies meanwhile, until it is over."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import requests

from tests.acceptance.journal import Journal
from tests.acceptance.shared_stack import SharedStack
from tests.acceptance.stack import ONCE
from tests.integration.actions.receiver import says
from tests.processes import wait_until

SCHEDULES = 60


def status(stack: SharedStack) -> dict[str, Any]:
    found: dict[str, Any] = requests.get(f"{stack.url}/api/status").json()
    return found


def kinds(stack: SharedStack) -> list[str]:
    return [each["kind"] for each in status(stack)["reasons"]]


@pytest.mark.timeout(300)
def test_a_failing_receiver_is_one_reason_for_all_until_its_events_were_sent_again(
    stack: SharedStack, journal: Journal
) -> None:
    stack.empty()
    wait_until(lambda: kinds(stack) == [], "all to be well", pause=0.5)
    # However often: of what the killed worker has sent and not recorded, the next one makes a request again.
    url = journal.script("/hook", says("500 Oh No"))
    stack.create_many(SCHEDULES, url, rrule=ONCE, max_retries=0, tags=["team:a"])
    wait_until(lambda: kinds(stack) == ["failing"], "the failure to be told", pause=0.2)
    stack.kill_parts("worker", "beat")
    stack.mend()

    def all_failed() -> bool:
        reasons = status(stack)["reasons"]
        return [(each["kind"], each["schedules"], each["events"]) for each in reasons] == [
            ("failing", SCHEDULES, SCHEDULES)
        ] or [(each["kind"], each["events"]) for each in reasons] == [("dead_letters", SCHEDULES)]

    wait_until(all_failed, "all of its schedules to be counted", pause=0.5)
    [failure] = requests.get(f"{stack.url}/api/failures").json()["failures"]
    assert failure["events"]["dead_letters"] == SCHEDULES

    def command_tells() -> bool:
        told = subprocess.run(
            [sys.executable, "-m", "scheduler_app.cli", "status"],
            env={**stack.environment, "SCHEDULER_URL": stack.url},
            capture_output=True,
            text=True,
            check=False,
        )
        return told.returncode == 1 and told.stdout.startswith("attention since ") and "team:a" in told.stdout

    def is_ready() -> bool:
        ready = requests.get(f"{stack.url}/readyz")
        return (ready.status_code, ready.json()["verdict"]) == (200, "attention")

    def shows(path: str, words: str) -> Callable[[], bool]:
        return lambda: words in requests.get(f"{stack.url}{path}").text

    # Each until it is so: what MongoDB does not answer within 1.5 s is told as a fault of MongoDB.
    wait_until(command_tells, "the command to tell of it", pause=0.2)
    wait_until(shows("", 'data-verdict="attention"'), "the first page to tell of it", pause=0.2)
    wait_until(shows("/metrics", "scheduler_verdict 1.0"), "the metrics to tell of it", pause=0.2)
    wait_until(is_ready, "the API to be ready, and to tell of it", pause=0.2)
    journal.script("/hook", says())
    asked = {"cause": failure["id"], "rate": 100}
    answer = requests.post(f"{stack.url}/api/events/redrive", json=asked)
    assert answer.status_code == 202
    redrive = f"{stack.url}/api/redrives/{answer.json()['redrive_id']}"
    stack.kill_parts("beat")
    stack.mend()
    wait_until(lambda: requests.get(redrive).json()["state"] == "sent", "the redrive", pause=0.5)
    assert requests.get(redrive).json()["sent"] == SCHEDULES
    wait_until(lambda: status(stack)["verdict"] == "well", "it to be over", pause=0.5)
    [failure] = requests.get(f"{stack.url}/api/failures").json()["failures"]
    assert (failure["state"], failure["resent"]) == ("over", SCHEDULES)

"""The witness tells what beats and workers cannot say of themselves, without them and without a broker."""

import json

import pytest
import requests

from tests.acceptance.journal import Journal
from tests.acceptance.shared_stack import SharedStack
from tests.processes import wait_until


@pytest.mark.timeout(300)
def test_the_death_of_all_beats_and_workers_is_told_once_and_so_is_their_return(
    stack: SharedStack, journal: Journal
) -> None:
    away = "redis://127.0.0.1:1/0"
    stack.start("witness", "scheduler_app.cli", "witness", METRICS_PORT="0", BROKER_URL=away)
    rule = {
        "on": ["machinery", "recovered"],
        "after_seconds": 0,
        "to": [{"type": "webhook", "url": journal.url("/alerts")}],
    }
    assert requests.put(f"{stack.url}/api/notifications/ops", json=rule).status_code == 201

    def told(kind: str) -> list[str]:
        bodies = [json.loads(call.seen.body) for call in journal.calls["/alerts"]]
        return sorted(each["data"]["failure"]["subject"] for each in bodies if each["type"] == kind)

    try:
        stack.kill_parts("beat", "worker")
        both = ["beat", "worker"]
        wait_until(lambda: told("failure.began") == both, "both to be told", pause=0.2)
    finally:
        stack.mend()
    wait_until(lambda: told("failure.over") == both, "their return to be told", pause=0.2)
    keys = [call.key for call in journal.calls["/alerts"]]
    assert len(keys) == len(set(keys)) == 4

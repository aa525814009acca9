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

    def failures(kind: str = "") -> list[dict[str, str]]:
        bodies = [json.loads(call.seen.body) for call in journal.calls["/alerts"]]
        return [each["data"]["failure"] for each in bodies if kind in ("", each["type"])]

    def told(kind: str) -> set[str]:
        return {each["subject"] for each in failures(kind)}

    try:
        stack.kill_parts("beat", "worker")
        both = {"beat", "worker"}
        wait_until(lambda: told("failure.began") == both, "both to be told", pause=0.2)
    finally:
        stack.mend()
    wait_until(lambda: told("failure.over") == both, "their return to be told", pause=0.2)
    calls = journal.calls["/alerts"]
    assert len({call.key for call in calls}) == len(calls)
    # Of this death: on a machine that stands still they may seem to be dead once more.
    urls = [failure["url"] for failure in failures()]
    assert sorted(urls.count(each) for each in urls[:2]) == [2, 2]

"""Destinations hear of every event that ended in error, whoever dies meanwhile."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import requests
from pymongo import MongoClient

from tests.acceptance.journal import Journal
from tests.acceptance.stack import ONCE, Stack
from tests.integration.actions.receiver import says
from tests.processes import wait_until


def states(stack: Stack, which: dict[str, Any]) -> int:
    with MongoClient[dict[str, Any]](stack.environment["MONGO_URI"]) as client:
        found: int = client[stack.environment["MONGO_DATABASE"]]["events"].count_documents(which)
        return found


@pytest.mark.parametrize("count", [100, pytest.param(1_000, marks=pytest.mark.long)])
@pytest.mark.timeout(240)
def test_failures_are_told_of_once_each_while_workers_and_beats_are_killed(
    make_stack: Callable[..., Stack], journal: Journal, count: int
) -> None:
    stack = make_stack()
    stack.api()
    beat = stack.beat("first")
    victim = stack.worker("victim")
    put = {"url": journal.url("/told"), "max_retries": 50, "retry_backoff_seconds": 0.1}
    assert requests.put(f"{stack.url}/api/destinations/ops", json=put, timeout=20).status_code == 201
    url = journal.script("/fails", says("500 Oh No", body=b"why it failed"))
    stack.create_many(count, url, rrule=ONCE, max_retries=0, on_failure="ops")
    failed = {"kind": "scheduled", "state": "error"}
    wait_until(lambda: states(stack, failed) > count // 10, "some failures", 60)
    stack.kill(victim)
    stack.kill(beat)
    stack.worker("heir")
    stack.beat("second")
    wait_until(lambda: states(stack, failed) == count, "all failures", 120)
    told = {"kind": "message"}
    wait_until(lambda: states(stack, told | {"state": "completed"}) == count, "all notifications", 120)
    assert states(stack, told) == count
    wait_until(lambda: states(stack, {"notify": {"$exists": True}}) == 0, "the last marks to go")
    calls = journal.calls["/told"]
    bodies = {call.key: json.loads(call.seen.body) for call in calls}
    events = {body["event"]["id"] for body in bodies.values()}
    assert len(bodies) == len(events) == count
    assert {f"msg_{each}-on-failure" for each in events} == bodies.keys()
    assert all(body["event"]["state"] == "error" and body["event"]["schedule_id"] for body in bodies.values())
    assert {body["answer"] for body in bodies.values()} == {"why it failed"}

"""Destinations hear of every event that ended in error, whoever dies meanwhile."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from pymongo import MongoClient
from pymongo.collection import Collection

from tests.acceptance.journal import Journal
from tests.acceptance.shared_stack import SharedStack
from tests.acceptance.stack import ONCE
from tests.integration.actions.receiver import says
from tests.processes import wait_until


@pytest.fixture
def events(stack: SharedStack) -> Iterator[Collection[dict[str, Any]]]:
    with MongoClient[dict[str, Any]](stack.environment["MONGO_URI"]) as client:
        yield client[stack.environment["MONGO_DATABASE"]]["events"]


@pytest.mark.parametrize("count", [100, pytest.param(1_000, marks=pytest.mark.long)])
@pytest.mark.timeout(240)
def test_failures_are_told_of_once_each_while_workers_and_beats_are_killed(
    stack: SharedStack, events: Collection[dict[str, Any]], journal: Journal, count: int
) -> None:
    stack.empty()

    def wait_for(which: dict[str, Any], wanted: int, what: str) -> None:
        wait_until(lambda: events.count_documents(which) == wanted, what, pause=0.2)

    put = {"url": journal.url("/told"), "max_retries": 50, "retry_backoff_seconds": 0.1}
    assert requests.put(f"{stack.url}/api/destinations/ops", json=put).status_code == 201
    url = journal.script("/fails", says("500 Oh No", body=b"why it failed"))
    stack.create_many(count, url, rrule=ONCE, max_retries=0, on_failure="ops")
    failed = {"kind": "scheduled", "state": "error"}
    wait_until(lambda: events.count_documents(failed) > count // 10, "some failures")
    stack.kill_parts("worker", "beat")
    stack.mend()
    wait_for(failed, count, "all failures")
    told = {"kind": "message"}
    wait_for(told | {"state": "completed"}, count, "all notifications")
    assert events.count_documents(told) == count
    wait_for({"notify": {"$exists": True}}, 0, "the last marks to go")
    calls = journal.calls["/told"]
    bodies = {call.key: json.loads(call.seen.body) for call in calls}
    told_of = {body["event"]["id"] for body in bodies.values()}
    assert len(bodies) == len(told_of) == count
    assert {f"msg_{each}-on-failure" for each in told_of} == bodies.keys()
    assert all(body["event"]["state"] == "error" and body["event"]["schedule_id"] for body in bodies.values())
    assert {body["answer"] for body in bodies.values()} == {"why it failed"}

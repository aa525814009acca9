"""Receivers say by the client how their work went, without an API key."""

import asyncio
import os
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient

from scheduler_app.client import AsyncScheduler, Scheduler, SchedulerError
from scheduler_app.domain.event import token_digest
from scheduler_app.embedded import Mongod
from tests.integration.client.conftest import KEY

TOKEN = "what the callback carried"


@pytest.fixture
def awaited(mongod_server: Mongod, database_name: str, scheduler: Scheduler) -> Iterator[str]:
    """The id of an event whose request was answered 202."""
    made = scheduler.schedule(
        "https://example.com/", rrule="DTSTART:20400101T000000Z\nRRULE:FREQ=DAILY", completion="callback"
    )
    event_id = scheduler.trigger(made.id)
    kept = {"tokens": [token_digest(TOKEN)], "attempt": 1, "seconds": 60.0, "awaiting": True}
    changed = {"state": "running", "attempt": 1, "due_at": datetime(2040, 1, 1, tzinfo=UTC)}
    with MongoClient[dict[str, Any]](mongod_server.uri) as client:
        client[database_name].events.update_one({"_id": event_id}, {"$set": changed | {"completion": kept}})
    yield event_id
    scheduler.cancel(made.id)


def test_a_receiver_completes_its_event_without_a_key(url: str, awaited: str) -> None:
    with Scheduler(url) as receiver:
        with pytest.raises(SchedulerError) as refused:
            receiver.complete(awaited, "a guess")
        assert refused.value.status == 403
        assert receiver.complete(awaited, TOKEN).state == "completed"
        with pytest.raises(SchedulerError) as late:
            receiver.fail(awaited, TOKEN, "no")
        assert late.value.status == 409


def test_a_receiver_s_event_fails_with_its_reason(url: str, awaited: str) -> None:
    with Scheduler(url, KEY) as receiver:
        failed = receiver.fail(awaited, TOKEN, "the disk is full")
    assert failed.state == "error"
    assert "the disk is full" in failed["status"][-1]["message"]


def test_the_client_for_asyncio_does_the_same(url: str, awaited: str) -> None:
    async def tell() -> str:
        async with AsyncScheduler(url) as receiver:
            return str((await receiver.complete(awaited, TOKEN)).state)

    assert asyncio.run(tell()) == "completed"


def example(language: str, url: str) -> str:
    """The manual's, for the API at `url`."""
    mark = f"<!-- run by tests/integration/client/test_completion.py -->\n```{language}\n"
    manual = (Path(__file__).parents[3] / "docs" / "policies.md").read_text()
    return manual.split(mark)[1].split("```")[0].replace("http://localhost:8080", url)


def test_the_manual_s_commands_complete_an_event_once(url: str, awaited: str, scheduler: Scheduler) -> None:
    environment = os.environ | {"EVENT_ID": awaited, "TOKEN": TOKEN}
    said = subprocess.run(
        ["bash", "-c", example("bash", url)], env=environment, capture_output=True, text=True, check=True
    )
    assert scheduler.event(awaited).state == "completed"
    assert "the event is completed: Its receiver has completed it" in said.stdout


@pytest.mark.parametrize(("problem", "state"), [(None, "completed"), ("the disk is full", "error")])
def test_the_manual_s_function_tells(
    url: str, awaited: str, scheduler: Scheduler, problem: str | None, state: str
) -> None:
    names: dict[str, Any] = {}
    exec(example("python", url), names)
    names["ended"](awaited, TOKEN, problem)
    assert scheduler.event(awaited).state == state

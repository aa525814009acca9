"""Receivers say by the client how their work went, without an API key."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from pymongo import MongoClient

from scheduler_app.client import AsyncScheduler, Scheduler, SchedulerError
from scheduler_app.domain.completion import digest
from scheduler_app.embedded import Mongod
from tests.integration.client.conftest import KEY

TOKEN = "what the callback carried"


@pytest.fixture
def awaited(mongod_server: Mongod, database_name: str, scheduler: Scheduler) -> Iterator[str]:
    """The id of an event whose request was answered 202."""
    made = scheduler.schedule(
        "http://127.0.0.1:9/", rrule="DTSTART:20400101T000000Z\nRRULE:FREQ=DAILY", completion="callback"
    )
    event_id = scheduler.trigger(made.id)
    kept = {"tokens": [digest(TOKEN)], "attempt": 1, "seconds": 60.0, "awaiting": True}
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

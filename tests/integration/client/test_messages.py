"""The client's messages against the API."""

import asyncio
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from typing import get_type_hints

import pytest

from scheduler_app.api.wire.message import NewMessage
from scheduler_app.client import AsyncScheduler, Message, Scheduler, SchedulerError
from scheduler_app.client.message_fields import MessageFields
from tests.integration.client.conftest import KEY

URL = "https://example.com/events"
LATER = datetime(2040, 1, 5, 13, tzinfo=UTC)


def test_a_message_is_scheduled_found_moved_and_cancelled(scheduler: Scheduler, tag: str) -> None:
    made = scheduler.messages.schedule(
        URL, at=LATER, id=tag, event_name=tag, payload={"order": 1}, metadata={"a": "b"}, max_retries=2
    )
    assert isinstance(made, Message)
    assert (made.id, made.event_id, made.state) == (tag, f"msg_{tag}", "ready_queue")
    assert made.scheduled_at == made.due_at == LATER
    assert scheduler.messages.get(tag) == made
    assert scheduler.messages.reschedule(tag, LATER + timedelta(days=1)).due_at == LATER + timedelta(days=1)
    assert scheduler.messages.cancel(tag).state == "cancelled"
    assert scheduler.messages.find(tag) is not None
    assert scheduler.messages.find("none") is None


def test_a_message_is_known_by_its_id(scheduler: Scheduler, tag: str) -> None:
    first = scheduler.messages.schedule(URL, at=LATER, id=tag)
    assert scheduler.messages.schedule(URL, at=LATER, id=tag) == first
    with pytest.raises(SchedulerError) as conflict:
        scheduler.messages.schedule(URL, at=LATER, id=tag, payload=1)
    assert conflict.value.status == 409


def test_a_body_is_text_or_bytes_and_a_time_a_delay(scheduler: Scheduler) -> None:
    text = scheduler.messages.schedule(URL, at=timedelta(hours=1), body="text")
    assert "body" in text
    assert "body_base64" in scheduler.messages.schedule(URL, at=timedelta(hours=1), body=b"\xff")
    left = text.scheduled_at - datetime.now(UTC)
    assert timedelta(minutes=59) < left <= timedelta(hours=1)
    with pytest.raises(ValueError, match="offset"):
        scheduler.messages.schedule(URL, at=datetime(2040, 1, 1))  # noqa: DTZ001


def test_messages_are_listed_and_scheduled_in_bulk(scheduler: Scheduler, tag: str) -> None:
    items = [
        {"callback_url": URL, "event_name": tag, "scheduled_at": f"{year}-01-01T00:00:00Z"}
        for year in (2042, 2041, 2043)
    ]
    results = scheduler.messages.schedule_many([*items, {"callback_url": "ftp://x"}])
    assert [each.status for each in results] == [201, 201, 201, 422]
    listed = scheduler.messages.list(event_name=tag, before=datetime(2043, 1, 1, tzinfo=UTC))
    assert [each.scheduled_at.year for each in listed] == [2041, 2042]
    assert [each.id for each in scheduler.messages.list(event_name=tag, state="completed")] == []


def test_the_asyncio_client_has_them_too(url: str, tag: str) -> None:
    async def steps() -> None:
        async with AsyncScheduler(url, KEY) as scheduler:
            made = await scheduler.messages.schedule(URL, at=LATER, event_name=tag, body=b"x")
            assert [each.id async for each in scheduler.messages.list(event_name=tag)] == [made.id]
            assert (await scheduler.messages.cancel(made.id)).state == "cancelled"

    asyncio.run(steps())


def test_every_field_of_the_api_is_an_argument() -> None:
    parameters = {"callback_url", "destination", "body", "body_base64", "scheduled_at", "delay_seconds"}
    assert get_type_hints(MessageFields).keys() == NewMessage().fields.keys() - parameters


def test_bytes_travel_in_base64(scheduler: Scheduler, tag: str) -> None:
    scheduler.messages.schedule(URL, at=LATER, id=tag, body=b"\xff\x00")
    (result,) = scheduler.messages.schedule_many(
        [
            {
                "id": tag,
                "callback_url": URL,
                "scheduled_at": LATER.isoformat(),
                "body_base64": b64encode(b"\xff\x00").decode(),
            }
        ]
    )
    assert result.status == 200, "the same content"

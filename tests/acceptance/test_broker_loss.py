"""Redis dies while the worker holds messages."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from redis import Redis as RedisClient

from scheduler_app.embedded import Redis
from tests import broker_queue
from tests.acceptance.journal import Journal
from tests.acceptance.shared_stack import SharedStack
from tests.acceptance.stack import Stack
from tests.integration.actions.receiver import hangs
from tests.processes import wait_until


@pytest.mark.timeout(180)
def test_a_worker_survives_the_death_of_redis_and_delivers_when_it_is_back(
    stack: SharedStack, journal: Journal, redis_server: Redis
) -> None:
    try:
        # While Redis dies a request is in flight, and the message of those that wait for their time is held
        # unacknowledged.
        url = journal.script("/held", hangs)
        held = stack.create(url, rrule="FREQ=YEARLY", timeout_seconds=5, max_retries=0)
        stack.post(f"/schedules/{held}/trigger", status=202)
        wait_until(lambda: bool(journal.calls["/held"]), "the request to be in flight")
        made: list[str] = []
        with RedisClient.from_url(stack.environment["BROKER_URL"]) as client:

            def is_held() -> bool:
                """On a machine that stands still their time may come first: then others are made."""
                latest = stack.create_many(5, journal.url("/later"), delay_seconds=8)
                made.extend(latest)
                wait_until(
                    lambda: client.hlen(stack.key("unacked")) > 0 or all(map(stack.events, latest)),
                    "a message to be held",
                )
                return int(client.hlen(stack.key("unacked"))) > 0

            wait_until(is_held, "a message that is held when Redis dies")
        redis_server.kill()
        wait_until(lambda: bool(stack.finished(held)), "the request to end without Redis")
        redis_server.start()
        for schedule in made:
            assert stack.finished(schedule)[0]["state"] == "completed"
        assert len(journal.calls["/later"]) == len(made)
        assert all(process.poll() is None for process in stack.parts.values())
    finally:
        if redis_server.pid is None:
            redis_server.start()


@pytest.mark.long
@pytest.mark.timeout(180)
def test_events_whose_messages_were_flushed_are_sent_all_the_same(
    make_stack: Callable[..., Stack], journal: Journal
) -> None:
    stack = make_stack()
    stack.api()
    stack.beat()
    # No worker yet: the messages rest in Redis when they are lost.
    due = (datetime.now(UTC) + timedelta(seconds=1)).isoformat()
    made = stack.create_many(5, journal.url("/flushed"), run_at=due)
    with RedisClient.from_url(stack.environment["BROKER_URL"]) as client:
        wait_until(lambda: broker_queue.waiting(client) > 0, "a message")
        client.flushdb()
    stack.worker()
    for schedule in made:
        (event,) = stack.finished(schedule)
        assert event["state"] == "completed"
        assert "lost" in " ".join(line["message"] for line in event["status"])
    assert len(journal.calls["/flushed"]) == 5

"""How far behind a worker is, by the messages whose events it has not claimed."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from celery import Celery
from kombu.connection import Connection

from scheduler_app.broker.consumer import TolerantConsumer
from scheduler_app.broker.held_messages import KEEPS_UP, HeldMessages, held_messages
from scheduler_app.broker.malformed import MESSAGE_VERSION, Malformed
from scheduler_app.broker.task import DELIVER, QUEUE

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


@dataclass
class Message:
    acknowledged: bool = False


def test_a_worker_that_holds_nothing_keeps_up() -> None:
    assert HeldMessages().behind_since(NOW) is None


def test_what_is_due_later_or_this_moment_is_no_backlog() -> None:
    held = HeldMessages()
    held.take(Message(), NOW + 5 * SECOND)
    held.take(Message(), NOW - KEEPS_UP)
    assert held.behind_since(NOW) is None


def test_a_worker_is_behind_since_its_oldest_message_was_due_in_whatever_order_they_came() -> None:
    held = HeldMessages()
    messages = [Message(), Message(), Message()]
    for message, seconds in zip(messages, (5, 9, 7), strict=True):
        held.take(message, NOW - seconds * SECOND)
    assert held.behind_since(NOW) == NOW - 9 * SECOND
    messages[1].acknowledged = True
    assert held.behind_since(NOW) == NOW - 7 * SECOND


def test_what_a_lost_connection_brought_is_forgotten() -> None:
    held = HeldMessages()
    held.take(Message(), NOW - 9 * SECOND)
    held.forget()
    assert held.behind_since(NOW) is None


def test_acknowledged_messages_do_not_pile_up() -> None:
    held = HeldMessages()
    for _ in range(1_000):
        message = Message()
        held.take(message, NOW)
        message.acknowledged = True
    assert len(held._held) <= 1


@pytest.mark.parametrize(
    ("task", "behind"), [(DELIVER, True), ("own.task", False)], ids=["of callbacks", "of another task"]
)
def test_a_consumer_notes_what_it_has_taken_until_it_is_acknowledged(task: str, behind: bool) -> None:
    held_messages.forget()
    connection = Connection("memory://")  # type: ignore[no-untyped-call]
    with connection, connection.SimpleQueue("held") as queue:  # type: ignore[no-untyped-call]
        queue.put({}, headers={"task": task, "eta": (NOW - 9 * SECOND).isoformat()})
        message = queue.get(timeout=60)
        TolerantConsumer._note_held(message)
        assert held_messages.behind_since(NOW) == (NOW - 9 * SECOND if behind else None)
        message.ack()
        assert held_messages.behind_since(NOW) is None


def test_a_consumer_that_takes_a_message_is_behind_until_its_events_are_claimed() -> None:
    held_messages.forget()
    app = Celery("test", broker="memory://", set_as_current=False)
    consumer, taken = object.__new__(TolerantConsumer), list[Any]()
    consumer.__dict__.update(app=app, connection=app.connection(), on_task_message=(), call_soon_ack=None)
    consumer.__dict__.update(restart_count=0, _maximum_prefetch_restored=True)
    consumer.strategies = {DELIVER: lambda *given: taken.append(given)}
    take = consumer.create_task_handler()
    connection = Connection("memory://")  # type: ignore[no-untyped-call]
    with connection, connection.SimpleQueue("taken") as queue:  # type: ignore[no-untyped-call]
        eta = (NOW - 9 * SECOND).isoformat()
        body = [[], {"v": MESSAGE_VERSION, "ids": ["e1"]}, {}]
        queue.put(body, headers={"task": DELIVER, "id": "x", "eta": eta})
        message = queue.get(timeout=60)
        take(message)
        assert len(taken) == 1
        assert held_messages.behind_since(NOW) == NOW - 9 * SECOND
        message.ack()
        assert held_messages.behind_since(NOW) is None


def test_a_task_of_a_user_s_own_that_comes_by_the_queue_of_callbacks_is_refused() -> None:
    consumer = object.__new__(TolerantConsumer)
    consumer.strategies = {"own.task": None}
    connection = Connection("memory://")  # type: ignore[no-untyped-call]
    with connection:
        for name, refused in ((QUEUE, True), ("own", False)):
            with connection.SimpleQueue(name) as queue:  # type: ignore[no-untyped-call]
                queue.put([[], {}, {}], headers={"task": "own.task", "id": "x"})
                message = queue.get(timeout=60)
                if refused:
                    with pytest.raises(Malformed, match="only callbacks come by this queue"):
                        consumer._check(message)
                else:
                    consumer._check(message)

"""How far behind a worker is, by the messages whose events it has not claimed."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from kombu.connection import Connection

from scheduler_app.broker.consumer import TolerantConsumer
from scheduler_app.broker.held_messages import KEEPS_UP, HeldMessages, held_messages
from scheduler_app.broker.task import DELIVER
from scheduler_app.clock import clock

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


def test_a_message_without_a_time_could_have_been_worked_on_since_it_came() -> None:
    held_messages.forget()
    connection = Connection("memory://")  # type: ignore[no-untyped-call]
    with connection, connection.SimpleQueue("held") as queue:  # type: ignore[no-untyped-call]
        queue.put({}, headers={"task": DELIVER})
        before = clock.now()
        TolerantConsumer._note_held(queue.get(timeout=60))
        since = held_messages.behind_since(clock.now() + timedelta(hours=1))
        assert since is not None
        assert before <= since <= clock.now()
    held_messages.forget()

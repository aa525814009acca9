"""What a worker's consumer does with each message before Celery sees it."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from celery import Celery
from celery.exceptions import InvalidTaskError
from kombu.connection import Connection
from structlog.testing import capture_logs

from scheduler_app.broker import malformed
from scheduler_app.broker.consumer import TolerantConsumer
from scheduler_app.broker.held_messages import held_messages
from scheduler_app.broker.malformed import HEAD_LENGTH, MESSAGE_VERSION
from scheduler_app.broker.task import DELIVER, QUEUE

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OWN = "own.task"
OURS = {"task": DELIVER, "id": "x"}
BATCH = [[], {"v": MESSAGE_VERSION, "ids": ["e1"]}, {}]


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of other tests have taken no room, and nothing is held."""
    monkeypatch.setattr(malformed, "_lines", malformed._Lines())
    held_messages.forget()


class Worker:
    """A consumer without a worker: `taken` is what Celery was handed, which `does` may refuse."""

    def __init__(self) -> None:
        self.taken: list[Any] = []
        self.does: Callable[[], None] = lambda: None
        app = Celery("test", broker="memory://", set_as_current=False)
        self.consumer = object.__new__(TolerantConsumer)
        connection = app.connection()
        self.consumer.__dict__.update(app=app, connection=connection, on_task_message=())
        self.consumer.__dict__.update(connection_errors=connection.connection_errors)
        self.consumer.__dict__.update(call_soon_ack=None, restart_count=0, _maximum_prefetch_restored=True)
        self.consumer.strategies = {DELIVER: self._take, OWN: self._take}
        self.take = self.consumer.create_task_handler()

    def _take(self, message: Any, *_: Any) -> None:
        self.taken.append(message)
        self.does()

    def dropped(self, message: Any) -> Any:
        """The line that says why a message was dropped; it is rejected, and Celery's no more."""
        with capture_logs() as lines:
            self.take(message)
        (line,) = lines
        assert line["event"] == "message.dropped"
        assert message.acknowledged
        return line


@pytest.fixture
def worker() -> Worker:
    return Worker()


Put = Callable[..., Any]


@pytest.fixture
def put() -> Iterator[Put]:
    """Sends a message by a queue, and returns it as it comes to a consumer."""
    connection = Connection("memory://")  # type: ignore[no-untyped-call]
    with connection:

        def send(body: Any, headers: Any, *, by: str = "a queue", **properties: Any) -> Any:
            with connection.SimpleQueue(by) as queue:  # type: ignore[no-untyped-call]
                queue.put(body, headers=headers, **properties)
                return queue.get(block=False)  # undecoded

        yield send


def test_a_consumer_that_takes_a_message_is_behind_until_its_events_are_claimed(
    worker: Worker, put: Put
) -> None:
    message = put(BATCH, OURS | {"eta": (NOW - timedelta(seconds=9)).isoformat()})
    with capture_logs() as lines:
        worker.take(message)
    assert (worker.taken, lines) == ([message], [])
    assert held_messages.behind_since(NOW) == NOW - timedelta(seconds=9)
    message.ack()
    assert held_messages.behind_since(NOW) is None


def test_a_new_connection_holds_nothing_of_the_one_before(worker: Worker, put: Put) -> None:
    worker.take(put(BATCH, OURS | {"eta": NOW.isoformat()}))
    later = NOW + timedelta(hours=1)
    assert held_messages.behind_since(later) == NOW
    worker.consumer.create_task_handler()
    assert held_messages.behind_since(later) is None


JSON: dict[str, str] = {"content_type": "application/json"}
TOO_FAR = "9999-01-01T00:00:00+00:00"


@pytest.mark.parametrize(
    ("body", "headers", "properties", "reason"),
    [
        (BATCH, {}, {}, "headers"),
        (BATCH, OURS | {"id": 5}, {}, "headers"),
        (BATCH, OURS | {"eta": TOO_FAR}, {}, "headers"),
        (BATCH, OURS | {"task": "nobody's"}, {}, "unknown_task"),
        (BATCH, OURS | {"task": OWN}, {"by": QUEUE}, "unknown_task"),
        (BATCH, OURS, {"serializer": "yaml"}, "content_type"),
        ("[]", OURS, JSON | {"content_encoding": "latin-1"}, "content_type"),
        ("{no json", OURS, JSON, "arguments"),
        ([[], {}], OURS, {}, "arguments"),
        ([[], {"v": MESSAGE_VERSION}, {}], OURS, {}, "arguments"),
    ],
)
def test_what_is_no_message_of_ours_is_dropped_before_celery_sees_it(
    worker: Worker, put: Put, body: Any, headers: Any, properties: dict[str, Any], reason: str
) -> None:
    assert worker.dropped(put(body, headers, **properties))["reason"] == reason
    assert worker.taken == []
    # The next one is taken.
    worker.take(put(BATCH, OURS))
    assert len(worker.taken) == 1


def test_tasks_of_a_user_s_own_may_come_by_a_queue_of_theirs_with_any_arguments(
    worker: Worker, put: Put
) -> None:
    with capture_logs() as lines:
        worker.take(put([[1], {"of": "theirs"}, {}], {"task": OWN, "id": "x", "eta": TOO_FAR}))
    assert (len(worker.taken), lines) == (1, [])


def test_a_message_that_is_dropped_is_told_by_its_task_and_how_it_begins(worker: Worker, put: Put) -> None:
    line = worker.dropped(put("{no json", OURS, **JSON))
    assert line["detail"] == "its body cannot be decoded"
    assert DELIVER in line["head"]
    assert "{no json" in line["head"]
    without = put(BATCH, OURS)
    without.body = None
    assert "b''" in worker.dropped(without)["head"]


def fails_with(error: Exception) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


def test_an_error_that_nobody_has_foreseen_costs_its_own_message(worker: Worker, put: Put) -> None:
    worker.does = fails_with(ZeroDivisionError("x" * 1_000))
    line = worker.dropped(put(BATCH, OURS))
    assert line["reason"] == "unforeseen"
    assert line["detail"] == f"ZeroDivisionError: {'x' * 1_000}"[:HEAD_LENGTH]


def test_headers_that_celery_itself_refuses_are_told_in_one_line(worker: Worker, put: Put) -> None:
    worker.does = fails_with(InvalidTaskError("it has\n  no form"))
    line = worker.dropped(put(BATCH, OURS))
    assert (line["reason"], line["detail"]) == ("headers", "it has no form")


def test_a_message_that_was_settled_before_it_failed_is_not_settled_again(worker: Worker, put: Put) -> None:
    message = put(BATCH, OURS)

    def settle_and_fail() -> None:
        message.ack()
        raise ZeroDivisionError

    worker.does = settle_and_fail
    assert worker.dropped(message)["reason"] == "unforeseen"


def test_a_lost_connection_is_celery_s_to_mend_and_costs_no_message(worker: Worker, put: Put) -> None:
    message = put(BATCH, OURS)
    worker.does = fails_with(ConnectionResetError())
    with capture_logs() as lines, pytest.raises(ConnectionResetError):
        worker.take(message)
    assert (lines, message.acknowledged) == ([], False)

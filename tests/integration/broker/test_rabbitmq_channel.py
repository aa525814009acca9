"""What only a RabbitMQ can do to a publisher and a worker."""

import os
import signal
from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from amqp import Message
from amqp.exceptions import RecoverableConnectionError
from kombu.connection import Connection
from kombu.exceptions import OperationalError

from scheduler_app.broker.app import make_app
from scheduler_app.broker.publisher import CeleryPublisher
from scheduler_app.broker.rabbitmq.transport import LaneChannel
from scheduler_app.broker.task import delivery_queue
from scheduler_app.broker_faults import TakesNoMessages
from scheduler_app.config import Settings
from scheduler_app.domain.action import QueueLengths
from scheduler_app.usecases.duties.dispatch_selection import Batch
from tests.conformance.broker.harness import RabbitmqHarness
from tests.processes import PATIENCE_SECONDS, freeze, wait_until

#: Not that of the conformance suite, whose server is shared.
QUEUE = "deleted-ones"
SETTLED = "settled-ones"


@pytest.fixture
def publisher(tmp_path: Path) -> Iterator[CeleryPublisher]:
    harness = RabbitmqHarness(tmp_path)
    yield CeleryPublisher(make_app(Settings(broker_url=harness.url, mongo_database="ours")))
    harness.end()


def channel_of(publisher: CeleryPublisher) -> Any:
    connection = publisher._app.connection_for_read()
    return connection.default_channel


def test_a_message_for_a_queue_that_was_deleted_makes_it_again(publisher: CeleryPublisher) -> None:
    publisher.publish([Batch(("a",), None, queue=QUEUE)])
    channel = channel_of(publisher)
    delivery_queue(QUEUE)(channel).declare()  # type: ignore[no-untyped-call]
    channel.queue_delete(QUEUE)
    publisher.publish([Batch(("b",), None, queue=QUEUE)])
    assert publisher.queue_lengths(QUEUE) == QueueLengths(fresh=1)
    channel.queue_purge(QUEUE)


def test_a_worker_that_holds_what_is_due_later_starts_what_is_due_now(publisher: CeleryPublisher) -> None:
    later = datetime.now(UTC) + timedelta(minutes=5)
    publisher.publish([Batch((f"later-{number}",), later) for number in range(30)])
    channel = channel_of(publisher)
    assert isinstance(channel, LaneChannel)
    taken: list[str] = []
    with channel.connection.client.Consumer(
        [delivery_queue("callbacks")],
        channel=channel,
        prefetch_count=1,
        accept=["json"],
        callbacks=[lambda body, message: taken.append(body[1]["ids"][0])],
    ):
        drain_until(channel, taken, 30)
        publisher.publish([Batch(("now",), None)])
        drain_until(channel, taken, 31)
        assert taken[-1] == "now"
        assert publisher.queue_length() == 0
    channel.return_all_but(set())
    wait_until(lambda: publisher.queue_length() == 31, "what was held to be in the queue again")


def test_what_was_acknowledged_or_given_back_is_not_given_back_again(publisher: CeleryPublisher) -> None:
    """RabbitMQ closes a channel on which a message is settled twice."""
    publisher.publish([Batch((name,), None, queue=SETTLED) for name in ("done", "refused", "kept")])
    channel = channel_of(publisher)
    taken: dict[str, Any] = {}
    with channel.connection.client.Consumer(
        [delivery_queue(SETTLED)],
        channel=channel,
        prefetch_count=3,
        accept=["json"],
        callbacks=[lambda body, message: taken.setdefault(body[1]["ids"][0], message)],
    ):
        drain_until(channel, taken, 3)
    taken["done"].ack()
    taken["refused"].reject()
    channel.return_all_but(set())
    wait_until(lambda: publisher.queue_lengths(SETTLED) == QueueLengths(fresh=1), "one of them to be back")
    assert channel.is_open
    channel.queue_purge(SETTLED)


@pytest.mark.parametrize("exchange", ["broadcasts", ""])
def test_a_command_and_its_reply_reach_their_queue(publisher: CeleryPublisher, exchange: str) -> None:
    channel = channel_of(publisher)
    channel.queue_declare("asked", exclusive=True)
    if exchange:
        channel.exchange_declare(exchange, "fanout")
        channel.queue_bind("asked", exchange)
    found: list[str] = []
    channel.basic_consume("asked", no_ack=True, callback=lambda message: found.append(message.body))
    channel.basic_publish(Message(b"ping"), exchange, "asked")
    drain_until(channel, found, 1)
    channel.connection.close()


@pytest.fixture
def confirming(publisher: CeleryPublisher, tmp_path: Path) -> Iterator[Any]:
    """A channel, and two queues: one takes one message and refuses others, as a quorum queue does without
    most of its members."""
    with RabbitmqHarness(tmp_path)._channel() as plain:
        arguments = {"x-max-length": 1, "x-overflow": "reject-publish"}
        plain.queue_declare("takes-one", arguments=arguments, auto_delete=False)
        plain.queue_declare("takes-all", auto_delete=False)
        with publisher._app.connection_for_write() as connection:
            yield connection.default_channel
        for name in ("takes-one", "takes-all"):
            plain.queue_delete(name)


def test_a_message_that_a_queue_refuses_is_an_error_and_the_next_one_is_judged_by_itself(
    confirming: Any,
) -> None:
    assert confirming.publish_confirmed(Message(b"1"), "takes-one")
    with pytest.raises(OperationalError, match="RabbitMQ refuses messages for takes-one: most members"):
        confirming.publish_confirmed(Message(b"2"), "takes-one")
    assert confirming.publish_confirmed(Message(b"3"), "takes-all")
    assert not confirming.publish_confirmed(Message(b"4"), "there-is-none")
    assert confirming.publish_confirmed(Message(b"5"), "takes-all")


def test_a_connection_that_another_thread_closes_ends_the_wait_for_a_confirm(
    confirming: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert confirming.publish_confirmed(Message(b"1"), "takes-all")
    connection = confirming.connection
    drain = connection.drain_events

    def closed_meanwhile(*, timeout: float) -> Any:
        return connection.collect() if timeout else drain(timeout=timeout)

    monkeypatch.setattr(connection, "drain_events", closed_meanwhile)
    with pytest.raises(RecoverableConnectionError, match="closed before a message was confirmed"):
        confirming.publish_confirmed(Message(b"2"), "takes-all")


def wait_until_stopped(pid: int) -> None:
    """A signal has been sent when the threads of its process may still run on another core, and answer."""
    threads = Path(f"/proc/{pid}/task")
    wait_until(
        lambda: all(
            (thread / "stat").read_text().rpartition(")")[2].split()[0] == "T" for thread in threads.iterdir()
        ),
        "all threads of the server to stand still",
    )


def test_a_rabbitmq_that_confirms_nothing_is_given_up_with_its_connection(confirming: Any) -> None:
    server = RabbitmqHarness._shared
    assert server is not None
    assert server.pid is not None
    assert confirming.publish_confirmed(Message(b"1"), "takes-all")
    confirming._confirm_seconds = 0.3
    freeze(server.pid)
    try:
        wait_until_stopped(server.pid)
        with pytest.raises(TakesNoMessages, match=r"confirmed no message in 0\.3 s; it may have an alarm"):
            confirming.publish_confirmed(Message(b"2"), "takes-all")
    finally:
        os.kill(server.pid, signal.SIGCONT)
    assert confirming.connection is None, "what the server says next would be taken for another message's"


def test_a_broker_of_another_application_is_kombus_own(publisher: CeleryPublisher) -> None:
    with Connection(RabbitmqHarness(Path()).url) as theirs:  # type: ignore[no-untyped-call]
        queue = theirs.SimpleQueue("their own")
        queue.put({"task": "theirs"})
        assert queue.get(timeout=PATIENCE_SECONDS).payload == {"task": "theirs"}
        assert theirs.default_channel.queue_declare("their own", passive=True).queue == "their own"
        queue.queue.delete()


def drain_until(channel: Any, taken: Collection[str], count: int) -> None:
    while len(taken) < count:
        channel.connection.drain_events(timeout=PATIENCE_SECONDS)

"""What only a RabbitMQ can do to a publisher and a worker."""

import os
import signal
from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from amqp import Message
from amqp.exceptions import NotFound, RecoverableConnectionError
from kombu.connection import Connection
from kombu.exceptions import OperationalError

from scheduler_app.broker.app import make_app
from scheduler_app.broker.publisher import CeleryPublisher
from scheduler_app.broker.rabbitmq import backend
from scheduler_app.broker.rabbitmq.backend import RabbitmqBackend, check_rabbitmq
from scheduler_app.broker.rabbitmq.transport import LaneChannel
from scheduler_app.broker.task import delivery_queue
from scheduler_app.broker_faults import TakesNoMessages
from scheduler_app.config import Settings
from scheduler_app.domain.action import QueueLengths
from scheduler_app.health import Status
from scheduler_app.usecases.duties.dispatch_selection import Batch
from tests.conformance.broker.harness import RabbitmqHarness
from tests.processes import PATIENCE_SECONDS, freeze, wait_until

#: The server takes its time to start on a machine that is busy with other things.
pytestmark = pytest.mark.timeout(900)
#: Not that of the conformance suite, whose server is shared.
QUEUE = "deleted-ones"
SETTLED = "settled-ones"
COUNTED = "counted-ones"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that stands still for a moment has no alarm; where it is to have one, a test says how soon."""
    monkeypatch.setattr(backend, "CONFIRM_SECONDS", PATIENCE_SECONDS)


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
        accept=["json"],
        callbacks=[lambda body, message: taken.setdefault(body[1]["ids"][0], message)],
    ):
        drain_until(channel, taken, 3)
    told = taken["done"].delivery_info
    assert (told["exchange"], told["routing_key"]) == ("", SETTLED)
    taken["done"].ack()
    taken["refused"].reject()
    channel.return_all_but(set())
    wait_until(lambda: publisher.queue_lengths(SETTLED) == QueueLengths(fresh=1), "one of them to be back")
    assert channel.is_open
    channel.queue_purge(SETTLED)


def test_a_worker_fetches_no_more_of_what_is_due_than_it_asks_for(publisher: CeleryPublisher) -> None:
    publisher.publish([Batch((str(number),), None, queue=COUNTED) for number in range(3)])
    channel = channel_of(publisher)
    taken: list[str] = []
    with channel.connection.client.Consumer(
        [delivery_queue(COUNTED)],
        channel=channel,
        prefetch_count=2,
        accept=["json"],
        callbacks=[lambda body, message: taken.append(body[1]["ids"][0])],
    ):
        drain_until(channel, taken, 2)
        wait_until(lambda: publisher.queue_lengths(COUNTED) == QueueLengths(fresh=1), "the third to be left")
    channel.return_all_but(set())
    wait_until(lambda: publisher.queue_lengths(COUNTED) == QueueLengths(fresh=3), "all of them to be back")
    assert channel.queue_purge(COUNTED) == 3


def test_what_is_counted_of_a_queue_is_counted_over_its_lanes(publisher: CeleryPublisher) -> None:
    later = datetime.now(UTC) + timedelta(minutes=5)
    publisher.publish([Batch(("a",), None, queue=COUNTED), Batch(("b",), later, queue=COUNTED)])
    channel = channel_of(publisher)

    def told() -> Any:
        return channel.queue_declare(COUNTED, durable=True, auto_delete=False)

    wait_until(lambda: told() == (COUNTED, 2, 0), "both messages to be counted")
    assert channel.queue_purge(COUNTED) == 2
    assert channel.queue_purge(COUNTED) == 0
    publisher.publish([Batch(("a",), None, queue=COUNTED)])
    wait_until(lambda: told() == (COUNTED, 1, 0), "the message to be counted")
    assert channel.queue_delete(COUNTED) == 1
    told()
    assert channel.queue_delete(COUNTED) == 0


@pytest.mark.parametrize(
    "form",
    [
        {"durable": True, "auto_delete": False, "exclusive": True},
        {"durable": True, "auto_delete": True},
        {"durable": False, "auto_delete": False},
    ],
)
def test_a_queue_that_is_not_to_last_is_one_without_lanes(
    publisher: CeleryPublisher, form: dict[str, bool]
) -> None:
    channel = channel_of(publisher)
    assert channel.queue_declare("fleeting", **form) == ("fleeting", 0, 0)
    lasting = {"durable": True, "auto_delete": False}
    assert channel.queue_declare("fleeting", passive=True, **lasting) == ("fleeting", 0, 0)
    assert channel._queues("fleeting") == ["ours:fleeting"]
    channel.queue_delete("fleeting")
    with pytest.raises(NotFound):
        channel.queue_declare("fleeting", passive=True)


def test_a_consumer_that_is_cancelled_takes_nothing_more_and_others_do(publisher: CeleryPublisher) -> None:
    channel = channel_of(publisher)
    delivery_queue(SETTLED)(channel).declare()  # type: ignore[no-untyped-call]
    channel.queue_declare("replies", exclusive=True)
    found: list[str] = []
    for queue, names in ((SETTLED, ("first", "second")), ("replies", ("third", "fourth"))):
        for name in names:
            tag = channel.basic_consume(
                queue, name, no_ack=True, callback=lambda _, name=name: found.append(name)
            )
            assert queue != SETTLED or tag == name
        channel.basic_cancel(names[0])
    publisher.publish([Batch((str(number),), None, queue=SETTLED) for number in range(3)])
    for _ in range(3):
        channel.basic_publish(Message(b"ping"), "", "replies")
    drain_until(channel, found, 6)
    assert sorted(found) == ["fourth"] * 3 + ["second"] * 3
    channel.connection.close()


def test_what_is_no_message_is_held_no_longer_than_it_is_looked_at(
    publisher: CeleryPublisher, tmp_path: Path
) -> None:
    RabbitmqHarness(tmp_path).put(b"garbage", "ours")
    publisher.publish([Batch(("a",), None)])
    channel = channel_of(publisher)
    taken: list[Any] = []
    with channel.connection.client.Consumer(
        [delivery_queue("callbacks")],
        channel=channel,
        accept=["json"],
        callbacks=[lambda body, message: taken.append(message)],
    ):
        drain_until(channel, taken, 1)
    taken[0].ack()
    assert channel._held == set()


@pytest.mark.parametrize("exchange", ["broadcasts", ""])
def test_a_command_and_its_reply_reach_their_queue(publisher: CeleryPublisher, exchange: str) -> None:
    channel = channel_of(publisher)
    channel.queue_declare("asked", exclusive=True)
    if exchange:
        channel.exchange_declare(exchange, "fanout", auto_delete=False)
        channel.queue_bind("asked", exchange)
    found: list[Any] = []
    channel.basic_consume("asked", no_ack=True, callback=found.append)
    channel.basic_publish(Message(b"ping"), exchange, "asked")
    drain_until(channel, found, 1)
    told = found[0].delivery_info
    assert (told["exchange"], told["routing_key"]) == (exchange, "asked")
    assert not channel._confirming, "nobody waits for it"
    if exchange:
        channel.queue_unbind("asked", exchange)
        channel.basic_publish(Message(b"to nobody"), exchange, "asked")
        channel.basic_publish(Message(b"pong", type="pong"), "", "asked")
        drain_until(channel, found, 2)
        assert found[1].properties["type"] == "pong"
        channel.exchange_delete(exchange)
        with pytest.raises(NotFound):
            channel.exchange_declare(exchange, "fanout", passive=True)
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
    assert not confirming._refused
    assert confirming.publish_confirmed(Message(b"3"), "takes-all")
    assert not confirming.publish_confirmed(Message(b"4"), "there-is-none")
    assert confirming.publish_confirmed(Message(b"5"), "takes-all")
    # One that nobody waits for goes nowhere.
    confirming.publish_unconfirmed(Message(b"6"), "", "there-is-none")
    assert confirming.publish_confirmed(Message(b"7"), "takes-all")


def test_a_read_that_ends_before_its_time_does_not_end_the_wait_for_a_confirm(
    confirming: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert confirming.publish_confirmed(Message(b"1"), "takes-all")
    drain, reads = confirming.connection.drain_events, list[float]()

    def early_once(*, timeout: float) -> Any:
        if timeout:  # publishing itself reads what is there, and waits for nothing
            reads.append(timeout)
            if len(reads) == 1:
                raise TimeoutError
        return drain(timeout=timeout)

    monkeypatch.setattr(confirming.connection, "drain_events", early_once)
    assert not confirming.publish_confirmed(Message(b"2"), "there-is-none")
    assert len(reads) > 1


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


def test_a_rabbitmq_that_confirms_nothing_is_given_up_with_its_connection(confirming: Any) -> None:
    server = RabbitmqHarness._shared
    assert server is not None
    assert server.pid is not None
    assert confirming.publish_confirmed(Message(b"1"), "takes-all")
    confirming._confirm_seconds = 0.3
    freeze(server.pid)
    try:
        with pytest.raises(TakesNoMessages, match=r"confirmed no message in 0\.3 s; it may have an alarm"):
            confirming.publish_confirmed(Message(b"2"), "takes-all")
    finally:
        os.kill(server.pid, signal.SIGCONT)
    assert confirming.connection is None, "what the server says next would be taken for another message's"


def test_a_rabbitmq_that_takes_no_messages_is_told_by_doctor_and_by_a_probe(
    publisher: CeleryPublisher,
) -> None:
    server = RabbitmqHarness._shared
    assert server is not None
    assert server.pid is not None
    connections = [publisher._app.connection_for_read() for _ in range(2)]
    for connection in connections:
        RabbitmqBackend().check_publishing(connection)
        connection.default_channel._confirm_seconds = 0.3
    freeze(server.pid)
    try:
        _, alarms = check_rabbitmq(connections[0].default_channel, "the address")
        with pytest.raises(TakesNoMessages):
            RabbitmqBackend().check_publishing(connections[1])
    finally:
        os.kill(server.pid, signal.SIGCONT)
    assert (alarms.name, alarms.status) == ("rabbitmq alarms", Status.WRONG)
    assert "takes no messages" in alarms.found


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

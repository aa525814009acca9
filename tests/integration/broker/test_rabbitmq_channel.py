"""What only a RabbitMQ can do to a publisher and a worker."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from kombu.connection import Connection

from scheduler_app.broker.app import make_app
from scheduler_app.broker.publisher import CeleryPublisher
from scheduler_app.broker.queues import delivery_queue
from scheduler_app.broker.rabbitmq.channel import LaneChannel
from scheduler_app.config import Settings
from scheduler_app.domain.lane import QueueLengths
from scheduler_app.usecases.dispatch import Batch
from tests.conformance.broker.harness import RabbitmqHarness
from tests.processes import PATIENCE_SECONDS, wait_until

#: Not that of the conformance suite, whose server is shared.
QUEUE = "deleted-ones"


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


def test_a_broker_of_another_application_is_kombus_own(publisher: CeleryPublisher) -> None:
    with Connection(RabbitmqHarness(Path()).url) as theirs:  # type: ignore[no-untyped-call]
        queue = theirs.SimpleQueue("their own")
        queue.put({"task": "theirs"})
        assert queue.get(timeout=PATIENCE_SECONDS).payload == {"task": "theirs"}
        assert theirs.default_channel.queue_declare("their own", passive=True).queue == "their own"
        queue.queue.delete()


def drain_until(channel: Any, taken: list[str], count: int) -> None:
    while len(taken) < count:
        channel.connection.drain_events(timeout=PATIENCE_SECONDS)

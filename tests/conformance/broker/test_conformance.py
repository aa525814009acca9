"""What every broker promises to beats, workers and operators: on real servers."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY

from scheduler_app.broker.app import make_app
from scheduler_app.broker.backends import BACKENDS, backend_of
from scheduler_app.broker.publisher import CeleryPublisher
from scheduler_app.broker.task import DELIVER
from scheduler_app.config import InvalidSetting, Settings
from scheduler_app.domain.action import Lane, QueueLengths
from scheduler_app.health import Status
from scheduler_app.usecases.duties.dispatch_selection import Batch
from tests.conformance.broker.harness import DATABASES, HARNESSES, Harness, missing
from tests.manual_releases import assert_named
from tests.processes import PATIENCE_SECONDS, wait_until

#: A server that starts for a test takes its time on a machine that is busy with other things.
pytestmark = pytest.mark.timeout(900)

SOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.fixture(params=sorted(type(backend).__name__ for backend in BACKENDS))
def harness(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Harness]:
    (made,) = (make for backend, make in HARNESSES.items() if backend.__name__ == request.param)
    server = made(tmp_path / "server")
    yield server
    server.end()


class Deployment:
    """A publisher and a consumer with the settings of one deployment."""

    def __init__(self, harness: Harness, database: str = DATABASES[0]) -> None:
        self.app = make_app(Settings(broker_url=harness.url, mongo_database=database))
        self.publisher = CeleryPublisher(self.app)

    def consume(self, count: int) -> list[Any]:
        """Takes and acknowledges this many messages; returns them in the order in which they were taken."""
        taken: list[Any] = []

        def take(body: Any, message: Any) -> None:
            if len(taken) < count:  # what was fetched beyond that comes while the connection is being closed
                taken.append(message)
                message.ack()

        while len(taken) < count:
            # A queue of a killed RabbitMQ waits for its leader, on a busy machine longer than a read lasts.
            with suppress(TimeoutError), self.app.connection_for_read() as connection:
                channel = connection.channel()
                with self.app.amqp.TaskConsumer(channel, callbacks=[take], accept=["json"]) as consumer:
                    consumer.qos(prefetch_count=1)
                    while len(taken) < count:
                        connection.drain_events(timeout=PATIENCE_SECONDS)
        return taken


@pytest.fixture
def ours(harness: Harness) -> Deployment:
    return Deployment(harness)


def ids(message: Any) -> list[str]:
    found: list[str] = message.payload[1]["ids"]
    return found


def dropped() -> float:
    counts = (
        sample.value
        for metric in REGISTRY.collect()
        for sample in metric.samples
        if sample.name == "scheduler_messages_dropped_total"
    )
    return sum(counts)


def test_every_broker_has_a_harness() -> None:
    assert missing() == set()


def test_a_message_has_ids_and_its_time_and_nothing_else(ours: Deployment) -> None:
    ours.publisher.publish([Batch(("a", "b"), SOON)])
    (message,) = ours.consume(1)
    args, kwargs, _ = message.payload
    assert (list(args), kwargs) == ([], {"v": 1, "ids": ["a", "b"]})
    assert message.headers["task"] == DELIVER
    assert datetime.fromisoformat(message.headers["eta"]) == SOON


def test_the_manual_names_the_release_that_runs_here(harness: Harness) -> None:
    assert_named(*harness.release)


def test_a_message_that_was_acknowledged_is_gone(ours: Deployment) -> None:
    ours.publisher.publish([Batch((str(number),), None) for number in range(3)])
    assert sorted(ids(message)[0] for message in ours.consume(3)) == ["0", "1", "2"]
    assert ours.publisher.queue_length() == 0


def test_doubled_messages_are_two(ours: Deployment) -> None:
    """The broker does not deduplicate: the claim in MongoDB does, whatever the broker."""
    ours.publisher.publish([Batch(("a",), None)] * 2)
    assert [ids(message) for message in ours.consume(2)] == [["a"], ["a"]]


def test_the_length_of_the_queue_is_what_nobody_has_taken(ours: Deployment) -> None:
    assert ours.publisher.queue_length() == ours.publisher.ask_queue_length()(PATIENCE_SECONDS) == 0
    ours.publisher.publish([Batch(("a",), None)] * 5)
    assert ours.publisher.queue_length() == ours.publisher.ask_queue_length()(PATIENCE_SECONDS) == 5
    ours.consume(2)
    # What a consumer had fetched beyond that goes back when its connection is closed.
    wait_until(lambda: ours.publisher.queue_length() == 3, "what was not acknowledged to be in the queue")


def test_what_is_urgent_is_taken_first(ours: Deployment) -> None:
    lanes = (Lane.LATE, Lane.FRESH, Lane.URGENT)
    ours.publisher.publish([Batch((lane.value,), None, lane) for lane in lanes])
    assert ours.publisher.queue_lengths() == QueueLengths(urgent=1, fresh=1, late=1)
    assert [ids(message)[0] for message in ours.consume(3)] == ["urgent", "fresh", "late"]


def test_two_deployments_on_one_server_share_nothing(harness: Harness, ours: Deployment) -> None:
    other = Deployment(harness, DATABASES[1])
    other.publisher.publish([Batch(("theirs",), None)])
    assert ours.publisher.queue_length() == 0
    ours.publisher.publish([Batch(("ours",), None)])
    assert [ids(message) for message in ours.consume(1)] == [["ours"]]
    assert [ids(message) for message in other.consume(1)] == [["theirs"]]


@pytest.mark.parametrize(
    "raw", [b"\x00\xff", b"{}", b"[1]", b"null", b'{"properties": {}}', b"x" * (2**20 + 1)], ids=len
)
def test_what_is_no_message_is_dropped_and_counted(harness: Harness, ours: Deployment, raw: bytes) -> None:
    before = dropped()
    harness.put(raw, "ours")
    ours.publisher.publish([Batch(("a",), None)])
    assert [ids(message) for message in ours.consume(1)] == [["a"]]
    assert dropped() == before + 1


def test_a_server_that_is_away_is_a_clear_fault_and_comes_back(harness: Harness, ours: Deployment) -> None:
    ours.publisher.publish([Batch(("before",), None)])
    ours.consume(1)
    harness.kill()
    with pytest.raises(ours.publisher.unavailable):
        ours.publisher.publish([Batch(("lost",), None)])
    with pytest.raises((*ours.publisher.unavailable, TimeoutError)):
        ours.publisher.ask_queue_length()(PATIENCE_SECONDS)
    harness.start()
    tries = 0

    def publishes() -> bool:
        nonlocal tries
        tries += 1
        try:
            ours.publisher.publish([Batch(("after",), None)])
        except ours.publisher.unavailable:  # a connection of before, found out to be dead, or a late confirm
            return False
        return True

    wait_until(publishes, "the publisher to connect again")
    came = [ids(message) for message in ours.consume(1)]
    if came == [["before"]]:
        # While the disk is busy, Redis takes seconds to write down that a message was acknowledged: killed
        # before that, it has the message again.
        came = [ids(message) for message in ours.consume(1)]
    assert came == [["after"]]
    # A message that was confirmed too late has come all the same.
    assert ours.publisher.ask_queue_length()(PATIENCE_SECONDS) < tries


def test_doctor_says_that_it_is_fit_for_use(harness: Harness, ours: Deployment) -> None:
    backend = backend_of(harness.url)
    assert type(backend) in HARNESSES
    with ours.app.connection_for_read() as connection:
        checks = backend.checks(connection.channel(), "the address")
    assert checks[0].name == backend.check_name
    assert {check.status for check in checks} == {Status.OK}
    assert "the address" in checks[0].found


def test_a_broker_at_any_of_its_schemes_is_found() -> None:
    for backend in BACKENDS:
        for scheme in backend.transports:
            assert backend_of(f"{scheme}://host/0") is backend


@pytest.mark.parametrize("url", ["sqs://", "carrier-pigeon://coop", "no url"])
def test_a_broker_that_cannot_be_used_is_one_sentence(url: str) -> None:
    with pytest.raises(InvalidSetting, match=r"^BROKER_URL cannot be used .*redis://"):
        make_app(Settings(broker_url=url))


@pytest.mark.parametrize("url", ["redis+cluster://host", "rediss+cluster://host"])
def test_a_redis_cluster_is_refused_with_what_to_name_instead(url: str) -> None:
    with pytest.raises(InvalidSetting, match=r"Redis Cluster is not supported.*sentinel://"):
        make_app(Settings(broker_url=url))


def test_the_eta_is_no_promise_of_the_broker(ours: Deployment) -> None:
    """A message is taken at once, and the worker waits: a broker needs no delayed delivery."""
    ours.publisher.publish([Batch(("later",), datetime.now(UTC) + timedelta(hours=1))])
    assert [ids(message) for message in ours.consume(1)] == [["later"]]

"""What counts as a broker that does not answer."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from prometheus_client import REGISTRY
from redis import Redis as RedisClient
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError

from scheduler_app.broker import publisher as publisher_module
from scheduler_app.broker.app import make_app
from scheduler_app.broker.publisher import CeleryPublisher
from scheduler_app.broker.redis.backend import key_prefix
from scheduler_app.config import Settings
from scheduler_app.domain.action import Lane, QueueLengths
from scheduler_app.embedded import Redis
from scheduler_app.telemetry import metrics
from scheduler_app.usecases.duties.dispatch_selection import Batch
from tests.processes import PATIENCE_SECONDS, wait_until


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A probe may take as long as this machine needs for each step of its connections."""
    monkeypatch.setattr(publisher_module, "PATIENCE_SECONDS", PATIENCE_SECONDS)


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    with Redis(tmp_path / "redis") as server:
        yield server


@pytest.fixture
def publisher(redis: Redis) -> CeleryPublisher:
    app = make_app(Settings(broker_url=redis.url, mongo_database="with [brackets]"))

    return CeleryPublisher(app)


def test_a_redis_that_is_away_or_refuses_is_unavailable(publisher: CeleryPublisher, redis: Redis) -> None:
    assert issubclass(RedisConnectionError, publisher.unavailable)
    assert issubclass(ResponseError, publisher.unavailable)
    redis.kill()
    with pytest.raises(publisher.unavailable):
        publisher.publish([Batch(("x",), None)])


def is_up() -> float | None:
    return REGISTRY.get_sample_value("scheduler_dependency_up", {"dependency": "broker"})


def test_a_broker_that_answers_a_question_before_anything_was_published_is_up(
    publisher: CeleryPublisher,
) -> None:
    metrics.dependency_up.labels("broker").set(0)
    assert publisher.queue_length() == 0
    assert is_up() == 1


def test_a_broker_that_refuses_messages_is_not_up_before_it_takes_one_whatever_it_answers(
    publisher: CeleryPublisher, redis: Redis
) -> None:
    assert not publisher.is_away()
    key = f"{key_prefix('with [brackets]')}slow"
    with closing(RedisClient.from_url(redis.url)) as client:
        client.set(key, "of another type")
        with pytest.raises(publisher.unavailable):
            publisher.publish([Batch(("x",), None, Lane.URGENT, queue="slow")])
        assert publisher.queue_length() == 0
        assert is_up() == 0
        client.delete(key)
    assert publisher.queue_length() == 0
    assert is_up() == 0
    publisher.publish([Batch(("x",), None)])
    assert is_up() == 1
    # Whether it is away is asked in the background.
    assert publisher.is_away()
    wait_until(lambda: not publisher.is_away(), "the probe's answer")
    metrics.dependency_up.labels("broker").set(0)
    assert publisher.queue_length() == 1
    assert is_up() == 1


@pytest.mark.parametrize("mistake", [KeyError, TypeError, AttributeError])
def test_a_mistake_of_ours_is_not(mistake: type[Exception], publisher: CeleryPublisher) -> None:
    assert not issubclass(mistake, publisher.unavailable)


def test_the_length_of_the_queue_is_that_of_its_own_deployment(publisher: CeleryPublisher) -> None:
    assert publisher.queue_length() == publisher.ask_queue_length()(PATIENCE_SECONDS) == 0
    publisher.publish([Batch(("x",), None)] * 3)
    assert publisher.queue_length() == publisher.ask_queue_length()(PATIENCE_SECONDS) == 3


def test_a_batch_goes_to_the_queue_that_it_names(publisher: CeleryPublisher) -> None:
    publisher.publish([Batch(("x",), None, queue="slow"), *([Batch(("y",), None)] * 2)])
    assert publisher.queue_lengths("slow") == QueueLengths(fresh=1)
    assert publisher.queue_lengths() == QueueLengths(fresh=2)


def test_a_publish_takes_one_place_of_the_pool_for_all_its_batches(redis: Redis) -> None:
    """Another one for each batch would wait for ever, as soon as all places are taken."""
    app = make_app(Settings(broker_url=redis.url, mongo_database="one"))
    app.conf.broker_pool_limit = 1
    publisher = CeleryPublisher(app)
    publisher.publish([Batch((f"b{number}",), None) for number in range(3)])
    assert publisher.queue_length() == 3


def test_who_finds_the_pool_empty_waits_a_few_seconds_and_no_longer(
    publisher: CeleryPublisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher_module, "POOL_SECONDS", 0.1)
    pool = publisher._app.pool
    with ExitStack() as taken:
        for _ in range(pool.limit):
            taken.enter_context(pool.acquire())
        with pytest.raises(publisher.unavailable, match="all 10 connections to the broker have been in use"):
            publisher.queue_length()
    assert publisher.queue_length() == 0


def test_who_finds_the_pool_empty_takes_the_connection_that_another_gives_back(
    publisher: CeleryPublisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher_module, "POOL_SECONDS", PATIENCE_SECONDS)
    pool = publisher._app.pool
    with ExitStack() as taken:
        for _ in range(pool.limit - 1):
            taken.enter_context(pool.acquire())
        given_back = threading.Timer(0.1, pool.acquire().release)
        given_back.start()
        assert publisher.queue_length() == 0
        given_back.join()

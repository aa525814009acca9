"""What a caller learns who may not wait for the broker: one question for all who ask meanwhile."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from kombu.connection import Connection
from prometheus_client import REGISTRY

from scheduler_app.broker import publisher
from scheduler_app.broker.app import Application, make_app
from scheduler_app.broker.publisher import QueueProbe
from scheduler_app.broker.redis.backend import RedisBackend
from scheduler_app.broker.task import QUEUE
from scheduler_app.broker_faults import TakesNoMessages, broker_faults
from scheduler_app.config import Settings
from scheduler_app.embedded import Redis
from scheduler_app.telemetry import metrics
from tests.processes import PATIENCE_SECONDS, wait_until


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step of a connection may take as long as this machine needs for it."""
    monkeypatch.setattr(publisher, "PATIENCE_SECONDS", PATIENCE_SECONDS)


@pytest.fixture
def app(redis_url: str) -> Application:
    return make_app(Settings(broker_url=redis_url, mongo_database="asked"))


def is_up() -> float | None:
    return REGISTRY.get_sample_value("scheduler_dependency_up", {"dependency": "broker"})


class TimedFuture(Future[int]):
    """Keeps how long it was waited for."""

    limits: list[float | None]

    def result(self, timeout: float | None = None) -> int:
        self.limits.append(timeout)
        return super().result(timeout)


def test_a_caller_waits_as_long_as_it_says_and_not_at_all_where_its_time_is_over(
    app: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TimedFuture, "limits", [], raising=False)
    monkeypatch.setattr(publisher, "Future", TimedFuture)
    wait = QueueProbe(app).ask()
    assert wait(PATIENCE_SECONDS) == 0
    assert wait(-1.0) == 0
    assert TimedFuture.limits == [PATIENCE_SECONDS, 0.0]


class SlowBackend(RedisBackend):
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.goes_on = threading.Event()

    def queue_length(self, channel: Any, queue: str = QUEUE) -> int:
        self.goes_on.wait(PATIENCE_SECONDS)
        return super().queue_length(channel, queue)


def test_those_who_ask_meanwhile_share_an_answer_that_keeps_no_process_alive(app: Application) -> None:
    app.broker = slow = SlowBackend()
    probe, before = QueueProbe(app), set(threading.enumerate())
    first, second = probe.ask(), probe.ask()
    (asking,) = (each for each in set(threading.enumerate()) - before if each.name == "queue")
    with pytest.raises(TimeoutError):
        first(0.0)
    slow.goes_on.set()
    assert first(PATIENCE_SECONDS) == second(PATIENCE_SECONDS) == 0
    assert asking.daemon


class FullBackend(RedisBackend):
    """Answers questions, and takes no messages."""

    def check_publishing(self, connection: Any) -> None:
        assert isinstance(connection, Connection)
        raise TakesNoMessages("its disk is full")


def test_a_broker_that_answers_and_takes_no_messages_is_not_up(app: Application) -> None:
    app.broker = FullBackend()
    metrics.dependency_up.labels("broker").set(1)
    with pytest.raises(TakesNoMessages, match="its disk is full"):
        QueueProbe(app).ask()(PATIENCE_SECONDS)
    assert is_up() == 0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Redis]:
    with Redis(tmp_path / "redis") as started:
        yield started


def test_a_broker_that_was_away_is_asked_over_new_connections(server: Redis) -> None:
    app = make_app(Settings(broker_url=server.url))
    probe = QueueProbe(app)
    metrics.dependency_up.labels("broker").set(0)
    assert probe.ask()(PATIENCE_SECONDS) == 0
    assert is_up() == 1
    used = (probe._connection, probe._publishing)
    server.kill()
    with pytest.raises((*broker_faults(used[0]), TimeoutError)):
        probe.ask()(PATIENCE_SECONDS)
    assert is_up() == 0
    wait_until(lambda: all(each._closed for each in used), "the broken connections to be given up")
    server.start()

    def answers() -> bool:
        with suppress(*broker_faults(used[0]), TimeoutError):
            return probe.ask()(PATIENCE_SECONDS) == 0
        return False

    wait_until(answers, "it to answer again")
    assert probe._connection not in used

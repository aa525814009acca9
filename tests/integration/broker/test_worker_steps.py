"""The two repairs of Celery's worker."""

import time
from types import SimpleNamespace
from typing import Any

import pytest
from celery.worker import state
from kombu.asynchronous import Hub
from kombu.connection import Connection

from scheduler_app.broker.backends import backend_of
from scheduler_app.broker.worker_steps import FastTimers, ReturnUnstarted
from tests.processes import PATIENCE_SECONDS

BURST = 100


def fired_in_one_round(hub: Hub) -> tuple[int, float]:
    """How many timers due at one instant fire in a round, and how long the hub may sleep after it."""
    fired: list[int] = []
    for number in range(BURST):
        hub.timer.call_at(time.monotonic() - 1, fired.append, (number,))
    pause: float = hub.fire_timers()  # type: ignore[no-untyped-call]
    return len(fired), pause


def test_the_hub_as_it_comes_starts_ten_and_may_then_sleep_a_second() -> None:
    fired, pause = fired_in_one_round(Hub())  # type: ignore[no-untyped-call]
    assert fired == 10
    assert pause > 0.5


def test_a_burst_of_messages_with_one_eta_starts_in_one_round() -> None:
    parent = SimpleNamespace(hub=Hub(), use_eventloop=True)  # type: ignore[no-untyped-call]
    step = object.__new__(FastTimers)
    assert step.include_if(parent) is True
    assert step.include_if(SimpleNamespace(use_eventloop=0)) is False
    step.create(parent)
    fired, pause = fired_in_one_round(parent.hub)
    assert fired == BURST
    assert pause < 0.05


def end(consumer: Any) -> None:
    """As a worker ends whose consumer of tasks this is."""
    object.__new__(ReturnUnstarted).stop(SimpleNamespace(consumer=SimpleNamespace(task_consumer=consumer)))


def test_a_worker_that_ends_gives_back_what_it_has_not_begun(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend_of(redis_url)
    with Connection(redis_url) as connection, connection.SimpleQueue("q") as queue:  # type: ignore[no-untyped-call]
        for number in range(3):
            queue.put({"v": number})
        begun, _ = (queue.get(timeout=PATIENCE_SECONDS) for _ in range(2))
        monkeypatch.setattr(state, "active_requests", [SimpleNamespace(message=begun)])
        end(queue.consumer)
        assert queue.channel.qos.held() == [begun.delivery_tag]
        assert queue.qsize() == 2


def test_a_worker_ends_that_never_connected_or_whose_broker_can_give_nothing_back() -> None:
    end(None)
    with Connection("memory://") as connection, connection.SimpleQueue("q") as queue:  # type: ignore[no-untyped-call]
        end(queue.consumer)

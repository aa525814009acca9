"""The two repairs of Celery's worker."""

import time
from types import SimpleNamespace

from kombu.asynchronous import Hub

from scheduler_app.broker.worker_steps import FastTimers

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
    assert step.include_if(parent)
    step.create(parent)
    fired, pause = fired_in_one_round(parent.hub)
    assert fired == BURST
    assert pause < 0.05

"""What `/readyz` answers from: the least that a callback needs, asked in three round trips."""

from collections.abc import Callable
from typing import Protocol

from scheduler_app.clock import monotonic
from scheduler_app.health.check import Check, fine, wrong
from scheduler_app.health.fleet import Node, check_fleet
from scheduler_app.store import STORE_FAULTS, Store, within

#: Probes give up after some seconds, and then nobody learns what is missing.
ANSWER_SECONDS = 1.5


class Broker(Protocol):
    """The way to the queue. It raises `unavailable` when the broker cannot be reached."""

    unavailable: tuple[type[Exception], ...]

    def ask_queue_length(self) -> Callable[[float], int]:
        """Asks, and returns what waits so many seconds for the answer."""
        ...


def check_ready(store: Store, broker: Broker) -> list[Check]:
    """`mongodb`, `broker`, `beat`, `worker`, `clocks`, in this order."""
    wait, started = broker.ask_queue_length(), monotonic()
    nodes: list[Node] | None = None
    try:
        with within(ANSWER_SECONDS):
            nodes = store.processes.alive()
        mongodb = fine("mongodb", "answers")
    except STORE_FAULTS as error:
        mongodb = wrong(
            "mongodb", f"does not answer: {type(error).__name__}", "start it, or see that MONGO_URI is right"
        )
    left = started + ANSWER_SECONDS - monotonic()
    return [mongodb, _broker(broker, wait, left), *check_fleet(nodes)]


def _broker(broker: Broker, wait: Callable[[float], int], seconds: float) -> Check:
    try:
        length = wait(seconds)
    except broker.unavailable as error:
        return wrong(
            "broker",
            f"does not answer: {type(error).__name__}",
            "start it, or see that REDIS_HOST and REDIS_PORT, or BROKER_URL, are right",
        )
    return fine("broker", f"answers; {length} messages wait", queue_length=length)

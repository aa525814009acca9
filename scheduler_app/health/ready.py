"""The checks of `/readyz`: the minimum that a callback needs, asked in three round trips."""

from collections.abc import Callable
from typing import Protocol

from scheduler_app.broker_faults import TakesNoMessages
from scheduler_app.clock import monotonic
from scheduler_app.health.check import Check, fine, unknown, unknown_without_mongodb, wrong
from scheduler_app.health.processes import check_fleet
from scheduler_app.health.work import check_queues, named_queues
from scheduler_app.store import STORE_FAULTS, Store, within
from scheduler_app.store.faults import IndexMissing

#: Probes give up after a few seconds; an answer after that would come too late to say what is missing.
ANSWER_SECONDS = 1.5


class Broker(Protocol):
    """The way to the queue. It raises `unavailable` when the broker cannot be reached."""

    unavailable: tuple[type[Exception], ...]
    title: str
    """What it is, for people."""
    remedy: str
    """What to do where it does not answer."""

    def ask_queue_length(self) -> Callable[[float], int]:
        """Sends the question; returns a function that waits the given seconds for the answer."""
        ...


def check_ready(store: Store, broker: Broker) -> list[Check]:
    """Returns `mongodb`, `broker`, `beat`, `worker`, `clocks`, `queues`, in this order."""
    wait, started = broker.ask_queue_length(), monotonic()
    try:
        with within(ANSWER_SECONDS):
            named = named_queues(store)
            nodes = store.processes.alive()
        mongodb = fine("mongodb", "answers")
        processes = [*check_fleet(nodes), check_queues(nodes, named)]
    except STORE_FAULTS as error:
        remedy = "start it, or see that MONGO_URI is right"
        mongodb, *processes = without_mongodb(error, remedy, "beat", "worker", "clocks", "queues")
    left = started + ANSWER_SECONDS - monotonic()
    return [mongodb, _broker(broker, wait, left), *processes]


def without_mongodb(error: Exception, remedy: str, *names: str) -> list[Check]:
    """`mongodb` after a STORE_FAULT, and the checks of what could not be read for it."""
    if isinstance(error, IndexMissing):
        why = "an index of this release is still being built"
        found = wrong("mongodb", why, "wait until it is there: `scheduler doctor` names what is being built")
        return [found, *(unknown(name, why) for name in names)]
    found = wrong("mongodb", f"does not answer: {type(error).__name__}", remedy)
    return [found, *unknown_without_mongodb(*names)]


def _broker(broker: Broker, wait: Callable[[float], int], seconds: float) -> Check:
    try:
        length = wait(seconds)
    except broker.unavailable as error:
        if isinstance(error, TakesNoMessages):
            return wrong("broker", f"{broker.title} takes no messages", str(error))
        return wrong("broker", f"{broker.title} does not answer: {type(error).__name__}", broker.remedy)
    return fine("broker", f"answers; {length} messages wait", queue_length=length)

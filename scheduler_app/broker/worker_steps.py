"""A step of the worker's blueprint that mends Celery's event loop, whichever the broker is."""

from functools import partial
from typing import Any

from celery import bootsteps

MIN_DELAY_SECONDS = 0.002
TIMERS_A_ROUND = 200


class FastTimers(bootsteps.Step):  # type: ignore[misc]
    """Lets a burst of messages with one eta start at once.

    Kombu's event loop fires at most 10 timers in a round and may then wait for a second: of 100 messages that
    were due at one instant, the last one started 5 s late.
    """

    requires = ("celery.worker.components:Hub",)

    def include_if(self, parent: Any) -> bool:
        return bool(parent.use_eventloop)

    def create(self, parent: Any) -> None:
        hub = parent.hub
        hub.fire_timers = partial(hub.fire_timers, min_delay=MIN_DELAY_SECONDS, max_timers=TIMERS_A_ROUND)

"""The second repair of the worker: a burst of messages with one eta is started at once.

The hub fires at most 10 timers a round and may then wait for a second: of 100 messages due at one instant the
last one was 5 s late.
"""

from functools import partial
from typing import Any

from celery import bootsteps

MIN_DELAY_SECONDS = 0.002
TIMERS_A_ROUND = 200


class FastTimers(bootsteps.Step):  # type: ignore[misc]
    requires = ("celery.worker.components:Hub",)

    def include_if(self, parent: Any) -> bool:
        return bool(parent.use_eventloop)

    def create(self, parent: Any) -> None:
        hub = parent.hub
        hub.fire_timers = partial(hub.fire_timers, min_delay=MIN_DELAY_SECONDS, max_timers=TIMERS_A_ROUND)

"""The second and the third repair of the worker, as steps of its own blueprint."""

from functools import partial
from typing import Any

from celery import bootsteps
from celery.worker import state

from scheduler_app.broker.redis import SturdyChannel

MIN_DELAY_SECONDS = 0.002
TIMERS_A_ROUND = 200


class FastTimers(bootsteps.Step):  # type: ignore[misc]
    """A burst of messages with one eta is started at once.

    The hub fires at most 10 timers a round and may then wait for a second: of 100 messages due at one instant
    the last one was 5 s late.
    """

    requires = ("celery.worker.components:Hub",)

    def include_if(self, parent: Any) -> bool:
        return bool(parent.use_eventloop)

    def create(self, parent: Any) -> None:
        hub = parent.hub
        hub.fire_timers = partial(hub.fire_timers, min_delay=MIN_DELAY_SECONDS, max_timers=TIMERS_A_ROUND)


class GiveBack(bootsteps.StartStopStep):  # type: ignore[misc]
    """A worker that ends gives back the messages whose tasks have not begun, and then waits for the others.

    Celery gives them back when it closes the channel, after the last task: what is due while one request
    takes its time would wait with it, or for recovery.
    """

    # Steps stop in the reverse order: after the consumer, which takes no more, and before the pool.
    requires = ("celery.worker.components:Pool",)

    def stop(self, parent: Any) -> None:
        consumer = parent.consumer.task_consumer
        if consumer is not None and isinstance(consumer.channel, SturdyChannel):
            consumer.channel.give_back(
                {request.message.delivery_tag for request in tuple(state.active_requests)}
            )

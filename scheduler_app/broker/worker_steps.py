"""Steps of the worker's blueprint: one mends Celery's event loop, whichever the broker is; by the other a
worker that ends returns its unstarted messages before it waits.
"""

from functools import partial
from typing import Any, Protocol, runtime_checkable

from celery import bootsteps
from celery.worker import state

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


@runtime_checkable
class ReturnsMessages(Protocol):
    """A channel of a broker that can give back what it has fetched."""

    def return_all_but(self, but: set[Any]) -> None:
        """Gives all messages back that were fetched and not acknowledged, but those with these tags."""


class ReturnUnstarted(bootsteps.StartStopStep):  # type: ignore[misc]
    """Returns the messages whose tasks have not begun, and then waits for the tasks that have.

    Celery returns them when it closes the channel, after the last task has ended. Events that are due
    meanwhile would wait for that task, or for recovery.
    """

    # Steps stop in reverse order: this one after the consumer, which takes no more, and before the pool.
    requires = ("celery.worker.components:Pool",)

    def stop(self, parent: Any) -> None:
        consumer = parent.consumer.task_consumer
        if consumer is not None and isinstance(consumer.channel, ReturnsMessages):
            consumer.channel.return_all_but(
                {request.message.delivery_tag for request in tuple(state.active_requests)}
            )

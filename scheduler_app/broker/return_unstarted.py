"""A step of the worker's blueprint: a worker that ends returns its unstarted messages before it waits."""

from typing import Any, Protocol, runtime_checkable

from celery import bootsteps
from celery.worker import state


@runtime_checkable
class Returning(Protocol):
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
        if consumer is not None and isinstance(consumer.channel, Returning):
            consumer.channel.return_all_but(
                {request.message.delivery_tag for request in tuple(state.active_requests)}
            )

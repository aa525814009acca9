"""The names of queues and of the task, and the order in which messages are taken."""

from collections.abc import Mapping
from typing import Any

from kombu.entity import Exchange, Queue

from scheduler_app.domain.queues import CALLBACKS, Lane

QUEUE = CALLBACKS
#: Where tasks of a user's own on this application go, unless they name another queue.
OWN_QUEUE = "tasks"
#: The name of the task that a batch's message starts. Messages of older releases have it, too.
DELIVER = "scheduler_app.tasks.deliver"

#: Celery's numbers for the lanes: with Redis the lowest is taken first, and each is a list of its own.
PRIORITIES = {Lane.URGENT: 0, Lane.FRESH: 3, Lane.LATE: 6}


def delivery_queue(name: str) -> Queue:
    """A queue of events. By the nameless exchange: others keep their bindings in Redis, where a FLUSHALL
    takes them."""
    return Queue(name, Exchange(""), routing_key=name)


def route_task(name: str, args: Any, kwargs: Any, options: Mapping[str, Any], **_: Any) -> Any:
    """The queue of a task, in Celery's form; None for what Celery itself would choose.

    Raises ValueError for a task of a user's own that names the queue of callbacks.
    """
    if name == DELIVER:
        return {"queue": QUEUE}
    if getattr(options.get("queue"), "name", None) == QUEUE:
        raise ValueError(
            f"the queue {QUEUE} is for callbacks alone, and {name} would wait behind them: leave queue= out,"
            f" and start a worker with -Q {OWN_QUEUE}"
        )
    return None

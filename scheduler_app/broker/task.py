"""The Celery task that every message of ours names, the names of queues, and the order in which messages are
taken.

Tasks of a user's own run on this application, too: `celery -A scheduler_app worker -I my_tasks -Q tasks`.
They have queues and workers of their own, so that none of them holds a thread that callbacks need.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from celery import Celery
from kombu.entity import Exchange, Queue

from scheduler_app.config import InvalidSetting
from scheduler_app.domain.action import CALLBACKS, COMMANDS, Lane, is_queue
from scheduler_app.store import STORE_FAULTS
from scheduler_app.telemetry import get_logger

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


Deliver = Callable[[Sequence[str]], int]
_deliver: Deliver | None = None


def set_delivery(deliver: Deliver) -> None:
    """Sets what the task does in this process. A worker calls it when it starts."""
    global _deliver
    _deliver = deliver


def register(app: Celery) -> None:
    """Adds the task to an application."""

    @app.task(
        name=DELIVER,
        shared=False,  # each application has its own
        # Faults of our own infrastructure, until the first request has started: a callback's own retries are
        # its event's next due time. When even these are spent, recovery puts the events back.
        autoretry_for=STORE_FAULTS,
        max_retries=5,
        retry_backoff=1,
        retry_backoff_max=4,
        retry_jitter=True,
    )
    def deliver(v: int, ids: list[str]) -> int:
        """Claims the events with these ids and hands them over; returns how many were ours to deliver.

        The consumer has checked the message: one of another version, or with other arguments, never comes
        here.
        """
        if _deliver is None:
            raise RuntimeError("no worker runs in this process")
        return _deliver(ids)


log = get_logger(__name__)


def delivers_callbacks(app: Celery) -> bool:
    """Whether the worker that starts in this process is one for callbacks; the other kind runs tasks of a
    user's own. Raises InvalidSetting where its queues (-Q) do not go together."""
    queues = sorted(app.amqp.queues.consume_from)
    own = sorted(name for name in app.tasks if name != DELIVER and not name.startswith("celery."))
    if queues == [QUEUE]:
        if own:
            log.warning(
                "worker.own_tasks",
                message=f"Your tasks do not come to this worker: start another with -Q {OWN_QUEUE}",
                tasks=own,
            )
        return True
    if COMMANDS in queues and len(queues) > 1:
        raise InvalidSetting(
            f"-Q {','.join(queues)}: commands need workers of their own; start one worker with -Q {COMMANDS},"
            " and one for the others"
        )
    if own and not {QUEUE, COMMANDS}.isdisjoint(queues):
        raise InvalidSetting(
            f"-Q {','.join(queues)}: callbacks need workers of their own, or a slow task would hold them up;"
            f" start one worker with -Q {QUEUE}, and one for the others"
        )
    if own:
        log.info("worker.own_tasks", message="This worker runs tasks of your own", queues=queues, tasks=own)
        return False
    if impossible := [name for name in queues if not is_queue(name)]:
        raise InvalidSetting(
            f"-Q {','.join(queues)}: no schedule can name {', '.join(impossible)}; callbacks come by {QUEUE},"
            " which is the default, and for tasks of your own name their module by -I"
        )
    log.info("worker.queues", message="This worker serves queues that schedules name", queues=queues)
    return True

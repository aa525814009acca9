"""The Celery task that every message of ours names."""

from collections.abc import Callable, Sequence

from celery import Celery

from scheduler_app.broker.queues import DELIVER
from scheduler_app.store import STORE_FAULTS

Deliver = Callable[[Sequence[str]], int]
_deliver: Deliver | None = None


def deliver_by(deliver: Deliver) -> None:
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

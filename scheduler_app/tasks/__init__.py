"""The task that a message starts, and the way to publish it."""

from scheduler_app.celery_app import app
from scheduler_app.celery_app.settings import DELIVER
from scheduler_app.store import STORE_FAULTS
from scheduler_app.tasks import lifecycle
from scheduler_app.tasks.publisher import CeleryPublisher

__all__ = ["CeleryPublisher", "deliver", "publisher"]


@app.task(
    name=DELIVER,
    # Faults of our own infrastructure, until the first request has started: a callback's own retries are
    # its event's next due time. When even these are spent, recovery puts the events back.
    autoretry_for=STORE_FAULTS,
    max_retries=5,
    retry_backoff=1,
    retry_backoff_max=4,
    retry_jitter=True,
)
def deliver(v: int, ids: list[str]) -> int:
    """Delivers the events with these ids; returns how many were ours to deliver.

    The consumer has checked the message: one of another version, or with other arguments, never comes here.
    """
    return lifecycle.worker().delivery.deliver(ids)


publisher = CeleryPublisher(app, deliver)

lifecycle.connect(app)

"""The task that a message starts, and the way to publish it."""

from celery.exceptions import Reject

from scheduler_app.celery_app import app
from scheduler_app.celery_app.settings import DELIVER
from scheduler_app.delivery import Stopping
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
    """Claims the events with these ids and hands them over; returns how many were ours to deliver.

    The consumer has checked the message: one of another version, or with other arguments, never comes here.
    """
    try:
        return lifecycle.worker().pipeline.delivery.deliver(ids)
    except Stopping:
        raise Reject("the worker ends; another one takes the message", requeue=True) from None


publisher = CeleryPublisher(app, deliver)

lifecycle.connect(app)

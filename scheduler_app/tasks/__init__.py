"""The task that a message starts, and the way to publish it."""

from celery.exceptions import Reject

from scheduler_app.celery_app import app
from scheduler_app.delivery import Stopping
from scheduler_app.store import STORE_FAULTS
from scheduler_app.tasks import inspection, lifecycle
from scheduler_app.tasks.publisher import CeleryPublisher
from scheduler_app.telemetry import get_logger

__all__ = ["CeleryPublisher", "deliver", "inspection", "publisher"]

log = get_logger(__name__)

MESSAGE_VERSION = 1


@app.task(
    name="scheduler_app.tasks.deliver",
    # Faults of our own infrastructure, until the first request has started: a callback's own retries are
    # its event's next due time. When even these are spent, recovery puts the events back.
    autoretry_for=STORE_FAULTS,
    max_retries=5,
    retry_backoff=1,
    retry_backoff_max=4,
    retry_jitter=True,
)
def deliver(v: int, ids: list[str]) -> int:
    """Claims the events with these ids and hands them over; returns how many were ours to deliver."""
    if v != MESSAGE_VERSION:
        # A newer release published it; recovery brings its events back, and a newer worker takes them.
        log.error("message.unknown_version", message="A message of another version was dropped", version=v)
        return 0
    try:
        return lifecycle.worker().pipeline.delivery.deliver(ids)
    except Stopping:
        raise Reject("the worker ends; another one takes the message", requeue=True) from None


publisher = CeleryPublisher(app, deliver)

lifecycle.connect(app)

"""The task that a message starts, and the way to publish it."""

from scheduler_app.celery_app import app
from scheduler_app.store import STORE_FAULTS
from scheduler_app.tasks import lifecycle
from scheduler_app.tasks.publisher import CeleryPublisher
from scheduler_app.telemetry import get_logger

__all__ = ["CeleryPublisher", "deliver", "publisher"]

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
    """Delivers the events with these ids; returns how many were ours to deliver."""
    if v != MESSAGE_VERSION:
        # A newer release published it; recovery brings its events back, and a newer worker takes them.
        log.error("message.unknown_version", message="A message of another version was dropped", version=v)
        return 0
    return lifecycle.worker().delivery.deliver(ids)


publisher = CeleryPublisher(app, deliver)

lifecycle.connect(app)

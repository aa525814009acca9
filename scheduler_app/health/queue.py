"""The queue of callbacks, by its length."""

from scheduler_app.health.check import Check, fine, note


def check_queue(length: int, *, most: int) -> Check:
    """Beats stop publishing at `most` messages."""
    if length >= most:
        return note(
            "queue",
            f"{length} messages wait: dispatch pauses, and the rest of the backlog waits in MongoDB",
            "start more workers, or see why those that run take nothing",
            length=length,
        )
    return fine("queue", f"{length} messages wait", length=length)

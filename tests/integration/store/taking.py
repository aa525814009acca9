"""Dispatch's first two steps, as a beat does them."""

from datetime import datetime

from scheduler_app.store.outbox import Due, Outbox


def take(outbox: Outbox, until: datetime, *, limit: int, lease_seconds: float) -> tuple[str, list[Due]]:
    """Takes what is due up to `until`: the token and what was won."""
    return outbox.take(outbox.due(until, limit=limit), until, lease_seconds=lease_seconds)

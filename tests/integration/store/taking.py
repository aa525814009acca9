"""Dispatch's steps but for the messages, as a beat does them."""

from datetime import datetime

from scheduler_app.store.events.outbox import DueEvent, Outbox


def take(outbox: Outbox, until: datetime, *, limit: int, lease_seconds: float) -> tuple[str, list[DueEvent]]:
    """Takes what is due up to `until`: the token and what was won."""
    return outbox.take(outbox.due(until, limit=limit), until, until, lease_seconds=lease_seconds)


def send(outbox: Outbox, now: datetime, *, limit: int = 10) -> list[str]:
    """Takes what is due by now, and says that its messages are out; returns the ids."""
    token, taken = take(outbox, now, limit=limit, lease_seconds=600)
    outbox.sent(token)
    return [event.id for event in taken]

"""Missed occurrences: what a beat does about those that are too late before they are events."""

from collections.abc import Callable
from datetime import datetime
from typing import Final

from scheduler_app.clock import monotonic
from scheduler_app.domain.missed import MissedStep
from scheduler_app.store import Store
from scheduler_app.store.missed import Move
from scheduler_app.store.schedules.cursors import Advance
from scheduler_app.telemetry import get_logger, metrics

log = get_logger(__name__)

#: How long a page counts, in seconds, before it leaves the rest to the next one. Three days of a rule that
#: fires each second are less than half a second in all; rules that cost milliseconds for an occurrence have
#: few.
MISSED_SECONDS: Final = 0.2


def after(seconds: float) -> Callable[[], bool]:
    """Returns a function that tells whether that many seconds have passed since now."""
    until = monotonic() + seconds
    return lambda: monotonic() > until


def past(store: Store, step: MissedStep, token: str) -> Move:
    """Moves a schedule's cursor past a step, and releases it."""
    advance = Advance(
        schedule_id=step.schedule_id,
        next_run_at=step.following,
        finishes_at=step.last if step.following is None else None,
        checkpoint=step.checkpoint,
    )
    return lambda session: store.cursors.advance_within(session, advance, token)


def settle(store: Store, step: MissedStep, move: Move, now: datetime) -> bool:
    """Writes a step; False when another beat was quicker. Raises what MongoDB rejects."""
    fresh = store.missed.settle(step, move, now)
    if fresh is None:
        return False
    if step.record is None:
        for _, expiry in step.expired:
            metrics.expired.labels(expiry.policy).inc()
    elif step.expiry is not None:
        metrics.expired.labels(step.expiry.policy).inc(fresh)
        log.warning(
            "schedule.missed",
            message="A schedule has missed occurrences that are too late to be sent; a record tells of them",
            schedule_id=step.schedule_id,
            count=fresh,
            first=step.record.first.isoformat(),
            last=step.record.last.isoformat(),
        )
    return True

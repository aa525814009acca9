"""Results of claimed events whose requests are not made: postponed, or set aside."""

from datetime import datetime, timedelta
from zlib import crc32

from scheduler_app.domain.deliverable import Deliverable
from scheduler_app.domain.event import Event
from scheduler_app.domain.instants import shown_instant, whole_milliseconds
from scheduler_app.store.events.claims import Postponement
from scheduler_app.worker import attempt
from scheduler_app.worker.lease import Lease
from scheduler_app.worker.recorder import Delayed, Outcome

#: An event that has to wait for another one comes again within a part of the time that it has waited.
WAITED_SHARE = 4
SHORTEST_DELAY, LONGEST_DELAY = timedelta(seconds=2), timedelta(seconds=60)


def postponed(
    event: Event,
    lease: Lease,
    due_at: datetime,
    reason: str,
    *,
    queue: str | None = None,
    queue_by_destination: bool = False,
) -> Delayed:
    """Makes an event due at `due_at`; its history gives the reason. It moves to `queue`, if one is given,
    which may be what its destination says."""
    due_at = whole_milliseconds(due_at)
    message = f"Postponed to {shown_instant(due_at)}: {reason}"
    since = event.postponed_from or event.due_at
    postponement = Postponement(
        event.id, lease.token, due_at, since, message, queue, queue_by_destination=queue_by_destination
    )
    return Delayed(postponement, lease)


def postponed_for_another(event: Event, lease: Lease, reason: str, now: datetime) -> Delayed:
    """Postpones an event that waits for another one for an unknown time: by a part of the time that it has
    waited already. Many that wait for one come at times of their own, not together."""
    waited = now - (event.postponed_from or event.due_at)
    longest = min(max(waited / WAITED_SHARE, SHORTEST_DELAY), LONGEST_DELAY)
    share = crc32(event.id.encode()) / 2**32
    return postponed(event, lease, now + SHORTEST_DELAY + (longest - SHORTEST_DELAY) * share, reason)


def set_aside(
    event: Event,
    lease: Lease,
    worker: str,
    reason: str,
    now: datetime,
    deliverable: Deliverable | None = None,
) -> Outcome:
    """Ends an event that cannot be attempted, as `attempt.set_aside` says."""
    return Outcome(attempt.set_aside(event, lease.token, worker, reason, now, deliverable), lease)

"""The whole at a glance: whether everything works, and what comes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from scheduler_app.domain.states import LIVING
from scheduler_app.health.check import Check
from scheduler_app.health.ready import Broker
from scheduler_app.health.status import SystemStatus, look_at_system
from scheduler_app.store import Store
from scheduler_app.store.events.events import EventRecord
from scheduler_app.store.paging import PageRequest

#: Counting stops here, so that an overview costs little however many there are.
MOST_COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class Overview:
    """The state of the whole, with the work of one tenant."""

    status: SystemStatus
    checks: Sequence[Check]
    schedules: Mapping[str, int]
    """By state; `MOST_COUNTED` of each at most."""
    dead: int
    """Dead letters; `MOST_COUNTED` at most."""
    waited: float
    """How many seconds the event that waits for longest has been due."""
    coming: Sequence[EventRecord]
    """The next events, the soonest first."""


def look_over(tenant: str, store: Store, broker: Broker, now: datetime, *, coming: int) -> Overview:
    """`coming` is how many of the next events are shown. Raises a STORE_FAULT."""
    upcoming = store.event_lists.page(
        tenant, PageRequest(limit=coming, since=now), states=LIVING, soonest_first=True
    ).rows
    oldest = store.events.oldest_due()
    look = look_at_system(tenant, store, broker, now)
    return Overview(
        status=look.status,
        checks=look.checks,
        schedules=store.schedules.count_by_state(tenant, most=MOST_COUNTED),
        dead=store.events.dead_letters(tenant, most=MOST_COUNTED),
        waited=max(0.0, (now - oldest).total_seconds()) if oldest else 0.0,
        coming=upcoming,
    )

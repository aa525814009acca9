"""The whole at a glance: whether everything works, what failed, what comes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from scheduler_app.domain.ids import tenant_of
from scheduler_app.domain.states import LIVING, State
from scheduler_app.health.check import Check
from scheduler_app.health.processes import check_receivers, check_settings
from scheduler_app.health.ready import Broker, check_ready
from scheduler_app.health.stops import check_blackouts, check_kill_switches
from scheduler_app.health.work import check_dead_letters, check_receivers_answer, check_schedules
from scheduler_app.store import Store
from scheduler_app.store.events.events import EventRecord
from scheduler_app.store.events.lists import DeadLetterCause
from scheduler_app.store.paging import PageRequest
from scheduler_app.version import __version__

#: Counting stops here, so that an overview costs little however many there are.
MOST_COUNTED = 10_000
#: The newest dead letters among which causes are told apart.
MOST_READ = 1_000
MOST_RETRYING = 100
#: Failures that are older are none of the present.
RECENT = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Overview:
    """The state of the whole, with the work of one tenant."""

    checks: Sequence[Check]
    wrong: Sequence[Check]
    """The checks that need somebody's attention, and what is wrong with the work."""
    schedules: Mapping[str, int]
    """By state; `MOST_COUNTED` of each at most."""
    dead: int
    """Dead letters; `MOST_COUNTED` at most."""
    causes: Sequence[DeadLetterCause]
    """Of recent dead letters."""
    waited: float
    """How many seconds the event that waits for longest has been due."""
    coming: Sequence[EventRecord]
    """The next events, the soonest first."""


def look_over(tenant: str, store: Store, broker: Broker, now: datetime, *, coming: int) -> Overview:
    """`coming` is how many of the next events are shown. Raises a STORE_FAULT."""
    lists, since = store.event_lists, now - RECENT
    upcoming = lists.page(
        tenant, PageRequest(limit=coming, since=now), states=LIVING, soonest_first=True
    ).rows
    oldest = store.events.oldest_due()
    has_failed = lists.page(tenant, PageRequest(limit=1, since=since), states={State.ERROR}).rows
    causes = lists.dead_letter_causes(tenant, most=MOST_READ).rows if has_failed else []
    nodes = store.processes.alive()
    checks = check_ready(store, broker)
    checks += [check_settings(nodes, store.processes.settings, __version__), check_receivers(nodes)]
    on = store.kill_switches.everybodys().targets
    targets = sorted((each for each in on if each.tenant == tenant), key=str)
    corrupt_switches = store.kill_switches.corrupt()
    corrupt_blackouts = [each for each in store.blackouts.corrupt(now) if tenant_of(each.id) == tenant]
    stopped = [check_kill_switches(targets, corrupt_switches)] if targets or corrupt_switches else []
    stopped += [check_blackouts(corrupt_blackouts)] if corrupt_blackouts else []
    retrying = lists.page(tenant, PageRequest(limit=MOST_RETRYING), states={State.RETRYING})
    schedules = store.schedules.count_by_state(tenant, most=MOST_COUNTED)
    work = [
        check_dead_letters(causes, since),
        check_receivers_answer(retrying.rows, is_whole=retrying.next is None),
        check_schedules(schedules),
    ]
    return Overview(
        checks=[*stopped, *checks],
        wrong=[*stopped, *(each for each in checks if not each.ok), *(each for each in work if each)],
        schedules=schedules,
        dead=store.events.dead_letters(tenant, most=MOST_COUNTED),
        causes=[cause for cause in causes if cause.last and cause.last >= since],
        waited=max(0.0, (now - oldest).total_seconds()) if oldest else 0.0,
        coming=upcoming,
    )

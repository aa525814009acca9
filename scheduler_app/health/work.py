"""Work that waits or fails while the machinery runs.

The queue of callbacks by its length, queues that nobody serves, and how much there is of everything.
"""

from collections.abc import Iterator, Sequence

from prometheus_client.metrics_core import Metric

from scheduler_app.domain.action import CALLBACKS
from scheduler_app.health.check import Check, fine, first_few, note
from scheduler_app.store import Store
from scheduler_app.store.processes import ProcessRecord
from scheduler_app.telemetry import metrics


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


#: Destinations whose queues are looked at.
MOST_DESTINATIONS = 1_000


def named_queues(store: Store) -> list[str]:
    """The queues beside CALLBACKS that events are in, or that destinations name. Raises a STORE_FAULT."""
    return [*store.outbox.named_queues(), *store.destinations.queues(limit=MOST_DESTINATIONS)]


def unserved(nodes: Sequence[ProcessRecord], named: Sequence[str]) -> dict[str, bool]:
    """For each queue whether no worker takes its messages; `named` are those beside CALLBACKS."""
    served = {queue for node in nodes if node.role == "worker" and node.consuming for queue in node.queues}
    return {queue: queue not in served for queue in (CALLBACKS, *named)}


#: Counting stops here, so that the figures cost some 50 ms however many there are.
MOST_DEAD_LETTERS = 10_000
MOST_SCHEDULES = 100_000


def system_figures(tenant: str, store: Store) -> Iterator[Metric]:
    """How much there is of everything, as gauges.

    Each is read when it is asked for: where the time ends, those before it stay. The processes come first:
    alarms that wake somebody need them. Raises a STORE_FAULT.
    """
    processes = store.processes.alive()
    roles = [process.role for process in processes]
    yield metrics.processes.family({role: roles.count(role) for role in sorted({*roles, *metrics.Role})})
    yield metrics.events.family(store.events.living_by_state())
    oldest = store.events.oldest_due()
    yield metrics.oldest_due.family(oldest.timestamp() if oldest else 0.0)
    yield metrics.unserved_queues.family(unserved(processes, named_queues(store)))
    yield metrics.kill_switches.family(len(store.kill_switches.everybodys().targets))
    yield metrics.dead_letters.family(store.events.dead_letters(tenant, most=MOST_DEAD_LETTERS))
    yield metrics.schedules.family(store.schedules.count_by_state(tenant, most=MOST_SCHEDULES))


def check_queues(nodes: Sequence[ProcessRecord], named: Sequence[str]) -> Check:
    """`named` are the queues beside CALLBACKS."""
    judged = unserved(nodes, named)
    alone = [queue for queue, nobody in judged.items() if nobody]
    if not alone:
        return fine("queues", f"{len(judged)} in use, each with a worker", unserved=[])
    return note(
        "queues",
        f"no worker serves {first_few(alone)}: their events wait",
        f"start one: celery -A scheduler_app worker -Q {alone[0]}, or name another queue in their schedules,"
        " messages and destinations",
        unserved=alone,
    )

"""Queues that nobody serves: what waits in them waits for ever."""

from collections.abc import Sequence

from scheduler_app.domain.queues import CALLBACKS
from scheduler_app.health.check import Check, fine, note, unknown
from scheduler_app.store import Store
from scheduler_app.store.processes import ProcessRecord

#: How many queues a sentence names.
NAMED = 5
#: Destinations whose queues are looked at.
MOST_DESTINATIONS = 1_000


def named_queues(store: Store) -> list[str]:
    """The queues beside CALLBACKS that events are in, or that destinations name. Raises a STORE_FAULT."""
    return [*store.outbox.named_queues(), *store.destinations.queues(limit=MOST_DESTINATIONS)]


def unserved(nodes: Sequence[ProcessRecord], named: Sequence[str]) -> dict[str, bool]:
    """For each queue whether no worker takes its messages; `named` are those beside CALLBACKS."""
    served = {queue for node in nodes if node.role == "worker" and node.consuming for queue in node.queues}
    return {queue: queue not in served for queue in (CALLBACKS, *named)}


def check_queues(nodes: Sequence[ProcessRecord] | None, named: Sequence[str] = ()) -> Check:
    """`nodes` is None when MongoDB did not answer."""
    if nodes is None:
        return unknown("queues", "MongoDB does not answer")
    judged = unserved(nodes, named)
    alone = [queue for queue, nobody in judged.items() if nobody]
    if not alone:
        return fine("queues", f"{len(judged)} in use, each with a worker", unserved=[])
    more = f" and {len(alone) - NAMED} more" if len(alone) > NAMED else ""
    return note(
        "queues",
        f"no worker serves {', '.join(alone[:NAMED])}{more}: their events wait",
        f"start one: celery -A scheduler_app worker -Q {alone[0]}, or name another queue in their schedules,"
        " messages and destinations",
        unserved=alone,
    )

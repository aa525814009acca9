"""Finds receivers that cannot keep up, by the workers' reports."""

from collections.abc import Sequence

from scheduler_app.health.check import Check, fine, note, unknown
from scheduler_app.health.fleet import NAMED, named
from scheduler_app.store.processes import ProcessRecord

NAME = "receivers"
#: A receiver that is at its limit for a shorter time only gets a burst.
FULL_SECONDS = 5.0


def check_receivers(nodes: Sequence[ProcessRecord] | None) -> Check:
    """Names the origins that hang and the workers that are nearly full; `nodes` is None when MongoDB did not
    answer. The result is a note at most: callbacks to all other origins go on."""
    if nodes is None:
        return unknown(NAME, "MongoDB does not answer")
    workers = [node for node in nodes if node.role == "worker"]
    origins = _summed(workers)
    full = [
        node for node in workers if node.events_limit is not None and node.events > 0.8 * node.events_limit
    ]
    if not origins and not full:
        return fine(NAME, "none is at its limit")
    told = [
        f"{name} has {load['in_flight']} requests in flight, {load['waiting']} waiting and"
        f" {load['postponed']} postponed"
        for name, load in list(origins.items())[:NAMED]
    ]
    if len(origins) > NAMED:
        told.append(f"{len(origins) - NAMED} more are at their limit")
    if full:
        told.append(f"over 80 % of WORKER_MAX_EVENTS are held by {named(full)}")
    return note(
        NAME,
        "; ".join(told),
        "see why it does not answer; shorten timeout_seconds, pause its schedules, or raise"
        " CALLBACK_ORIGIN_CONCURRENCY; all other callbacks continue",
        origins=list(origins),
    )


def _summed(workers: Sequence[ProcessRecord]) -> dict[str, dict[str, int]]:
    """Returns the load of each origin, summed over all workers, the busiest first."""
    loads: dict[str, dict[str, int]] = {}
    for node in workers:
        for load in node.origins:
            if load.postponed or load.full_seconds >= FULL_SECONDS:
                of_all = loads.setdefault(load.origin, {"in_flight": 0, "waiting": 0, "postponed": 0})
                for name in of_all:
                    of_all[name] += getattr(load, name)
    return dict(sorted(loads.items(), key=_size, reverse=True))


def _size(item: tuple[str, dict[str, int]]) -> int:
    return sum(item[1].values())

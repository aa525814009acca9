"""Work that waits or fails while the machinery runs.

The queue of callbacks by its length, queues that nobody serves, dead letters, failing receivers, schedules
without a future.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from prometheus_client.metrics_core import Metric

from scheduler_app.domain.queues import CALLBACKS
from scheduler_app.health.check import Check, fine, first_few, note, wrong
from scheduler_app.store import Store
from scheduler_app.store.events.events import EventRecord
from scheduler_app.store.events.lists import DeadLetterCause
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


#: One failed attempt is not worth a note: most of them succeed at the second.
FAILED_ATTEMPTS = 2


def check_dead_letters(causes: Sequence[DeadLetterCause], since: datetime) -> Check | None:
    """What ended in error for good since then; `causes` are those of dead letters, older ones too. None for
    nothing."""
    recent = [cause for cause in causes if cause.last is not None and cause.last >= since]
    if not recent:
        return None
    count = sum(cause.count for cause in recent)
    of = "one cause" if len(recent) == 1 else f"{len(recent)} causes"
    return wrong(
        "dead letters",
        f"{_event_count(count)} failed for good, of {of}; some within a day",
        "remove the cause, then send them again or dismiss them on the page of dead letters",
        count=count,
    )


def check_receivers_answer(retrying: Sequence[EventRecord], *, is_whole: bool) -> Check | None:
    """What failed more than once and is tried again; None for nothing. `retrying` are events whose last
    attempt failed, all of them where `is_whole`."""
    failing = [event for event in retrying if event.attempt >= FAILED_ATTEMPTS]
    if not failing:
        return None
    schedules = {event.schedule_id for event in failing} - {""}
    more = "" if is_whole else "at least "
    of = f" of {len(schedules)} schedule{'s' if len(schedules) > 1 else ''}" if schedules else ""
    return wrong(
        "failing receivers",
        f"{more}{_event_count(len(failing))}{of} failed {FAILED_ATTEMPTS} times or more; another attempt"
        " follows",
        "see in their histories what the receivers answer; after the last attempt they are dead letters",
        events=len(failing),
    )


def check_schedules(counts: Mapping[str, int]) -> Check | None:
    """Schedules in the state `error`, which make no events; None without any. `counts` are by state."""
    count = counts.get("error", 0)
    if not count:
        return None
    return wrong(
        "schedules in error",
        f"{count} schedule{'s make' if count > 1 else ' makes'} no events any more",
        "each says why; correct it, then resume it",
        count=count,
    )


def _event_count(count: int) -> str:
    return "1 event" if count == 1 else f"{count:,} events"

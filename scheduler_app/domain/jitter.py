"""Jitter: how much later than its occurrence a callback falls due, the same each time it is asked.

An event's id and run time stay those of its occurrence; only `due_at` carries the jitter.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import blake2b

from scheduler_app.domain.event import Event
from scheduler_app.domain.event_ids import compact

#: A day: more than that is another rule.
MAX_JITTER_SECONDS = 86_400.0
_FRACTIONS = 2**64


def jitter_of(schedule_id: str, run_time: datetime, seconds: float) -> timedelta:
    """The jitter of one occurrence: from zero up to but not including `seconds`, in whole milliseconds.

    A hash of the schedule's id, with its tenant, and of the instant: neither a preview nor an edit of
    something else moves it, and the occurrences of many schedules at one instant spread evenly.
    """
    if not seconds:
        return timedelta()
    drawn = blake2b(f"{schedule_id} {compact(run_time)}".encode(), digest_size=8).digest()
    return timedelta(milliseconds=int.from_bytes(drawn) * round(seconds * 1000) // _FRACTIONS)


def due(schedule_id: str, run_time: datetime, seconds: float) -> datetime:
    """When the callback of an occurrence falls due."""
    return run_time + jitter_of(schedule_id, run_time, seconds)


def jittered(events: Sequence[Event], seconds: float) -> list[Event]:
    """The events of occurrences, due with their jitter."""
    if not seconds:
        return list(events)
    return [each._replace(due_at=due(each.schedule_id, each.run_time, seconds)) for each in events]

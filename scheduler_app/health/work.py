"""Work that fails while the machinery runs: dead letters, failing receivers, schedules without a future."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from scheduler_app.health.check import Check, wrong
from scheduler_app.store.events.lists import Cause
from scheduler_app.store.events.record import EventRecord

#: One failed attempt is no news: most of them succeed at the second.
FAILED_ATTEMPTS = 2


def check_dead_letters(causes: Sequence[Cause], since: datetime) -> Check | None:
    """What ended in error for good since then; `causes` are those of dead letters, older ones too. None for
    nothing."""
    recent = [cause for cause in causes if cause.last is not None and cause.last >= since]
    if not recent:
        return None
    count = sum(cause.count for cause in recent)
    of = "one cause" if len(recent) == 1 else f"{len(recent)} causes"
    return wrong(
        "dead letters",
        f"{_events(count)} failed for good, of {of}; some within a day",
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
        f"{more}{_events(len(failing))}{of} failed {FAILED_ATTEMPTS} times or more; another attempt follows",
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


def _events(count: int) -> str:
    return "1 event" if count == 1 else f"{count:,} events"

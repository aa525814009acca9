"""A pause as MongoDB keeps it within its schedule, and back."""

from typing import Any

from scheduler_app.domain.field_types import fields, instant, optional, text, whole
from scheduler_app.domain.pause import MAX_FAILURES, Pause
from scheduler_app.domain.schedule import Schedule
from scheduler_app.store.mongo import Document


def pause_document(schedule: Schedule) -> Document:
    """The fields of a schedule that are about pauses; None is left out by whoever writes them."""
    pause = schedule.pause
    kept = {} if pause is None else {"reason": pause.reason, "note": pause.note, "until": pause.until}
    return {
        "pause": {key: value for key, value in kept.items() if value is not None} or None,
        "pause_after_failures": schedule.pause_after_failures,
        "failures_since": schedule.failures_since,
    }


def read_pause(value: Any) -> Pause | None:
    """Raises Corrupt."""
    if value is None:
        return None
    row = fields(value, "pause")
    return Pause(
        reason=text(row.get("reason"), "pause.reason"),
        note=optional(text, row.get("note"), "pause.note"),
        until=optional(instant, row.get("until"), "pause.until"),
    )


def read_pause_after(value: Any) -> int | None:
    """Raises Corrupt."""
    return None if value is None else whole(value, "pause_after_failures", least=1, most=MAX_FAILURES)

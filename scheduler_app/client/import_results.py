"""What an import of an iCalendar file gives back."""

from collections.abc import Mapping
from typing import Any

from scheduler_app.client.record import Record, renamed


class ImportedItem(Record):
    """What became of an event, or of another component of the file."""

    component: str
    name: str
    result: str
    """`created`, `changed`, `unchanged`, `over`, `ignored` or `refused`."""
    uid: str | None = None
    reason: str | None = None
    schedules: tuple[Mapping[str, Any], ...] = ()
    """One for each series, as in a BulkResult, with its `recurrence`, `timezone` and `warnings`."""
    removed: tuple[str, ...] = ()
    """Ids of schedules that were deleted."""
    ignored: tuple[str, ...] = ()
    """Parts of it that a callback has no use for."""
    notes: tuple[str, ...] = ()


class ImportResult(Record):
    """How many schedules were created, changed, the same already and deleted; how many items were refused,
    over or ignored; and every item of the file, in `found`."""

    created: int
    changed: int
    unchanged: int
    removed: int
    refused: int
    over: int
    ignored: int
    found: tuple[ImportedItem, ...] = renamed("items")

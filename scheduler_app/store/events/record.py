"""Events with their history, as the store shows them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypedDict

from scheduler_app.domain.event import Kind, State
from scheduler_app.domain.tenants import tenant_of
from scheduler_app.store.collection import Document
from scheduler_app.store.events.fields import sound


class StatusLine(TypedDict, total=False):
    """A line of an event's `status`; a corrupt one lacks the fields that are wrong."""

    time: datetime
    status: str
    message: str


class AttemptLine(TypedDict, total=False):
    """A line of an event's `attempts`; a corrupt one lacks the fields that are wrong."""

    number: int
    started_at: datetime
    duration_ms: float
    lag_ms: float
    status_code: int | None
    error: str | None
    snippet: str
    output: str
    worker: str
    late: bool


class EventRecord(NamedTuple):
    """An event with its history. Where its document is corrupt, what is wrong is left out or replaced."""

    id: str
    schedule_id: str
    """Empty for a message."""
    revision: int
    kind: Kind
    run_time: datetime
    state: State
    attempt: int
    """Attempts made so far."""
    status: Sequence[StatusLine]
    attempts: Sequence[AttemptLine]
    created_at: datetime
    due_at: datetime | None
    """The next attempt; None for a finished event."""
    archived_at: datetime | None
    """When it was finished; None for one that is not."""
    missed: Mapping[str, Any] | None
    """Of a record of missed occurrences: `first`, `last`, `count`; None for an event."""
    corrupt: Mapping[str, str] | None
    """The fields of its document that are wrong, or were, each with the reason."""

    @property
    def tenant(self) -> str:
        """Whose it is; its id says so."""
        return tenant_of(self.id)


def to_record(row: Document) -> EventRecord:
    """The record of a stored event, corrupt or not."""
    shown = sound(row)
    return EventRecord(
        id=str(shown["_id"]),
        schedule_id=shown.get("schedule_id") or "",
        revision=int(shown["revision"]),
        kind=Kind(shown["kind"]),
        run_time=shown["run_time"],
        state=State(shown["state"]),
        attempt=int(shown["attempt"]),
        status=shown["status"],
        attempts=shown["attempts"],
        created_at=shown["created_at"],
        due_at=shown.get("due_at"),
        archived_at=shown.get("archived_at"),
        missed=shown.get("missed"),
        corrupt=shown.get("corrupt"),
    )

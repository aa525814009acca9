"""Reading a stored schedule, and what there is instead of one that cannot be read."""

from dataclasses import dataclass

from scheduler_app.domain.schedule import Schedule
from scheduler_app.store.mongo import Document
from scheduler_app.store.schedule_documents import from_document
from scheduler_app.store.secrets import Envelope


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A stored document that no longer makes a schedule, and why."""

    schedule_id: str
    reason: str


def read(row: Document, envelope: Envelope) -> Schedule | Unreadable:
    """The schedule that a document makes, or why it makes none."""
    try:
        return from_document(row, envelope)
    except Exception as error:  # somebody bent the document by hand: any error may come of it
        return Unreadable(row["_id"], f"{type(error).__name__}: {error}")

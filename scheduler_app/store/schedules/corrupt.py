"""Reads stored schedules; a `CorruptSchedule` stands for one that cannot be read."""

from dataclasses import dataclass

from scheduler_app.domain.field_types import Corrupt, Newer
from scheduler_app.domain.http_action import HttpAction
from scheduler_app.domain.schedule import Schedule
from scheduler_app.store.encryption import SecretBox, UnreadableSecret
from scheduler_app.store.mongo import Document
from scheduler_app.store.schedules.documents import from_document


@dataclass(frozen=True, slots=True)
class CorruptSchedule:
    """A stored schedule that cannot be read, and why."""

    schedule_id: str
    reason: str
    readable_elsewhere: bool = False
    """Nothing is wrong with it: a newer release wrote it, or this process lacks the key to its secrets."""


def read(row: Document, secret_box: SecretBox) -> Schedule | CorruptSchedule:
    """The schedule that a document makes, or why it makes none."""
    try:
        return from_document(row, secret_box)
    except (Newer, UnreadableSecret) as error:
        return CorruptSchedule(row["_id"], str(error), readable_elsewhere=True)
    except Corrupt as error:
        return CorruptSchedule(row["_id"], str(error))
    except Exception as error:  # a document edited by hand may cause any error
        return CorruptSchedule(row["_id"], f"{type(error).__name__}: {error}")


def read_whole(row: Document, secret_box: SecretBox) -> Schedule | CorruptSchedule:
    """The same for showing a schedule: what it sends can be shown, too."""
    found = read(row, secret_box)
    action = found.action if isinstance(found, Schedule) else None
    if isinstance(action, HttpAction) and action.body is not None:
        try:
            action.body.shown()
        except ValueError as error:
            kind = action.body.kind.value
            return CorruptSchedule(row["_id"], f"action.body.data is no {kind}: {error}"[:300])
    return found

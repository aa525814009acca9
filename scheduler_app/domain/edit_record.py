"""An edit of a schedule as it was noted: who changed what, and when."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

MAX_NOTE = 500


@dataclass(frozen=True, slots=True)
class EditRecord:
    """`before` and `after` are fields of the API with their values, masks in place of secrets: of those that
    were changed, and no others."""

    id: str
    schedule_id: str
    at: datetime
    what: str
    """`edited`, `paused`, `resumed`, `deleted`, …"""
    version: int
    """The schedule's, after it."""
    by: str
    """The name of the API key; empty for a key without one, and without keys."""
    note: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    secrets_changed: bool = False
    """Whether values were changed that masks stand for."""
    corrupt: str | None = None
    """Why the stored document cannot be read; the other fields are empty then."""

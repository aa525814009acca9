"""Writes events that are over already: the history of a demonstration, and of tests."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from scheduler_app.domain.event import Event, State
from scheduler_app.store.events.documents import to_document
from scheduler_app.store.events.history import line
from scheduler_app.store.mongo import Document, Mongo
from scheduler_app.store.schedules.last_runs import Run, run_document

AT_ONCE = 2_000


@dataclass(frozen=True, slots=True)
class PastEvent:
    """An event as it ended."""

    event: Event
    state: State
    ended_at: datetime
    message: str
    """Of the last line of its history."""
    attempts: Sequence[dict[str, Any]]
    """As `AttemptLine`, the oldest first."""


class PastEvents:
    def __init__(self, mongo: Mongo) -> None:
        self._events = mongo.collection("events")
        self._schedules = mongo.collection("schedules")

    def insert(self, past: Sequence[PastEvent]) -> None:
        """Stores finished events that are new. Raises BulkWriteError where one exists already."""
        for start in range(0, len(past), AT_ONCE):
            self._events.insert_many(list(map(_document, past[start : start + AT_ONCE])), ordered=False)

    def note_last(self, run: Run) -> None:
        """Notes a schedule's last run, also one from before the schedule was made, which `LastRuns` takes for
        that of an earlier schedule."""
        self._schedules.update_one({"_id": run.schedule_id}, {"$set": {"last_run": run_document(run)}})


def _document(past: PastEvent) -> Document:
    event = past.event
    document = to_document(event, event.run_time, "Expanded")
    del document["due_at"]
    retries = [
        line(attempt["started_at"], State.RETRYING, f"Attempt {attempt['number']} failed")
        for attempt in past.attempts[:-1]
    ]
    return document | {
        "state": past.state.value,
        "attempt": len(past.attempts),
        "attempts": list(past.attempts),
        "status": [*document["status"], *retries, line(past.ended_at, past.state, past.message)],
        "archived_at": past.ended_at,
    }

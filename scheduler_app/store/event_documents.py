"""Events as MongoDB keeps them, and what their transitions have in common."""

from contextlib import suppress
from datetime import datetime
from typing import Any

from pymongo.collection import Collection
from pymongo.errors import AutoReconnect

from scheduler_app.domain.event import TRANSITIONS, Event, Kind, State
from scheduler_app.store.history import appended, line
from scheduler_app.store.mongo import BY_ID, Document

DOCUMENT_VERSION = 1
#: What a claim brings along: all but the history.
CLAIMED = {
    "schedule_id": 1,
    "revision": 1,
    "run_time": 1,
    "due_at": 1,
    "kind": 1,
    "attempt": 1,
    "attempts_before": 1,
    "lost_leases": 1,
    "tenant": 1,
    "hops": 1,
}


def sources(verb: str) -> dict[str, list[str]]:
    """The states that a transition may start from, as a condition."""
    return {"$in": sorted(TRANSITIONS[verb].sources)}


def lease(seconds: float) -> dict[str, Any]:
    """A lease that mongod's own clock ends."""
    return {"$add": ["$$NOW", int(seconds * 1000)]}


def to_document(event: Event, now: datetime, message: str) -> Document:
    """A new event, with the first line of its history."""
    document = {
        "_id": event.id,
        "v": DOCUMENT_VERSION,
        "tenant": event.tenant,
        "schedule_id": event.schedule_id,
        "revision": event.revision,
        "kind": event.kind.value,
        "run_time": event.run_time,
        "state": State.READY_QUEUE.value,
        "due_at": event.due_at,
        "queue": "callbacks",
        "attempt": 0,
        "dispatches": 0,
        "lost_leases": 0,
        "status": [line(now, State.READY_QUEUE, message)],
        "attempts": [],
        "created_at": now,
    }
    if event.hops:
        document["hops"] = event.hops
    return document


def to_event(row: Document) -> Event:
    """What delivery and dispatch need to know of it."""
    return Event(
        id=row["_id"],
        schedule_id=row["schedule_id"],
        revision=row["revision"],
        run_time=row["run_time"],
        due_at=row["due_at"],
        kind=Kind(row["kind"]),
        attempt=row["attempt"],
        attempts_before=row.get("attempts_before", 0),
        lost_leases=row.get("lost_leases", 0),
        tenant=row["tenant"],
        hops=row.get("hops", 0),
    )


def finish(
    events: Collection[Document],
    which: Document,
    state: State,
    now: datetime,
    message: str,
    extra: Document | None = None,
) -> int:
    """Moves what matches `which` into a final state; returns how many."""
    result = events.update_many(
        which,
        [
            {
                "$set": {
                    "state": state,
                    "archived_at": now,
                    "status": appended("status", line(now, state, message)),
                }
                | (extra or {})
            },
            {"$unset": ["due_at", "owner", "lease_until", "dispatcher"]},
        ],
    )
    return result.modified_count


def update_by_token(events: Collection[Document], which: Document, pipeline: list[Document]) -> int | None:
    """An update whose effect is read back by its token: `update_many` is not retryable, so after a broken
    connection only what stands in the collection tells what was won. Returns how many matched, None when
    only that can tell."""
    with suppress(AutoReconnect):
        return events.update_many(which, pipeline, hint=BY_ID).matched_count
    return None

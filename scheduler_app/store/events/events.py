"""Makes events, shows them with their history, and redrives dead letters."""

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple, TypedDict

from scheduler_app.clock import monotonic
from scheduler_app.domain.event import Event
from scheduler_app.domain.ids import tenant_of
from scheduler_app.domain.states import LIVING, Kind, State
from scheduler_app.domain.stored_fields import EARLIEST, LATEST
from scheduler_app.store.bulk_writes import insert_new, value_by_id
from scheduler_app.store.events.documents import (
    CLAIMED,
    appended,
    finish_events,
    line_of_act,
    source_states,
    to_event_document,
    to_events,
    update_by_token,
)
from scheduler_app.store.events.fields import readable_event
from scheduler_app.store.indexes import BY_DUE
from scheduler_app.store.mongo import Document, Documents, Mongo, new_token


class StatusEntry(TypedDict, total=False):
    """A line of an event's `status`; a corrupt one lacks the fields that are wrong."""

    time: datetime
    status: str
    message: str
    by: str
    reason: str
    request_id: str


class AttemptEntry(TypedDict, total=False):
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
    status: Sequence[StatusEntry]
    attempts: Sequence[AttemptEntry]
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
    shown = readable_event(row)
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


#: How long to look for a schedule's last ended events behind those that are unfinished.
LOOK_MS = 2_000


#: So many are counted whenever somebody asks: that takes a few milliseconds.
QUICKLY_COUNTED: Final = 10_000
#: A count of more is kept for so many times as long as it took: however often a process is scraped, its
#: counts are a hundredth of MongoDB's time.
KEPT_FOR: Final = 100


class _KeptCounts(NamedTuple):
    by_state: Mapping[str, int] = {}
    until: float = float("-inf")
    """In monotonic seconds."""


class Events:
    def __init__(self, mongo: Mongo) -> None:
        self._events = mongo.collection("events")
        self._majority = mongo.majority("events")
        self._living = _KeptCounts()
        self._counting = threading.Lock()

    def insert(self, events: Sequence[Event], now: datetime, message: str) -> int:
        """Stores events; those that exist already stay as they are. Returns how many were new. Raises
        BulkWriteError when MongoDB rejects some of them; the others are stored then."""
        if not events:
            return 0
        documents = [to_event_document(event, now, message) for event in events]
        return len(documents) - len(insert_new(self._events, documents))

    def redrive(
        self,
        ids: Sequence[str],
        now: datetime,
        message: str,
        *,
        due: Sequence[datetime] | None = None,
    ) -> list[Event]:
        """Makes the dead letters among these due at once, or each at its own time of `due`, with a
        new budget of attempts. Returns those that were in error, found by the token in `redrive`:
        `update_many` says only how many there were.
        """
        due_at = now if due is None else value_by_id(ids, due)
        token, which = new_token(), {"_id": {"$in": list(ids)}, "state": source_states("redrive")}
        pipeline: list[Document] = [
            {
                "$set": {
                    "state": State.READY_QUEUE,
                    "due_at": due_at,
                    "due_since": due_at,
                    "attempts_before": "$attempt",
                    "lost_leases": 0,
                    "isolated_losses": 0,
                    "dispatches": 0,
                    "redrive": token,
                    "status": appended("status", line_of_act(now, State.READY_QUEUE, message)),
                }
            },
            # Retention removes events by this field, and this event is alive again.
            {"$unset": ["archived_at", "superseded_by", "completion.awaiting", "cause"]},
        ]
        if update_by_token(self._events, which, pipeline) is None:
            # The documents that MongoDB rejected are repaired by now.
            update_by_token(self._events, which, pipeline)
        won = self._majority.find({"_id": {"$in": list(ids)}, "redrive": token}, CLAIMED)
        # One that has ended while this process stood still is no longer due.
        return to_events(self._events, [{"due_at": row.get("due_since"), **row} for row in won])

    def dismiss(self, ids: Sequence[str], now: datetime, message: str) -> int:
        """Ends the dead letters among these for good; returns how many were in error."""
        which = {"_id": {"$in": list(ids)}, "state": source_states("dismiss")}
        return finish_events(self._events, which, State.EXPIRED, now, message)

    def get(self, event_id: str) -> EventRecord | None:
        row = self._events.find_one({"_id": event_id})
        return to_record(row) if row else None

    def records(self, ids: Collection[str]) -> list[EventRecord]:
        """Those of the events that are there."""
        return [to_record(row) for row in self._events.find({"_id": {"$in": list(ids)}}, hint="_id_")]

    def last_ended(
        self, schedule_id: str, *, after: datetime | None, until: datetime, limit: int
    ) -> list[tuple[str, State]]:
        """The ids and states of the schedule's last events that ended in success or in error, newest first by
        their run times, within `after` (exclusive) and `until`. Raises a STORE_FAULT, also where it takes
        too long to find them behind what is unfinished."""
        # A list matches for one of its items, and is not a state.
        ended = {"$in": [State.COMPLETED.value, State.ERROR.value], "$not": {"$type": "array"}}
        times = {"$lte": until} | ({} if after is None else {"$gt": after})
        rows = self._events.find(
            {"schedule_id": schedule_id, "run_time": times, "state": ended},
            {"state": 1},
            hint="schedule_v1",
            max_time_ms=LOOK_MS,
        )
        return [(row["_id"], State(row["state"])) for row in rows.sort("run_time", -1).limit(limit)]

    def any_of_schedule(self, schedule_id: str) -> bool:
        return self._events.find_one({"schedule_id": schedule_id}, {"_id": 1}) is not None

    def living_by_state(self) -> Mapping[str, int]:
        """How many events there are in each living state, by index alone. Many are not counted each time (see
        `KEPT_FOR`): it tells what this process counted then."""
        with self._counting:
            began = monotonic()
            if began >= self._living.until:
                # Not `$exists`, for which mongod would fetch each document.
                ever = {"$gt": EARLIEST}
                counts = {
                    state.value: self._events.count_documents({"state": state, "due_at": ever}, hint=BY_DUE)
                    for state in sorted(LIVING)
                }
                took = monotonic() - began if sum(counts.values()) > QUICKLY_COUNTED else 0.0
                self._living = _KeptCounts(counts, began + KEPT_FOR * took)
            return self._living.by_state

    def dead_letters(self, tenant: str, *, most: int) -> int:
        """How many of the tenant's events are in error; no more than `most` are counted."""
        which = {"state": State.ERROR.value, "tenant": tenant}
        return self._events.count_documents(which, hint="dead_v2", limit=most)

    def oldest_due(self) -> datetime | None:
        """When the event that has waited for longest was due, in MongoDB or in the broker; None if none
        waits."""
        waiting = {"state": source_states("cancel"), "due_at": {"$gte": EARLIEST, "$lt": LATEST}}
        row = self._events.find_one(waiting, {"due_at": 1}, sort=[("due_at", 1)])
        # An array of dates is found like a date, until an inspection sets its event aside.
        return row["due_at"] if row and isinstance(row["due_at"], datetime) else None


def tenants_with_events(events: Documents) -> Iterator[str]:
    """The tenants that have events, by one step in the index for each."""
    after: str | None = ""
    while after is not None:
        # The index's own keys, in its order: a document whose tenant is an array does not stop this.
        above = events.find_one({"tenant": {"$gt": after}}, hint="list_v1", return_key=True)
        after = above["tenant"] if above else None
        if after is not None:
            yield after

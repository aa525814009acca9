"""Makes events, shows them, and redrives dead letters."""

from collections.abc import Sequence
from datetime import UTC, datetime

from pymongo.errors import BulkWriteError

from scheduler_app.domain.event import LIVING, Event, State
from scheduler_app.domain.field_types import EARLIEST, LATEST
from scheduler_app.domain.tenants import tenant_of
from scheduler_app.store.documents.per_document_update import own_value
from scheduler_app.store.events.documents import (
    CLAIMED,
    finish,
    sources,
    to_document,
    to_events,
    update_by_token,
)
from scheduler_app.store.events.history import appended, line
from scheduler_app.store.events.record import EventRecord, to_record
from scheduler_app.store.faults import only_duplicates
from scheduler_app.store.mongo import Document, Mongo, new_token

#: How long to look for a schedule's last ended events behind those that are unfinished.
LOOK_MS = 2_000


class Events:
    def __init__(self, mongo: Mongo) -> None:
        self._events = mongo.collection("events")
        self._majority = mongo.majority("events")

    def insert(self, events: Sequence[Event], now: datetime, message: str) -> int:
        """Stores events; those that exist already stay as they are. Returns how many were new. Raises
        BulkWriteError when MongoDB rejects some of them; the others are stored then."""
        if not events:
            return 0
        documents = [to_document(event, now, message) for event in events]
        try:
            return len(self._events.insert_many(documents, ordered=False).inserted_ids)
        except BulkWriteError as error:
            if not only_duplicates(error):
                raise
            return int(error.details["nInserted"])

    def redrive(
        self,
        ids: Sequence[str],
        now: datetime,
        message: str,
        *,
        tenant: str,
        due: Sequence[datetime] | None = None,
    ) -> list[Event]:
        """Makes the tenant's dead letters among these due at once, or each at its own time of `due`, with a
        new budget of attempts. Returns those that were in error, found by the token in `redrive`:
        `update_many` says only how many there were.
        """
        own = [each for each in ids if tenant_of(each) == tenant]
        due_at = now if due is None else own_value(ids, due)
        token, which = new_token(), {"_id": {"$in": own}, "state": sources("redrive")}
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
                    "status": appended("status", line(now, State.READY_QUEUE, message)),
                }
            },
            # Retention removes events by this field, and this event is alive again.
            {"$unset": ["archived_at", "superseded_by", "completion.awaiting"]},
        ]
        if update_by_token(self._events, which, pipeline) is None:
            # The documents that MongoDB rejected are repaired by now.
            update_by_token(self._events, which, pipeline)
        won = self._majority.find({"_id": {"$in": own}, "redrive": token}, CLAIMED)
        # One that has ended while this process stood still is no longer due.
        return to_events(self._events, [{"due_at": row.get("due_since"), **row} for row in won])

    def dismiss(self, ids: Sequence[str], now: datetime, message: str, *, tenant: str) -> int:
        """Ends the tenant's dead letters among these for good; returns how many were in error."""
        own = [each for each in ids if tenant_of(each) == tenant]
        which = {"_id": {"$in": own}, "state": sources("dismiss")}
        return finish(self._events, which, State.EXPIRED, now, message)

    def get(self, event_id: str, *, tenant: str) -> EventRecord | None:
        """The tenant's event of that id."""
        if tenant_of(event_id) != tenant:
            return None
        row = self._events.find_one({"_id": event_id})
        return to_record(row) if row else None

    def last_ended(
        self, schedule_id: str, *, after: datetime | None, until: datetime, limit: int
    ) -> list[tuple[str, State]]:
        """The ids and states of the schedule's last events that ended in success or in error, newest first by
        their run times, within `after` (exclusive) and `until`. Raises a STORE_FAULT, also where it takes
        too long to find them behind what is unfinished."""
        # A list matches for one of its items, and is no state.
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

    def living_by_state(self) -> dict[str, int]:
        """How many events there are in each living state, by index alone."""
        # Not `$exists`, for which mongod would fetch each document.
        ever = {"$gt": datetime.fromtimestamp(0, UTC)}
        return {
            state: self._events.count_documents({"state": state, "due_at": ever}, hint="due_v2")
            for state in sorted(LIVING)
        }

    def dead_letters(self, *, tenant: str, most: int) -> int:
        """How many of the tenant's events are in error; no more than `most` are counted."""
        which = {"state": State.ERROR.value, "tenant": tenant}
        return self._events.count_documents(which, hint="dead_v2", limit=most)

    def oldest_due(self) -> datetime | None:
        """When the event that has waited for longest was due, in MongoDB or in the broker; None if none
        waits."""
        waiting = {"state": sources("cancel"), "due_at": {"$gte": EARLIEST, "$lt": LATEST}}
        row = self._events.find_one(waiting, {"due_at": 1}, sort=[("due_at", 1)])
        # An array of dates is found like a date, until an inspection sets its event aside.
        return row["due_at"] if row and isinstance(row["due_at"], datetime) else None

"""Dispatch's transitions: waiting events are taken, and marked once their message is out."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from scheduler_app.domain.event import State
from scheduler_app.store.event_documents import lease, sources, update_and_forget
from scheduler_app.store.history import appended, line
from scheduler_app.store.mongo import BY_ID, Document, Mongo, new_token


class Due(NamedTuple):
    """A waiting event: all that dispatch needs to know of it. The oldest is the least."""

    due_at: datetime
    id: str


class Outbox:
    def __init__(self, mongo: Mongo) -> None:
        self._events = mongo.collection("events")
        self._settled = mongo.majority("events")

    def due(self, until: datetime, *, limit: int) -> list[Due]:
        """Waiting events due up to `until` that nobody is dispatching, oldest first."""
        rows = self._events.find(_free(until), {"due_at": 1}).sort("due_at", 1).limit(limit)
        return [Due(row["due_at"], row["_id"]) for row in rows]

    def take(self, events: Sequence[Due], until: datetime, *, lease_seconds: float) -> tuple[str, list[Due]]:
        """Takes those that still wait and are due up to `until`, by a token in `dispatcher`.

        Returns the token and what was won, oldest first.
        """
        token, ids = new_token(), [event.id for event in events]
        taken = update_and_forget(
            self._events,
            {**_free(until), "_id": {"$in": ids}},
            [{"$set": {"dispatcher": {"token": token, "until": lease(lease_seconds)}}}],
        )
        # All of them, which is the rule: what was read of them before is good enough for an eta.
        if taken == len(events):
            return token, sorted(events)
        won = self._settled.find({"_id": {"$in": ids}, "dispatcher.token": token}, {"due_at": 1})
        return token, sorted(Due(row["due_at"], row["_id"]) for row in won)

    def mark(self, ids: Sequence[str], token: str, now: datetime) -> int:
        """The message is out; written second, for the other order could lose it."""
        result = self._events.update_many(
            {"_id": {"$in": list(ids)}, "dispatcher.token": token, "state": sources("mark_dispatched")},
            [
                {
                    "$set": {
                        "state": State.WORKER_QUEUE,
                        "dispatched_at": now,
                        "dispatches": {"$add": [{"$ifNull": ["$dispatches", 0]}, 1]},
                        "status": appended(
                            "status", line(now, State.WORKER_QUEUE, "Event queued for a worker")
                        ),
                    }
                },
                {"$unset": ["dispatcher"]},
            ],
            hint=BY_ID,
        )
        return result.modified_count


def _free(until: datetime) -> Document:
    return {
        "state": sources("mark_dispatched"),
        "due_at": {"$lte": until},
        "$or": [
            {"dispatcher": {"$exists": False}},
            {"$expr": {"$lte": ["$dispatcher.until", "$$NOW"]}},
        ],
    }

"""Dispatch's transitions: waiting events are taken, and marked once their message is out."""

from collections.abc import Sequence
from datetime import datetime

from scheduler_app.domain.event import Event, State
from scheduler_app.store.event_documents import CLAIMED, lease, sources, to_event, update_and_forget
from scheduler_app.store.history import appended, line
from scheduler_app.store.mongo import Mongo, new_token


class Outbox:
    def __init__(self, mongo: Mongo) -> None:
        self._events = mongo.collection("events")
        self._settled = mongo.majority("events")

    def take(
        self, until: datetime, *, limit: int, lease_seconds: float, ids: Sequence[str] | None = None
    ) -> tuple[str, list[Event]]:
        """Takes waiting events due up to `until`, oldest first, by a token in `dispatcher`.

        `ids` narrows it to events just made. Returns the token and what was won.
        """
        free = {
            "state": sources("mark_dispatched"),
            "due_at": {"$lte": until},
            "$or": [
                {"dispatcher": {"$exists": False}},
                {"$expr": {"$lte": ["$dispatcher.until", "$$NOW"]}},
            ],
        }
        token = new_token()
        if ids is None:
            rows = self._events.find(free, {"_id": 1}).sort("due_at", 1).limit(limit)
            found = [row["_id"] for row in rows]
        else:
            found = list(ids)[:limit]
        if not found:
            return token, []
        update_and_forget(
            self._events,
            {**free, "_id": {"$in": found}},
            [{"$set": {"dispatcher": {"token": token, "until": lease(lease_seconds)}}}],
        )
        won = self._settled.find({"_id": {"$in": found}, "dispatcher.token": token}, CLAIMED)
        return token, sorted(map(to_event, won), key=lambda event: (event.due_at, event.id))

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
        )
        return result.modified_count

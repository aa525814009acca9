"""Events that are given up because they are too late."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from pymongo import DESCENDING

from scheduler_app.domain.event import Event, Kind, State
from scheduler_app.store.documents.per_document_update import own_value
from scheduler_app.store.events.documents import WHILE_CLAIMED, sources
from scheduler_app.store.events.history import appended, line
from scheduler_app.store.events.set_aside import update_sound
from scheduler_app.store.mongo import BY_ID, Mongo


class Expiration(NamedTuple):
    """A claimed event that is too late, and why, for its history."""

    event_id: str
    token: str
    message: str


class Expirations:
    def __init__(self, mongo: Mongo) -> None:
        self._events = mongo.collection("events")
        self._majority = mongo.majority("events")

    def expire_claimed(self, expirations: Sequence[Expiration], now: datetime) -> int:
        """Expires claimed events by one update; returns how many at least. What a worker that dies before
        leaves is judged again after its lease."""
        ids = [each.event_id for each in expirations]
        tokens = own_value(ids, [each.token for each in expirations])
        lines = own_value(ids, [line(now, State.EXPIRED, each.message) for each in expirations])
        written = update_sound(
            self._events,
            {
                "_id": {"$in": ids},
                "state": sources("expire_claimed"),
                "$expr": {"$eq": ["$owner", tokens]},
            },
            [
                {"$set": {"row": lines}},
                {
                    "$set": {
                        "state": State.EXPIRED,
                        "archived_at": now,
                        "status": appended("status", "$row"),
                    }
                },
                {"$unset": ["row", "due_at", "owner", "lease_until", "dispatcher", *WHILE_CLAIMED]},
            ],
            hint=BY_ID,
        )
        return written.modified

    def newest_due(self, event: Event, now: datetime) -> datetime | None:
        """The run time of its schedule's newest occurrence that is due and was not withdrawn, of whatever
        revision; None if that is the event's own."""
        newest = self._majority.find_one(
            {
                "schedule_id": event.schedule_id,
                "run_time": {"$gt": event.run_time, "$lte": now},
                "kind": Kind.SCHEDULED,
                "state": {"$ne": State.CANCELLED},
            },
            {"run_time": 1},
            sort=[("run_time", DESCENDING), ("_id", DESCENDING)],
            hint="schedule_v1",
        )
        return newest["run_time"] if newest else None

"""Events that a kill switch holds: out of dispatch's way until it is off.

A held event has `held`, the key of its switch, and is due only in a day: nothing reads it meanwhile. When the
switch is off, beats give each its own time back.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from scheduler_app.domain.event import State
from scheduler_app.domain.field_types import wrong
from scheduler_app.store.events.documents import READABLE, sources
from scheduler_app.store.events.history import appended, line
from scheduler_app.store.events.set_aside import set_aside, update_sound
from scheduler_app.store.indexes import HELD
from scheduler_app.store.mongo import BY_ID, Document, Mongo

#: A held event is judged again after this time, unless it is released before.
HELD_FOR: Final = timedelta(days=1)
#: Keys that one look brings.
_MOST_KEYS: Final = 200


class Holding:
    def __init__(self, mongo: Mongo) -> None:
        self._events = mongo.collection("events")

    def hold(self, ids: Sequence[str], key: str, until: datetime, now: datetime, message: str) -> int:
        """Holds waiting events that are due up to `until`; returns how many."""
        which: Document = {"_id": {"$in": list(ids)}, "state": sources("hold"), "due_at": {"$lte": until}}
        held = {
            "state": State.READY_QUEUE,
            "held": {"$literal": key},
            "postponed_from": {"$ifNull": ["$postponed_from", "$due_at"]},
            "due_at": now + HELD_FOR,
            "status": appended("status", line(now, State.READY_QUEUE, message)),
        }
        return update_sound(self._events, which | READABLE, [{"$set": held}], hint=BY_ID).modified

    def keys(self) -> list[str]:
        """The switches that events are held by. Each costs a look into an index that has nothing else."""
        keys: list[str] = []
        last = ""
        for _ in range(_MOST_KEYS):
            row = self._events.find_one(
                {"held": {"$gt": last}, "due_at": {"$exists": True}},
                {"held": 1},
                sort=[("held", 1)],
                hint=HELD,
            )
            if row is None:
                break
            if not isinstance(row["held"], str):  # a list is found by each of its items
                if not set_aside(self._events, row["_id"], wrong("held", row["held"], "text")):
                    break
                continue
            last = row["held"]
            keys.append(last)
        return keys

    def count(self, key: str, *, most: int) -> int:
        """How many events it holds; no more than `most` are counted."""
        which = {"held": key, "due_at": {"$exists": True}}
        return self._events.count_documents(which, hint=HELD, limit=most)

    def release(self, key: str, now: datetime, *, limit: int) -> int:
        """Gives up to `limit` events their own times back; returns how many it found."""
        which: Document = {"held": key, "due_at": {"$exists": True}}
        rows = self._events.find(which, {"_id": 1}, hint=HELD).limit(limit).batch_size(limit)
        ids = [row["_id"] for row in rows]
        if ids:
            released = {
                "due_at": {"$ifNull": ["$postponed_from", "$due_at"]},
                "status": appended("status", line(now, State.READY_QUEUE, "The kill switch is off")),
            }
            waits = {"state": sources("release")}
            update_sound(
                self._events,
                which | waits | {"_id": {"$in": ids}},
                [{"$set": released}, {"$unset": ["held", "postponed_from"]}],
                hint=BY_ID,
            )
            # What moved on otherwise is held no more.
            others = {"state": {"$ne": State.READY_QUEUE.value}}
            update_sound(
                self._events, which | others | {"_id": {"$in": ids}}, [{"$unset": ["held"]}], hint=BY_ID
            )
        return len(ids)

"""Transitions of events that fall due within a blackout, before a message is sent for them."""

from collections.abc import Sequence
from datetime import datetime

from scheduler_app.domain.event import Kind, State
from scheduler_app.store.events.documents import READABLE, finish, sources
from scheduler_app.store.events.history import appended, line
from scheduler_app.store.events.set_aside import update_sound
from scheduler_app.store.mongo import BY_ID, Document, Mongo


class BlackedOut:
    def __init__(self, mongo: Mongo) -> None:
        self._events = mongo.collection("events")

    def skip(self, ids: Sequence[str], since: datetime, until: datetime, now: datetime, message: str) -> int:
        """Ends those occurrences whose run times lie from `since` on, due up to `until`, and that nothing was
        tried for. A message, and a call by hand, is never skipped."""
        which: Document = {
            "_id": {"$in": list(ids)},
            "state": sources("skip_waiting"),
            "due_at": {"$lte": until},
            "run_time": {"$gte": since},
            "kind": Kind.SCHEDULED.value,
            "attempt": 0,
        }
        return finish(self._events, which | READABLE, State.SKIPPED, now, message)

    def postpone(self, ids: Sequence[str], to: datetime, until: datetime, now: datetime, message: str) -> int:
        """Gives waiting events that are due up to `until` another time; it is theirs from then on, as if they
        had been made for it."""
        which: Document = {
            "_id": {"$in": list(ids)},
            "state": sources("put_off"),
            "due_at": {"$lte": until},
        }
        later = {
            "state": State.READY_QUEUE,
            "due_at": to,
            "status": appended("status", line(now, State.READY_QUEUE, message)),
        }
        change: list[Document] = [{"$set": later}, {"$unset": ["postponed_from"]}]
        return update_sound(self._events, which | READABLE, change, hint=BY_ID).modified

"""Cancellations: events that an edit, a pause, a deletion or a person withdraws."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from pymongo import DESCENDING

from scheduler_app.domain.event import Kind, State
from scheduler_app.domain.message_ids import is_message
from scheduler_app.domain.tenants import tenant_of
from scheduler_app.store.events.documents import finish, sources
from scheduler_app.store.events.message_documents import WIPED
from scheduler_app.store.mongo import Document, Mongo

#: Events that one command cancels: a long backlog would take longer than a request waits for an answer.
PAGE = 2_000


@dataclass(frozen=True, slots=True)
class PastCut:
    """What became of older revisions' events past a cut."""

    running: bool
    last_sent: datetime | None


class Cancellations:
    def __init__(self, mongo: Mongo) -> None:
        self._events = mongo.collection("events")
        self._majority = mongo.majority("events")

    def cancel_past_cut(
        self, schedule_id: str, revision: int, cut: datetime, now: datetime, message: str, *, tenant: str
    ) -> int:
        """Cancels the events of older revisions after `cut`, except those that a worker has claimed, or
        had.

        An event whose lease was lost may have been sent, so it stays, with its own key. If it were
        cancelled and counted as sent, its instant would be lost where it was not sent. If it were cancelled
        and not counted, the new revision would send that instant again under another key.
        """
        if tenant_of(schedule_id) != tenant:
            return 0
        return self._cancel_past_cut(_older(schedule_id, revision, cut), now, message)

    def cancel_these_past_cut(self, event_ids: Sequence[str], now: datetime, message: str) -> int:
        """The same for events, of any schedules, that are known to be older revisions' after their cuts."""
        return self._cancel_past_cut({"_id": {"$in": list(event_ids)}}, now, message) if event_ids else 0

    def _cancel_past_cut(self, which: Document, now: datetime, message: str) -> int:
        cancelled = which | {"state": sources("cancel"), "$nor": [{"lost_leases": {"$gt": 0}}]}
        return finish(self._events, cancelled, State.CANCELLED, now, message)

    def cancel_all(self, schedule_id: str, revision: int, now: datetime, message: str, *, tenant: str) -> int:
        """Cancels all that a deleted schedule has not sent, unless a worker has claimed it (the worker
        cancels it then).

        `revision` is its last one: the events of later ones belong to a new schedule of the same id.
        """
        if tenant_of(schedule_id) != tenant:
            return 0
        which = {"schedule_id": schedule_id, "state": sources("cancel"), "revision": {"$lte": revision}}
        cancelled = 0
        rows = (row["_id"] for row in self._events.find(which, {"_id": 1}))
        while page := list(islice(rows, PAGE)):
            cancelled += finish(self._events, which | {"_id": {"$in": page}}, State.CANCELLED, now, message)
        return cancelled

    def look_past_cut(self, schedule_id: str, revision: int, cut: datetime, *, tenant: str) -> PastCut:
        """What older revisions' events after `cut` came to, before the new one begins."""
        if tenant_of(schedule_id) != tenant:
            return PastCut(running=False, last_sent=None)
        older = _older(schedule_id, revision, cut)
        running = self._majority.find_one(older | {"state": State.RUNNING}, {"_id": 1})
        sent = self._majority.find_one(
            older
            | {
                "$or": [
                    {"attempt": {"$gt": 0}},
                    {"lost_leases": {"$gt": 0}},
                    {"state": {"$in": [State.COMPLETED, State.ERROR]}},
                ]
            },
            {"run_time": 1},
            sort=[("run_time", DESCENDING), ("_id", DESCENDING)],
        )
        return PastCut(running=running is not None, last_sent=sent["run_time"] if sent else None)

    def cancel(self, event_id: str, now: datetime, message: str, *, tenant: str) -> bool:
        """Cancels one event; False when it is claimed or finished, or the tenant has none of that id. One
        whose receiver has not said yet how it went is claimed by nobody. Of a message nothing secret is left.
        """
        if tenant_of(event_id) != tenant:
            return False
        which = {"_id": event_id, "state": sources("cancel")}
        wiped = WIPED if is_message(event_id) else None
        if finish(self._events, which, State.CANCELLED, now, message, wiped) == 1:
            return True
        awaited = {"_id": event_id, "state": sources("cancel_awaited"), "completion.awaiting": True}
        forgotten = {"completion": {"awaiting": "$$REMOVE"}}
        return finish(self._events, awaited, State.CANCELLED, now, message, forgotten) == 1


def _older(schedule_id: str, revision: int, cut: datetime) -> Document:
    return {
        "schedule_id": schedule_id,
        "run_time": {"$gt": cut},
        "revision": {"$lt": revision},
        "kind": Kind.SCHEDULED,
    }

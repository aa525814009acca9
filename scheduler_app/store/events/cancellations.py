"""Cancellations: events that an edit, a pause, a deletion or a person withdraws, and requests to cancel
events that workers hold. Only the worker knows whether a held event's request began.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from pymongo import DESCENDING

from scheduler_app.domain.ids import is_message
from scheduler_app.domain.states import Kind, State
from scheduler_app.domain.stored_fields import Corrupt, text
from scheduler_app.store.events.documents import finish_events, source_states
from scheduler_app.store.events.messages import WIPED
from scheduler_app.store.mongo import BY_ID, Document, Mongo, lease, lease_over

#: Events that one command cancels: a long backlog would take longer than a request waits for an answer.
PAGE = 2_000
WITHDRAWN_BY_CHANGE = "Withdrawn: the schedule was changed"
WITHDRAWN_BY_DELETION = "Withdrawn: the schedule was deleted"


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
        self, schedule_id: str, revision: int, cut: datetime, now: datetime, message: str
    ) -> int:
        """Cancels the events of older revisions after `cut`, except those that a worker has claimed, or
        had.

        An event whose lease was lost may have been sent, so it stays, with its own key. If it were
        cancelled and counted as sent, its instant would be lost where it was not sent. If it were cancelled
        and not counted, the new revision would send that instant again under another key.
        """
        return self._cancel_past_cut(_older(schedule_id, revision, cut), now, message)

    def cancel_these_past_cut(self, event_ids: Sequence[str], now: datetime, message: str) -> int:
        """The same for events, of any schedules, that are known to be older revisions' after their cuts."""
        return self._cancel_past_cut({"_id": {"$in": list(event_ids)}}, now, message) if event_ids else 0

    def _cancel_past_cut(self, which: Document, now: datetime, message: str) -> int:
        cancelled = which | {"state": source_states("cancel"), "$nor": [{"lost_leases": {"$gt": 0}}]}
        return finish_events(self._events, cancelled, State.CANCELLED, now, message)

    def cancel_all(self, schedule_id: str, revision: int, now: datetime, message: str) -> int:
        """Cancels all that a deleted schedule has not sent, unless a worker has claimed it (the worker
        cancels it then).

        `revision` is its last one: the events of later ones belong to a new schedule of the same id.
        """
        which = {"schedule_id": schedule_id, "state": source_states("cancel"), "revision": {"$lte": revision}}
        cancelled = 0
        rows = (row["_id"] for row in self._events.find(which, {"_id": 1}))
        while page := list(islice(rows, PAGE)):
            cancelled += finish_events(
                self._events, which | {"_id": {"$in": page}}, State.CANCELLED, now, message
            )
        return cancelled

    def look_past_cut(self, schedule_id: str, revision: int, cut: datetime) -> PastCut:
        """What older revisions' events after `cut` came to, before the new one begins."""
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

    def cancel(self, event_id: str, now: datetime, message: str) -> bool:
        """Cancels one event; False when it is claimed or finished, or there is none of that id. One
        whose receiver has not said yet how it went is claimed by nobody. Of a message nothing secret is left.
        """
        which = {"_id": event_id, "state": source_states("cancel")}
        wiped = WIPED if is_message(event_id) else None
        if finish_events(self._events, which, State.CANCELLED, now, message, wiped) == 1:
            return True
        awaited = {"_id": event_id, "state": source_states("cancel_awaited"), "completion.awaiting": True}
        forgotten = {"completion": {"awaiting": "$$REMOVE"}}
        return finish_events(self._events, awaited, State.CANCELLED, now, message, forgotten) == 1


def _older(schedule_id: str, revision: int, cut: datetime) -> Document:
    return {
        "schedule_id": schedule_id,
        "run_time": {"$gt": cut},
        "revision": {"$lt": revision},
        "kind": Kind.SCHEDULED,
    }


#: How long a request stands if the process that made it dies.
STANDS_SECONDS = 30.0
#: How many are obeyed at once.
MAX_REQUESTS = 1_000


class CancelRequests:
    def __init__(self, mongo: Mongo) -> None:
        self._requests = mongo.collection("cancel_requests")

    def put(self, event_id: str, message: str) -> None:
        """Asks the worker that holds the event to cancel it; `message` is for its history."""
        asked: Document = {"v": 1, "text": message, "until": lease(STANDS_SECONDS)}
        self._requests.update_one({"_id": event_id}, [{"$set": asked}], upsert=True)

    def stands(self, event_id: str) -> bool:
        """Whether somebody asks for it and no worker has refused it."""
        return self._requests.find_one({"_id": event_id}, {"_id": 1}) is not None

    def texts(self) -> dict[str, str]:
        """What is asked for: the events' ids and the messages, `MAX_REQUESTS` of them at most. Those of
        processes that died are left out."""
        found: dict[str, str] = {}
        standing = {"$nor": [lease_over("until")]}
        for row in self._requests.find(standing, limit=MAX_REQUESTS, hint=BY_ID):
            try:
                found[row["_id"]] = text(row.get("text"), "text")
            except Corrupt:
                continue  # its process gives it up after a moment
        return found

    def remove(self, event_ids: Collection[str]) -> None:
        """Removes these, and those whose processes died."""
        gone: list[Document] = [{"_id": {"$in": list(event_ids)}}, lease_over("until")]
        self._requests.delete_many({"$or": gone}, hint=BY_ID)

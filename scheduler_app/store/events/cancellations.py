"""What an edit, a pause, a deletion or a person withdraws."""

from dataclasses import dataclass
from datetime import datetime

from pymongo import DESCENDING

from scheduler_app.domain.event import Kind, State
from scheduler_app.store.events.documents import finish, sources
from scheduler_app.store.mongo import Document, Mongo


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
        """Cancels what older revisions still hold after `cut`, unless a worker has it or had it.

        An event whose lease was lost may have been sent: it stays owed, under its own key. Were it cancelled
        and counted as sent, its instant would be lost when it was not; were it not counted, the new revision
        would send that instant under another key.
        """
        return finish(
            self._events,
            _older(schedule_id, revision, cut)
            | {"state": sources("cancel"), "$nor": [{"lost_leases": {"$gt": 0}}]},
            State.CANCELLED,
            now,
            message,
        )

    def cancel_all(self, schedule_id: str, revision: int, now: datetime, message: str) -> int:
        """Cancels all that a deleted schedule has not sent, unless a worker has it (which then voids it).

        `revision` is its last one: the events of later ones belong to a new schedule of the same id.
        """
        return finish(
            self._events,
            {"schedule_id": schedule_id, "state": sources("cancel"), "revision": {"$lte": revision}},
            State.CANCELLED,
            now,
            message,
        )

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
        """Withdraws one event; False when it is claimed or finished, or there is none."""
        which = {"_id": event_id, "state": sources("cancel")}
        return finish(self._events, which, State.CANCELLED, now, message) == 1


def _older(schedule_id: str, revision: int, cut: datetime) -> Document:
    return {
        "schedule_id": schedule_id,
        "run_time": {"$gt": cut},
        "revision": {"$lt": revision},
        "kind": Kind.SCHEDULED,
    }

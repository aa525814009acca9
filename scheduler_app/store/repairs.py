"""Recovery's transitions: what a crash left is put right."""

from datetime import datetime, timedelta

from scheduler_app.domain.event import MAX_LOST_LEASES, SUSPECT_AFTER, State
from scheduler_app.domain.lane import FRESH_FOR
from scheduler_app.store.event_documents import finish, sources
from scheduler_app.store.history import appended, line
from scheduler_app.store.mongo import Document, Mongo

MAX_GRACE_DOUBLINGS = 6


class Repairs:
    def __init__(self, mongo: Mongo) -> None:
        self._events = mongo.collection("events")

    def messages(
        self, now: datetime, *, grace_seconds: float, limit: int, sent_late: bool | None = None
    ) -> list[str]:
        """Puts back events whose message must be lost: overdue since they were dispatched, beyond a grace
        that doubles with each dispatch that led to nothing. `sent_late`: only those that were, or were not,
        late when they were dispatched. Returns their ids."""
        # What led to an attempt, or to a lease, was no lost message: a retry's grace begins anew.
        heard_of = {"$add": [1, *({"$ifNull": [field, 0]} for field in ("$attempt", "$lost_leases"))]}
        unheard_of = {"$subtract": [{"$ifNull": ["$dispatches", 1]}, heard_of]}
        doublings = {"$min": [{"$max": [unheard_of, 0]}, MAX_GRACE_DOUBLINGS]}
        grace_ms = {"$multiply": [grace_seconds * 1000, {"$pow": [2, doublings]}]}
        lost: Document = {
            "state": sources("recover_message"),
            "due_at": {"$lt": now - timedelta(seconds=grace_seconds)},
            "$expr": {"$lt": [{"$add": [{"$max": ["$due_at", "$dispatched_at"]}, grace_ms]}, now]},
        }
        if sent_late is not None:
            lost["$and"] = [{"$expr": {"$eq": [_was_sent_late(), sent_late]}}]
        found = [row["_id"] for row in self._events.find(lost, {"_id": 1}).sort("due_at", 1).limit(limit)]
        if found:
            self._events.update_many(
                {**lost, "_id": {"$in": found}},
                [
                    {
                        "$set": {
                            "state": State.READY_QUEUE,
                            "status": appended(
                                "status", line(now, State.READY_QUEUE, "Recovered: its message was lost")
                            ),
                        }
                    }
                ],
            )
        return found

    def workers(self, now: datetime, *, delay_seconds: float, limit: int) -> tuple[list[str], list[str]]:
        """Ends leases that ran out: (to be tried again, set aside). `owner` stays, so that a worker that was
        only slow can still record; a lost lease is no attempt."""
        dead: Document = {
            "state": sources("recover_worker"),
            "due_at": {"$exists": True},
            "$expr": {"$lt": ["$lease_until", "$$NOW"]},
        }
        rows = list(self._events.find(dead, {"lost_leases": 1}).limit(limit))
        spent = [row["_id"] for row in rows if row.get("lost_leases", 0) + 1 >= MAX_LOST_LEASES]
        again = [row["_id"] for row in rows if row.get("lost_leases", 0) + 1 < MAX_LOST_LEASES]
        one_more = {"lost_leases": {"$add": [{"$ifNull": ["$lost_leases", 0]}, 1]}}
        if again:
            message = "Recovered: its worker did not report before the lease was over"
            # Another beat may have ended this lease, and a worker have lost the next one, since it was read.
            few = {"$not": {"$gte": MAX_LOST_LEASES - 1}}
            self._events.update_many(
                {**dead, "_id": {"$in": again}, "lost_leases": few},
                [
                    {
                        "$set": {
                            "state": State.RETRYING,
                            "due_at": now + timedelta(seconds=delay_seconds),
                            "status": appended("status", line(now, State.RETRYING, message)),
                        }
                        | one_more
                    },
                    {"$unset": ["lease_until"]},
                ],
            )
        if spent:
            finish(
                self._events,
                {**dead, "_id": {"$in": spent}},
                State.ERROR,
                now,
                f"Set aside: {MAX_LOST_LEASES} workers did not report on it",
                one_more,
            )
        return again, spent


def _was_sent_late() -> Document:
    """Whether an event's message went by the late lane, as `dispatch.batches.lane_of` judged it then."""
    became_late = {"$add": ["$due_at", FRESH_FOR // timedelta(milliseconds=1)]}
    return {"$or": [{"$lte": [became_late, "$dispatched_at"]}, {"$gte": ["$lost_leases", SUSPECT_AFTER]}]}

"""Recovery's transitions: what a crash left is put right."""

from datetime import datetime, timedelta

from scheduler_app.domain.event import MAX_LOST_LEASES, State
from scheduler_app.store.event_documents import finish, sources
from scheduler_app.store.history import appended, line
from scheduler_app.store.mongo import Document, Mongo

MAX_GRACE_DOUBLINGS = 6


class Repairs:
    def __init__(self, mongo: Mongo) -> None:
        self._events = mongo.collection("events")

    def messages(self, now: datetime, *, grace_seconds: float, limit: int) -> list[str]:
        """Puts back events whose message must be lost: overdue since they were dispatched, beyond a grace
        that doubles with each dispatch that led to nothing. Returns their ids."""
        # What led to an attempt, or to a lease, was no lost message: a retry's grace begins anew.
        heard_of = {"$add": [1, *({"$ifNull": [field, 0]} for field in ("$attempt", "$lost_leases"))]}
        unheard_of = {"$subtract": [{"$ifNull": ["$dispatches", 1]}, heard_of]}
        doublings = {"$min": [{"$max": [unheard_of, 0]}, MAX_GRACE_DOUBLINGS]}
        grace_ms = {"$multiply": [grace_seconds * 1000, {"$pow": [2, doublings]}]}
        lost = {
            "state": sources("recover_message"),
            "due_at": {"$lt": now - timedelta(seconds=grace_seconds)},
            "$expr": {"$lt": [{"$add": [{"$max": ["$due_at", "$dispatched_at"]}, grace_ms]}, now]},
        }
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

    def any_lease_over(self) -> bool:
        """Whether a lease looks over by mongod's clock; after a jump of that clock it may not be."""
        return self._events.find_one(_lease_over(0.0), {"_id": 1}) is not None

    def workers(
        self, now: datetime, *, delay_seconds: float, limit: int, jumped_ahead_seconds: float = 0.0
    ) -> tuple[list[str], list[str]]:
        """Ends leases that ran out: (to be tried again, set aside). `owner` stays, so that a worker that was
        only slow can still record; a lost lease is no attempt. After a jump of mongod's clock they end by so
        much later."""
        dead = _lease_over(jumped_ahead_seconds)
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


def _lease_over(jumped_ahead_seconds: float) -> Document:
    over = {"$subtract": ["$$NOW", int(jumped_ahead_seconds * 1000)]}
    return {
        "state": sources("recover_worker"),
        "due_at": {"$exists": True},
        "$expr": {"$lt": ["$lease_until", over]},
    }

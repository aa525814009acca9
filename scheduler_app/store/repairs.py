"""Recovery's transitions: what a crash left is put right."""

from datetime import datetime, timedelta

from scheduler_app.domain.event import MAX_ISOLATED_LOSSES, State
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

    def workers(self, now: datetime, *, delay_seconds: float, limit: int) -> tuple[list[str], list[str]]:
        """Ends leases that ran out: (to be tried again, set aside). `owner` stays, so that a worker that was
        only slow can still record; a lost lease is no attempt."""
        dead: Document = {
            "state": sources("recover_worker"),
            "due_at": {"$exists": True},
            "$expr": {"$lt": ["$lease_until", "$$NOW"]},
        }
        # Its own request was being made, and no other suspect's: `isolated` is the claim that said so.
        alone = {"$eq": ["$isolated", "$owner"]}
        last = {"$gte": [{"$ifNull": ["$isolated_losses", 0]}, MAX_ISOLATED_LOSSES - 1]}
        spent_now = {"$and": [{"$gt": ["$isolated", None]}, alone, last]}
        rows = list(self._events.find(dead, {"spent": spent_now}).limit(limit))
        spent = [row["_id"] for row in rows if row["spent"]]
        again = [row["_id"] for row in rows if not row["spent"]]
        losses = {
            "lost_leases": {"$add": [{"$ifNull": ["$lost_leases", 0]}, 1]},
            "isolated_losses": {
                "$add": [
                    {"$ifNull": ["$isolated_losses", 0]},
                    {"$cond": [{"$and": [{"$gt": ["$isolated", None]}, alone]}, 1, 0]},
                ]
            },
        }
        if again:
            message = "Recovered: its worker did not report before the lease was over"
            # Another beat may have ended this lease, and a worker have lost the next one, since it was read.
            self._events.update_many(
                {"$and": [dead, {"$expr": {"$not": [spent_now]}}], "_id": {"$in": again}},
                [
                    {
                        "$set": {
                            "state": State.RETRYING,
                            "due_at": now + timedelta(seconds=delay_seconds),
                            "status": appended("status", line(now, State.RETRYING, message)),
                        }
                        | losses
                    },
                    {"$unset": ["lease_until", "isolated"]},
                ],
            )
        if spent:
            finish(
                self._events,
                {"$and": [dead, {"$expr": spent_now}], "_id": {"$in": spent}},
                State.ERROR,
                now,
                f"Set aside: {MAX_ISOLATED_LOSSES} workers were lost while its own request was being made",
                losses,
            )
        return again, spent

"""Recovery's transitions: repair what a crash left behind."""

from datetime import datetime, timedelta

from scheduler_app.domain.event import MAX_ISOLATED_LOSSES, SUSPECT_AFTER, State
from scheduler_app.domain.field_types import EARLIEST, LATEST, Corrupt, whole
from scheduler_app.domain.lane import FRESH_FOR
from scheduler_app.domain.notification import Notifying, OwedNotification
from scheduler_app.domain.queues import CALLBACKS
from scheduler_app.store.documents.leases import lease_over
from scheduler_app.store.events.documents import finish, in_queues, sources
from scheduler_app.store.events.fields import owed_document
from scheduler_app.store.events.history import appended, line
from scheduler_app.store.events.set_aside import set_aside, update_sound
from scheduler_app.store.mongo import Document, Mongo

MAX_GRACE_DOUBLINGS = 6


class Recoveries:
    def __init__(self, mongo: Mongo) -> None:
        self._events = mongo.collection("events")

    def recover_messages(
        self,
        now: datetime,
        *,
        grace_seconds: float,
        limit: int,
        sent_late: bool | None = None,
        queue: str = CALLBACKS,
    ) -> list[str]:
        """Requeues events of a queue whose message must be lost: they are overdue since they were dispatched,
        beyond a grace that doubles with each dispatch that led to no claim. `sent_late`: only those
        that were, or were not, late when they were dispatched. Returns their ids."""
        # A message that led to an attempt, or to a lease, was not lost: a retry's grace begins again. A
        # redrive counts dispatches and leases from 0.
        attempts = {"$subtract": [_number("$attempt", 0), _number("$attempts_before", 0)]}
        heard_of = {"$add": [1, attempts, _number("$lost_leases", 0)]}
        unheard_of = {"$subtract": [_number("$dispatches", 1), heard_of]}
        doublings = {"$min": [{"$max": [unheard_of, 0]}, MAX_GRACE_DOUBLINGS]}
        grace_ms = {"$multiply": [grace_seconds * 1000, {"$pow": [2, doublings]}]}
        # A dispatch in the future is an error; beats' clocks differ by no more than a minute.
        is_past = {"$lt": ["$dispatched_at", now + timedelta(minutes=1)]}
        is_date = {"$eq": [{"$type": "$dispatched_at"}, "date"]}
        dispatched_at = {"$cond": [{"$and": [is_date, is_past]}, "$dispatched_at", "$due_at"]}
        # No expression here may fail: what rejects a query would hold up all that the query is for.
        lost: Document = {
            "state": sources("recover_message"),
            "due_at": {"$gte": EARLIEST, "$lt": now - timedelta(seconds=grace_seconds)},
            "$expr": {"$lt": [{"$max": ["$due_at", dispatched_at]}, {"$subtract": [now, grace_ms]}]},
        } | in_queues((queue,))
        if sent_late is not None:
            lost["$and"] = [{"$expr": {"$eq": [_was_sent_late(), sent_late]}}]
        found = [row["_id"] for row in self._events.find(lost, {"_id": 1}).sort("due_at", 1).limit(limit)]
        if found:
            update_sound(
                self._events,
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
        return self._events.find_one(_dead(0.0), {"_id": 1}) is not None

    def recover_workers(
        self, now: datetime, *, delay_seconds: float, limit: int, jumped_ahead_seconds: float = 0.0
    ) -> tuple[list[str], list[str]]:
        """Ends leases that ran out. Returns the ids of the events that are tried again, and of those that
        are set aside. `owner` stays, so that a worker that was only slow can still record; a lost lease is
        no attempt. `jumped_ahead_seconds` is added to the leases after a jump of mongod's clock."""
        dead = _dead(jumped_ahead_seconds)
        # The event's own request was being made, and no other suspect event's: `isolated` holds the claim
        # that said so.
        alone = {"$and": [{"$gt": ["$isolated", None]}, {"$eq": ["$isolated", "$owner"]}]}
        isolated_losses = _number("$isolated_losses", 0)
        spent_now = {"$and": [alone, {"$gte": [isolated_losses, MAX_ISOLATED_LOSSES - 1]}]}
        spent: list[str] = []
        again: list[str] = []
        for row in self._events.find(dead, {"lost_leases": 1, "spent": spent_now}).limit(limit):
            try:
                whole(row.get("lost_leases") or 0, "lost_leases")
            except Corrupt as error:
                set_aside(self._events, row["_id"], error)
                continue
            (spent if row["spent"] else again).append(row["_id"])
        losses = {
            "lost_leases": {"$add": [{"$ifNull": ["$lost_leases", 0]}, 1]},
            "isolated_losses": {"$add": [isolated_losses, {"$cond": [alone, 1, 0]}]},
        }
        if again:
            message = "Recovered: its worker did not report before the lease was over"
            # Another beat may have ended this lease, and a worker have lost the next one, since it was read.
            update_sound(
                self._events,
                {"$and": [dead, {"$expr": {"$not": [spent_now]}}], "_id": {"$in": again}},
                [
                    {
                        "$set": {
                            "state": State.RETRYING,
                            "due_at": now + timedelta(seconds=delay_seconds),
                            # Blackouts judge it by the time at which it fell due.
                            "postponed_from": {"$ifNull": ["$postponed_from", _readable_date("$due_at")]},
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
                # The duty that makes notifications asks the schedule or the message whom to notify.
                losses | {"notify": owed_document(OwedNotification(Notifying.ON_FAILURE, now))},
            )
        return again, spent


def _readable_date(path: str) -> Document:
    """The date at `path`; nothing for one that cannot be read, and for what is no date."""
    is_readable = {"$and": [{"$gte": [path, EARLIEST]}, {"$lt": [path, LATEST]}]}
    return {"$cond": [is_readable, path, "$$REMOVE"]}


def _number(path: str, otherwise: int) -> Document:
    return {"$cond": [{"$isNumber": path}, path, otherwise]}


def _dead(jumped_ahead_seconds: float) -> Document:
    # What waits for its receiver's word has no lease: its time is `due_at`.
    running: Document = {
        "state": sources("recover_worker"),
        "due_at": {"$exists": True},
        "completion.awaiting": {"$ne": True},
    }
    return running | lease_over("lease_until", jumped_ahead_seconds)


def _was_sent_late() -> Document:
    """Whether an event's message went by the late lane, as `dispatch.batches.lane_of` judged it then."""
    became_late = {"$add": ["$due_at", FRESH_FOR // timedelta(milliseconds=1)]}
    return {"$or": [{"$lte": [became_late, "$dispatched_at"]}, {"$gte": ["$lost_leases", SUSPECT_AFTER]}]}

"""Events: every write is a named transition that states the states it may start from."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pymongo import DESCENDING
from pymongo.errors import AutoReconnect, BulkWriteError

from scheduler_app.domain.event import (
    LIVING,
    MAX_LOST_LEASES,
    TRANSITIONS,
    Event,
    Kind,
    State,
)
from scheduler_app.store.history import appended, line
from scheduler_app.store.mongo import Document, Mongo, new_token, only_duplicates

DOCUMENT_VERSION = 1
#: What a claim brings along: all but the history.
_CLAIMED = {
    "schedule_id": 1,
    "revision": 1,
    "run_time": 1,
    "due_at": 1,
    "kind": 1,
    "attempt": 1,
    "attempts_before": 1,
    "tenant": 1,
}
MAX_GRACE_DOUBLINGS = 6


@dataclass(frozen=True, slots=True)
class PastCut:
    """What became of older revisions' events past a cut."""

    running: bool
    last_sent: datetime | None


def _sources(verb: str) -> dict[str, list[str]]:
    return {"$in": sorted(TRANSITIONS[verb].sources)}


def _lease(seconds: float) -> dict[str, Any]:
    """A lease that mongod's own clock ends."""
    return {"$add": ["$$NOW", int(seconds * 1000)]}


class Events:
    def __init__(self, mongo: Mongo) -> None:
        self._events = mongo.collection("events")
        self._settled = mongo.majority("events")

    # -- expand ------------------------------------------------------------------------------------------

    def insert(self, events: Sequence[Event], now: datetime, message: str) -> int:
        """Makes occurrences durable; what is there already is left alone. Returns how many were new."""
        if not events:
            return 0
        documents = [_document(event, now, message) for event in events]
        try:
            return len(self._events.insert_many(documents, ordered=False).inserted_ids)
        except BulkWriteError as error:
            if not only_duplicates(error):
                raise
            return int(error.details["nInserted"])

    # -- dispatch ----------------------------------------------------------------------------------------

    def take_for_dispatch(
        self, until: datetime, *, limit: int, lease_seconds: float, ids: Sequence[str] | None = None
    ) -> tuple[str, list[Event]]:
        """Takes waiting events due up to `until`, oldest first, by a token in `dispatcher`.

        `ids` narrows it to events just made. Returns the token and what was won.
        """
        free = {
            "state": _sources("mark_dispatched"),
            "due_at": {"$lte": until},
            "$or": [
                {"dispatcher": {"$exists": False}},
                {"$expr": {"$lte": ["$dispatcher.until", "$$NOW"]}},
            ],
        }
        token = new_token()
        if ids is None:
            rows = self._events.find(free, {"_id": 1}).sort("due_at", 1).limit(limit)
            found = [row["_id"] for row in rows]
        else:
            found = list(ids)[:limit]
        if not found:
            return token, []
        self._update_and_forget(
            {**free, "_id": {"$in": found}},
            [{"$set": {"dispatcher": {"token": token, "until": _lease(lease_seconds)}}}],
        )
        won = self._settled.find({"_id": {"$in": found}, "dispatcher.token": token}, _CLAIMED)
        return token, sorted(map(_event, won), key=lambda event: (event.due_at, event.id))

    def mark_dispatched(self, ids: Sequence[str], token: str, now: datetime) -> int:
        """The message is out; written second, for the other order could lose it."""
        result = self._events.update_many(
            {"_id": {"$in": list(ids)}, "dispatcher.token": token, "state": _sources("mark_dispatched")},
            [
                {
                    "$set": {
                        "state": State.WORKER_QUEUE,
                        "dispatched_at": now,
                        "dispatches": {"$add": ["$dispatches", 1]},
                        "status": appended(
                            "status", line(now, State.WORKER_QUEUE, "Event queued for a worker")
                        ),
                    }
                },
                {"$unset": ["dispatcher"]},
            ],
        )
        return result.modified_count

    # -- deliver -----------------------------------------------------------------------------------------

    def claim(
        self, ids: Sequence[str], *, until: datetime, now: datetime, lease_seconds: float, worker: str
    ) -> tuple[str, list[Event]]:
        """Claims the events that are unclaimed and due up to `until`, with a fresh token. Returns both.

        What is not among the answer belongs to somebody else, is finished, or is not due: no error.
        """
        token = new_token()
        self._update_and_forget(
            {"_id": {"$in": list(ids)}, "state": _sources("claim"), "due_at": {"$lte": until}},
            [
                {
                    "$set": {
                        "state": State.RUNNING,
                        "owner": token,
                        "lease_until": _lease(lease_seconds),
                        "status": appended("status", line(now, State.RUNNING, f"Claimed by {worker}")),
                    }
                },
                {"$unset": ["dispatcher"]},
            ],
        )
        won = self._settled.find({"_id": {"$in": list(ids)}, "owner": token}, _CLAIMED)
        return token, sorted(map(_event, won), key=lambda event: (event.due_at, event.id))

    def extend(self, ids: Sequence[str], token: str, lease_seconds: float) -> None:
        """A longer lease for requests that may take longer than the claim could know."""
        self._events.update_many(
            {"_id": {"$in": list(ids)}, "owner": token, "state": State.RUNNING},
            [{"$set": {"lease_until": _lease(lease_seconds)}}],
        )

    def give_back(self, ids: Sequence[str], token: str, now: datetime, message: str) -> int:
        """A claim that came to nothing: no request was made, no attempt is counted."""
        result = self._events.update_many(
            {"_id": {"$in": list(ids)}, "owner": token, "state": _sources("give_back")},
            [
                {
                    "$set": {
                        "state": State.READY_QUEUE,
                        "status": appended("status", line(now, State.READY_QUEUE, message)),
                    }
                },
                {"$unset": ["owner", "lease_until"]},
            ],
        )
        return result.modified_count

    def void(self, ids: Sequence[str], token: str, now: datetime, message: str) -> int:
        """A claimed event that turns out to be withdrawn is not sent."""
        return self._finish(
            {"_id": {"$in": list(ids)}, "owner": token, "state": _sources("void")},
            State.CANCELLED,
            now,
            message,
        )

    # -- cancel ------------------------------------------------------------------------------------------

    def cancel_past_cut(
        self, schedule_id: str, revision: int, cut: datetime, now: datetime, message: str
    ) -> int:
        """Cancels what older revisions still hold after `cut`, unless a worker has it."""
        return self._finish(
            _older(schedule_id, revision, cut) | {"state": _sources("cancel")}, State.CANCELLED, now, message
        )

    def cancel_all(self, schedule_id: str, now: datetime, message: str) -> int:
        """Cancels all that a deleted schedule has not sent, unless a worker has it (which then voids it)."""
        return self._finish(
            {"schedule_id": schedule_id, "state": _sources("cancel")}, State.CANCELLED, now, message
        )

    def look_past_cut(self, schedule_id: str, revision: int, cut: datetime) -> PastCut:
        """What older revisions' events after `cut` came to, before the new one begins."""
        older = _older(schedule_id, revision, cut)
        running = self._settled.find_one(older | {"state": State.RUNNING}, {"_id": 1})
        sent = self._settled.find_one(
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
        return (
            self._finish({"_id": event_id, "state": _sources("cancel")}, State.CANCELLED, now, message) == 1
        )

    # -- redrive -----------------------------------------------------------------------------------------

    def redrive(self, ids: Sequence[str], now: datetime, message: str) -> list[Event]:
        """Makes dead letters due at once, with a budget of attempts anew. Returns those that were in error.

        They are told from others by `redrive`, a token: `update_many` says only how many there were.
        """
        token = new_token()
        self._update_and_forget(
            {"_id": {"$in": list(ids)}, "state": _sources("redrive")},
            [
                {
                    "$set": {
                        "state": State.READY_QUEUE,
                        "due_at": now,
                        "attempts_before": "$attempt",
                        "lost_leases": 0,
                        "redrive": token,
                        "status": appended("status", line(now, State.READY_QUEUE, message)),
                    }
                },
                # Retention ends what is archived, and this is alive again.
                {"$unset": ["archived_at"]},
            ],
        )
        won = self._settled.find({"_id": {"$in": list(ids)}, "redrive": token}, _CLAIMED)
        return [_event(row) for row in won]

    # -- recover -----------------------------------------------------------------------------------------

    def recover_messages(self, now: datetime, *, grace_seconds: float, limit: int) -> list[str]:
        """Puts back events whose message must be lost: overdue since they were dispatched, beyond a grace
        that doubles with each dispatch. Returns their ids."""
        doublings = {"$min": [{"$max": [{"$subtract": ["$dispatches", 1]}, 0]}, MAX_GRACE_DOUBLINGS]}
        grace_ms = {"$multiply": [grace_seconds * 1000, {"$pow": [2, doublings]}]}
        lost = {
            "state": _sources("recover_message"),
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

    def recover_workers(
        self, now: datetime, *, delay_seconds: float, limit: int
    ) -> tuple[list[str], list[str]]:
        """Ends leases that ran out: (to be tried again, set aside). `owner` stays, so that a worker that was
        only slow can still record; a lost lease is no attempt."""
        dead: Document = {
            "state": _sources("recover_worker"),
            "due_at": {"$exists": True},
            "$expr": {"$lt": ["$lease_until", "$$NOW"]},
        }
        rows = list(self._events.find(dead, {"lost_leases": 1}).limit(limit))
        spent = [row["_id"] for row in rows if row["lost_leases"] + 1 >= MAX_LOST_LEASES]
        again = [row["_id"] for row in rows if row["lost_leases"] + 1 < MAX_LOST_LEASES]
        one_more = {"lost_leases": {"$add": ["$lost_leases", 1]}}
        if again:
            message = "Recovered: its worker did not report before the lease was over"
            self._events.update_many(
                {**dead, "_id": {"$in": again}},
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
            self._finish(
                {**dead, "_id": {"$in": spent}},
                State.ERROR,
                now,
                f"Set aside: {MAX_LOST_LEASES} workers did not report on it",
                one_more,
            )
        return again, spent

    # -- look --------------------------------------------------------------------------------------------

    def get(self, event_id: str) -> Document | None:
        return self._events.find_one({"_id": event_id})

    def any_of_schedule(self, schedule_id: str) -> bool:
        return self._events.find_one({"schedule_id": schedule_id}, {"_id": 1}) is not None

    def living_by_state(self) -> dict[str, int]:
        """How many events there are in each living state, by index alone."""
        return {
            state: self._events.count_documents({"state": state, "due_at": {"$exists": True}}, hint="due_v1")
            for state in sorted(LIVING)
        }

    def oldest_due(self) -> datetime | None:
        """When the longest-waiting event was due."""
        waiting = {"state": _sources("mark_dispatched"), "due_at": {"$exists": True}}
        row = self._events.find_one(waiting, {"due_at": 1}, sort=[("due_at", 1)])
        return row["due_at"] if row else None

    # -- common ------------------------------------------------------------------------------------------

    def _finish(
        self, which: Document, state: State, now: datetime, message: str, extra: Document | None = None
    ) -> int:
        result = self._events.update_many(
            which,
            [
                {
                    "$set": {
                        "state": state,
                        "archived_at": now,
                        "status": appended("status", line(now, state, message)),
                    }
                    | (extra or {})
                },
                {"$unset": ["due_at", "owner", "lease_until", "dispatcher"]},
            ],
        )
        return result.modified_count

    def _update_and_forget(self, which: Document, pipeline: list[Document]) -> None:
        """An update whose effect is read back by its token: `update_many` is not retryable, so after a
        broken connection only what stands in the collection tells what was won."""
        with suppress(AutoReconnect):
            self._events.update_many(which, pipeline)


def _older(schedule_id: str, revision: int, cut: datetime) -> Document:
    return {
        "schedule_id": schedule_id,
        "run_time": {"$gt": cut},
        "revision": {"$lt": revision},
        "kind": Kind.SCHEDULED,
    }


def _document(event: Event, now: datetime, message: str) -> Document:
    return {
        "_id": event.id,
        "v": DOCUMENT_VERSION,
        "tenant": event.tenant,
        "schedule_id": event.schedule_id,
        "revision": event.revision,
        "kind": event.kind.value,
        "run_time": event.run_time,
        "state": State.READY_QUEUE.value,
        "due_at": event.due_at,
        "queue": "callbacks",
        "attempt": 0,
        "dispatches": 0,
        "lost_leases": 0,
        "status": [line(now, State.READY_QUEUE, message)],
        "attempts": [],
        "created_at": now,
    }


def _event(row: Document) -> Event:
    return Event(
        id=row["_id"],
        schedule_id=row["schedule_id"],
        revision=row["revision"],
        run_time=row["run_time"],
        due_at=row["due_at"],
        kind=Kind(row["kind"]),
        attempt=row["attempt"],
        attempts_before=row.get("attempts_before", 0),
        tenant=row["tenant"],
    )

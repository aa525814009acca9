"""Schedules: people's edits by version, beats' claims by token."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bson import ObjectId
from pymongo import DESCENDING, UpdateOne
from pymongo.errors import AutoReconnect, DuplicateKeyError

from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.store.mongo import Document, Mongo, new_token
from scheduler_app.store.schedule_documents import from_document, to_document
from scheduler_app.store.secrets import Envelope

NOT_DELETED = {"$ne": ScheduleState.DELETED.value}


@dataclass(frozen=True, slots=True)
class Advance:
    """Where a schedule's expansion has come to, written after its events."""

    schedule_id: str
    next_run_at: datetime | None
    finishes_at: datetime | None
    checkpoint: Mapping[str, Any] | None
    cut_done: bool = True


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A stored document that no longer makes a schedule, and why."""

    schedule_id: str
    reason: str


class Schedules:
    def __init__(self, mongo: Mongo, envelope: Envelope) -> None:
        self._schedules = mongo.collection("schedules")
        self._settled = mongo.majority("schedules")
        self._envelope = envelope

    # -- people's edits ----------------------------------------------------------------------------------

    @staticmethod
    def new_id() -> str:
        """A fresh id, 24 hex digits, rising with time."""
        return str(ObjectId())

    def insert(self, schedule: Schedule) -> bool:
        """False when the id was used before; an id is never used twice."""
        try:
            self._schedules.insert_one(to_document(schedule, self._envelope))
        except DuplicateKeyError:
            return False
        return True

    def update(self, schedule: Schedule, *, version: int) -> bool:
        """Writes an edit that leaves the timing alone, made of the schedule as it stood at `version`.

        False when somebody was quicker. The cursor is left alone: a beat may have moved it meanwhile.
        """
        document = to_document(schedule, self._envelope)
        kept = {key: value for key, value in document.items() if key not in _CURSOR}
        return self._write(schedule.id, version, schedule.revision, {"$set": kept})

    def revise(self, schedule: Schedule, *, version: int) -> bool:
        """Writes an edit that makes the future anew (`Schedule.revise`), in one write with its cut.

        It clears `owner`: a beat that is expanding the schedule as it was is refused when it comes to
        advance it.
        """
        document = to_document(schedule, self._envelope)
        gone = ["owner", "lease_until", *(key for key in _OPTIONAL if key not in document)]
        change = {"$set": document, "$unset": dict.fromkeys(gone, "")}
        return self._write(schedule.id, version, schedule.revision - 1, change)

    def _write(self, schedule_id: str, version: int, revision: int, change: Document) -> bool:
        change["$set"].pop("_id")
        which = {"_id": schedule_id, "version": version, "revision": revision, "state": NOT_DELETED}
        return self._schedules.update_one(which, change).matched_count == 1

    def delete(self, schedule_id: str, now: datetime) -> bool:
        """False when there is none. The document stays until its last event is gone."""
        result = self._schedules.update_one(
            {"_id": schedule_id, "state": NOT_DELETED},
            {
                "$set": {"state": ScheduleState.DELETED.value, "deleted_at": now, "updated_at": now},
                "$unset": {"next_run_at": "", "finishes_at": "", "owner": "", "lease_until": ""},
                "$inc": {"version": 1},
            },
        )
        return result.matched_count == 1

    # -- beats' claims -----------------------------------------------------------------------------------

    def claim_for_expansion(
        self, before: datetime, *, limit: int, lease_seconds: float
    ) -> tuple[str, list[Schedule | Unreadable]]:
        """Claims active schedules whose next occurrence without an event comes before `before`.

        Returns the token and the schedules, among them those that can no longer be read.
        """
        free: Document = {
            "state": ScheduleState.ACTIVE.value,
            "next_run_at": {"$lt": before},
            "$or": [{"owner": {"$exists": False}}, {"$expr": {"$lte": ["$lease_until", "$$NOW"]}}],
        }
        rows = self._schedules.find(free, {"_id": 1}).sort("next_run_at", 1).limit(limit)
        return self._claim(free, [row["_id"] for row in rows], lease_seconds)

    def claim_one(self, schedule_id: str, *, lease_seconds: float) -> tuple[str, list[Schedule | Unreadable]]:
        """The same for one schedule that somebody has just made or edited, whatever its next occurrence."""
        free: Document = {
            "state": ScheduleState.ACTIVE.value,
            "next_run_at": {"$exists": True},
            "$or": [{"owner": {"$exists": False}}, {"$expr": {"$lte": ["$lease_until", "$$NOW"]}}],
        }
        return self._claim(free, [schedule_id], lease_seconds)

    def _claim(
        self, free: Document, ids: Sequence[str], lease_seconds: float
    ) -> tuple[str, list[Schedule | Unreadable]]:
        token = new_token()
        if not ids:
            return token, []
        # What was won is read by the token: `update_many` is not retryable after a broken connection.
        with suppress(AutoReconnect):
            self._schedules.update_many(
                {**free, "_id": {"$in": list(ids)}},
                [{"$set": {"owner": token, "lease_until": {"$add": ["$$NOW", int(lease_seconds * 1000)]}}}],
            )
        rows = self._settled.find({"_id": {"$in": list(ids)}, "owner": token})
        return token, [self._read(row) for row in rows]

    def _read(self, row: Document) -> "Schedule | Unreadable":
        try:
            return from_document(row, self._envelope)
        except Exception as error:  # somebody bent the document by hand: any error may come of it
            return Unreadable(row["_id"], f"{type(error).__name__}: {error}")

    def advance(self, advances: Sequence[Advance], token: str) -> int:
        """Writes the cursors of schedules still held by `token`, and lets go of them.

        Events first, cursor second: a crash between the two expands once more, onto the same ids. Returns how
        many were still held: the others were edited meanwhile, and their new owner begins anew.
        """
        if not advances:
            return 0
        result = self._schedules.bulk_write(
            [
                UpdateOne({"_id": advance.schedule_id, "owner": token}, _advance(advance))
                for advance in advances
            ],
            ordered=False,
        )
        return result.matched_count

    def release(self, ids: Sequence[str], token: str) -> None:
        """Lets go of claimed schedules without a change; another tick takes them."""
        self._schedules.update_many(
            {"_id": {"$in": list(ids)}, "owner": token}, {"$unset": {"owner": "", "lease_until": ""}}
        )

    def set_aside(self, schedule_id: str, token: str, reason: str, now: datetime) -> bool:
        """A schedule that cannot be expanded is in `error` with its reason; the others go on."""
        result = self._schedules.update_one(
            {"_id": schedule_id, "owner": token},
            {
                "$set": {"state": ScheduleState.ERROR.value, "reason": reason[:1000], "updated_at": now},
                "$unset": {"next_run_at": "", "owner": "", "lease_until": ""},
            },
        )
        return result.matched_count == 1

    def finish_ended(self, now: datetime) -> int:
        """Active schedules whose last occurrence has passed are finished."""
        result = self._schedules.update_many(
            {"state": ScheduleState.ACTIVE.value, "finishes_at": {"$lte": now}},
            {"$set": {"state": ScheduleState.FINISHED.value}, "$unset": {"finishes_at": ""}},
        )
        return result.modified_count

    # -- retention ---------------------------------------------------------------------------------------

    def deleted_before(self, moment: datetime, *, limit: int) -> list[str]:
        rows = self._schedules.find({"deleted_at": {"$lt": moment}}, {"_id": 1}).sort("deleted_at", 1)
        return [row["_id"] for row in rows.limit(limit)]

    def remove(self, schedule_id: str) -> None:
        self._schedules.delete_one({"_id": schedule_id, "state": ScheduleState.DELETED.value})

    # -- look --------------------------------------------------------------------------------------------

    def get(self, schedule_id: str) -> Schedule | Unreadable | None:
        """None when there is none or it was deleted."""
        row = self._settled.find_one({"_id": schedule_id, "state": NOT_DELETED})
        return self._read(row) if row else None

    def exists(self, schedule_id: str) -> bool:
        """Whether there is such a schedule, deleted ones included: their history stays readable."""
        return self._schedules.find_one({"_id": schedule_id}, {"_id": 1}) is not None

    def for_delivery(self, ids: Sequence[str]) -> dict[str, Schedule | Unreadable]:
        """Schedules by id, deleted ones included; read after the claim of their events, never before."""
        return {row["_id"]: self._read(row) for row in self._settled.find({"_id": {"$in": list(ids)}})}

    def list(
        self,
        *,
        tenant: str,
        state: str | None = None,
        name: str | None = None,
        tag: str | None = None,
        after: tuple[datetime, str] | None = None,
        skip: int = 0,
        limit: int,
    ) -> list[Schedule | Unreadable]:
        """Newest first; `after` is the (created_at, id) of the last one seen."""
        which: Document = {"tenant": tenant, "state": state or NOT_DELETED}
        if name is not None:
            which["name"] = name
        if tag is not None:
            which["tags"] = tag
        if after is not None:
            created_at, last = after
            which["created_at"] = {"$lte": created_at}
            which["$or"] = [{"created_at": {"$lt": created_at}}, {"_id": {"$lt": last}}]
        rows = self._schedules.find(which).sort([("created_at", DESCENDING), ("_id", DESCENDING)])
        return [self._read(row) for row in rows.skip(skip).limit(limit)]


#: What expansion moves on, and an edit of anything but the timing leaves alone.
_CURSOR = ("next_run_at", "finishes_at", "cut_pending", "checkpoint", "state", "reason", "revised_at")
_OPTIONAL = ("rrule", "pinned", "run_at", "next_run_at", "finishes_at", "checkpoint", "reason", "cut_pending")


def _advance(advance: Advance) -> Document:
    values = {
        "next_run_at": advance.next_run_at,
        "finishes_at": advance.finishes_at,
        "checkpoint": dict(advance.checkpoint) if advance.checkpoint else None,
    }
    kept = {key: value for key, value in values.items() if value is not None}
    gone = [key for key, value in values.items() if value is None] + ["owner", "lease_until"]
    gone += ["cut_pending"] if advance.cut_done else []
    return {"$set": kept, "$unset": dict.fromkeys(gone, "")} if kept else {"$unset": dict.fromkeys(gone, "")}

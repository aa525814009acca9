"""Schedules: people's edits by version, beats' claims by token."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import repeat
from typing import Any

from bson import ObjectId
from bson.raw_bson import RawBSONDocument
from pymongo.errors import AutoReconnect, BulkWriteError, DuplicateKeyError
from pymongo.read_concern import ReadConcern

from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.store.listing import Page, Window, newest
from scheduler_app.store.mongo import Document, Mongo, new_token, only_duplicates
from scheduler_app.store.one_update import or_removed, own_value
from scheduler_app.store.readings import Readings
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


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A stored document that no longer makes a schedule, and why."""

    schedule_id: str
    reason: str


#: A linearizable read waits for a majority, for ever if it is told no limit.
LOOK_MS = 5_000


class Schedules:
    def __init__(self, mongo: Mongo, envelope: Envelope) -> None:
        self._schedules = mongo.collection("schedules")
        self._settled = mongo.majority("schedules")
        self._surely = self._schedules.with_options(read_concern=ReadConcern("linearizable"))
        self._envelope = envelope
        options = self._settled.codec_options
        self._raw = self._settled.with_options(options.with_options(document_class=RawBSONDocument))
        self._readings = Readings(self._read, options)

    # -- people's edits ----------------------------------------------------------------------------------

    @staticmethod
    def new_id() -> str:
        """A fresh id, 24 hex digits, rising with time."""
        return str(ObjectId())

    def insert(self, schedule: Schedule, *, seed: str | None = None) -> bool:
        """False when the id was used before; an id is never used twice. `seed` says which request made it."""
        try:
            self._schedules.insert_one(self._new_document(schedule, seed))
        except DuplicateKeyError:
            return False
        return True

    def insert_many(self, schedules: Sequence[Schedule], *, seeds: Sequence[str] | None = None) -> set[int]:
        """Inserts in bulk; returns the positions of those whose id was used before."""
        if not schedules:
            return set()
        documents = map(self._new_document, schedules, seeds or repeat(None))
        try:
            self._schedules.insert_many(list(documents), ordered=False)
        except BulkWriteError as error:
            if not only_duplicates(error):
                raise
            return {failure["index"] for failure in error.details["writeErrors"]}
        return set()

    def _new_document(self, schedule: Schedule, seed: str | None) -> Document:
        document = to_document(schedule, self._envelope)
        return document if seed is None else document | {"seed": seed}

    def made_by(self, seed: str, schedule_id: str) -> "Schedule | None":
        """The schedule, if the request of that `seed` has made it; None also when it was deleted since."""
        row = self._settled.find_one({"_id": schedule_id, "seed": seed, "state": NOT_DELETED})
        found = self._read(row) if row else None
        return found if isinstance(found, Schedule) else None

    def update(self, schedule: Schedule, *, version: int) -> bool:
        """Writes an edit that leaves the timing alone, made of the schedule as it stood at `version`.

        False when somebody was quicker. The cursor is left alone: a beat may have moved it meanwhile.
        """
        document = to_document(schedule, self._envelope)
        kept = {key: value for key, value in document.items() if key not in _CURSOR}
        change: Document = {"$set": kept}
        if "signing" not in document:
            change["$unset"] = {"signing": ""}
        return self._write(schedule.id, version, schedule.revision, change)

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

    def delete(self, schedule_id: str, now: datetime, *, version: int | None = None) -> bool:
        """False when there is none, or not at `version`. The document stays until its last event is gone,
        its secrets do not."""
        which: Document = {"_id": schedule_id, "state": NOT_DELETED}
        result = self._schedules.update_one(
            which if version is None else which | {"version": version},
            {
                "$set": {"state": ScheduleState.DELETED.value, "deleted_at": now, "updated_at": now},
                "$unset": {
                    "next_run_at": "",
                    "finishes_at": "",
                    "owner": "",
                    "lease_until": "",
                    "signing": "",
                },
                "$inc": {"version": 1},
            },
        )
        return result.matched_count == 1

    # -- beats' claims -----------------------------------------------------------------------------------

    def ready_for_expansion(self, before: datetime, *, limit: int) -> list[str]:
        """Active schedules that nobody has and whose next occurrence without an event comes before `before`,
        those first that have the least left."""
        rows = self._schedules.find(_ready(before), {"_id": 1}).sort("next_run_at", 1).limit(limit)
        return [row["_id"] for row in rows]

    def claim_for_expansion(
        self, ids: Sequence[str], before: datetime, *, lease_seconds: float
    ) -> tuple[str, list[Schedule | Unreadable]]:
        """Claims those that are still ready.

        Returns the token and the schedules, among them those that can no longer be read.
        """
        return self._claim(_ready(before), ids, lease_seconds)

    def claim_these(
        self, ids: Sequence[str], *, lease_seconds: float
    ) -> tuple[str, list[Schedule | Unreadable]]:
        """The same for schedules that somebody has just made or edited, whatever their next occurrence."""
        return self._claim(_free({"$exists": True}), ids, lease_seconds)

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
        ids = [advance.schedule_id for advance in advances]
        row = {"$set": {"row": own_value(ids, list(map(_row, advances)))}}
        moved = {key: or_removed(f"$row.{key}") for key in ("next_run_at", "finishes_at", "checkpoint")}
        result = self._schedules.update_many(
            {"_id": {"$in": ids}, "owner": token},
            [row, {"$set": moved}, {"$unset": ["row", "cut_pending", "owner", "lease_until"]}],
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

    def with_older_zone_data(self, version: str, *, limit: int) -> list[Schedule]:
        """Active schedules whose future was computed with older zone data than `version`."""
        which = {"state": ScheduleState.ACTIVE.value, "zone_data": {"$lt": version}}
        rows = [self._read(row) for row in self._schedules.find(which).limit(limit)]
        return [row for row in rows if isinstance(row, Schedule)]

    def keep_with_zone_data(self, schedule: Schedule, version: str) -> bool:
        """Notes that `version` computes the same future; False when the schedule was changed meanwhile."""
        result = self._schedules.update_one(
            {"_id": schedule.id, "revision": schedule.revision, "next_run_at": schedule.next_run_at},
            {"$set": {"zone_data": version}},
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

    def get(self, schedule_id: str, *, surely: bool = False) -> Schedule | Unreadable | None:
        """None when there is none or it was deleted. `surely`: a linearizable read, which costs the primary
        a question to the others."""
        collection = self._surely if surely else self._settled
        row = collection.find_one({"_id": schedule_id, "state": NOT_DELETED}, max_time_ms=LOOK_MS)
        return self._read(row) if row else None

    def exists(self, schedule_id: str) -> bool:
        """Whether there is such a schedule, deleted ones included: their history stays readable."""
        return self._schedules.find_one({"_id": schedule_id}, {"_id": 1}) is not None

    def for_delivery(self, ids: Sequence[str]) -> dict[str, Schedule | Unreadable]:
        """Schedules by id, deleted ones included; read after the claim of their events, never before."""
        found: dict[str, Schedule | Unreadable] = {}
        for row in self._raw.find({"_id": {"$in": list(ids)}}):
            reading = self._readings.of(row.raw)
            found[reading.schedule_id if isinstance(reading, Unreadable) else reading.id] = reading
        return found

    def page(
        self,
        window: Window,
        *,
        tenant: str,
        state: str | None = None,
        name: str | None = None,
        tag: str | None = None,
    ) -> Page[Schedule | Unreadable]:
        """Schedules that match all that is given, newest first; the window's times are creation times."""
        which: Document = {"tenant": tenant, "state": state or NOT_DELETED}
        if name is not None:
            which["name"] = name
        if tag is not None:
            which["tags"] = tag
        found = newest(self._schedules, "created_at", which, window)
        return Page([self._read(row) for row in found.rows], found.following)


#: What expansion moves on, and an edit of anything but the timing leaves alone.
_CURSOR = (
    "next_run_at",
    "finishes_at",
    "cut_pending",
    "checkpoint",
    "state",
    "reason",
    "revised_at",
    "zone_data",
)
_OPTIONAL = (
    "zone_data",
    "rrule",
    "pinned",
    "run_at",
    "next_run_at",
    "finishes_at",
    "checkpoint",
    "reason",
    "cut_pending",
    "signing",
)


def _ready(before: datetime) -> Document:
    return _free({"$lt": before})


def _free(next_run_at: Document) -> Document:
    """The condition of an active schedule that no beat is expanding."""
    return {
        "state": ScheduleState.ACTIVE.value,
        "next_run_at": next_run_at,
        "$or": [{"owner": {"$exists": False}}, {"$expr": {"$lte": ["$lease_until", "$$NOW"]}}],
    }


def _row(advance: Advance) -> Document:
    return {
        "next_run_at": advance.next_run_at,
        "finishes_at": advance.finishes_at,
        "checkpoint": dict(advance.checkpoint) if advance.checkpoint else None,
    }

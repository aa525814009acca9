"""Cursors: how far each schedule is expanded. Beats claim them by a token and advance them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from pymongo.client_session import ClientSession

from scheduler_app.actions.registry import KINDS
from scheduler_app.clock import clock
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.store.calendars.calendars import Calendars
from scheduler_app.store.documents.isolation import isolated
from scheduler_app.store.documents.leases import lease, unclaimed
from scheduler_app.store.documents.per_document_update import or_unset, own_value
from scheduler_app.store.encryption import SecretBox
from scheduler_app.store.faults import REJECTED, of_one_document
from scheduler_app.store.mongo import BY_ID, Document, Mongo, new_token, written_by_token
from scheduler_app.store.schedules.corrupt import CorruptSchedule, read
from scheduler_app.store.schedules.documents import READABLE
from scheduler_app.store.schedules.set_aside import (
    report_set_aside,
    set_schedule_aside,
)


@dataclass(frozen=True, slots=True)
class Advance:
    """How far a schedule is expanded; written after its events."""

    schedule_id: str
    next_run_at: datetime | None
    finishes_at: datetime | None
    checkpoint: Mapping[str, Any] | None


class Ready(NamedTuple):
    """A schedule that is to be expanded."""

    next_run_at: datetime
    id: str


class Cursors:
    """A cursor is stored in its schedule's document. An edit that starts a new revision revokes a beat's
    claim."""

    def __init__(self, mongo: Mongo, secret_box: SecretBox, calendars: Calendars) -> None:
        self._calendars = calendars
        self._schedules = mongo.collection("schedules")
        self._majority = mongo.majority("schedules")
        self._secret_box = secret_box

    def ready_for_expansion(
        self, before: datetime, *, limit: int, since: datetime | None = None
    ) -> list[Ready]:
        """Active, unclaimed schedules whose next occurrence without an event is before
        `before` (and not before `since`), the earliest first."""
        which = _ready(before)
        if since is not None:
            which["next_run_at"]["$gte"] = since
        rows = self._schedules.find(which, {"next_run_at": 1}).sort("next_run_at", 1).limit(limit)
        return [Ready(row["next_run_at"], row["_id"]) for row in rows]

    def claim_for_expansion(
        self, ids: Sequence[str], before: datetime, *, lease_seconds: float
    ) -> tuple[str, list[Schedule | CorruptSchedule]]:
        """Claims those that are still ready.

        Returns the token and the schedules, without what is sent (body, headers, signature), in the order of
        `ids`; with a CorruptSchedule for each that can no longer be read.
        """
        return self.claim(_ready(before), ids, lease_seconds=lease_seconds)

    def claim_these(
        self, ids: Sequence[str], *, lease_seconds: float
    ) -> tuple[str, list[Schedule | CorruptSchedule]]:
        """The same for schedules that were just created or edited, whatever their next occurrence."""
        return self.claim(free({"next_run_at": {"$exists": True}}), ids, lease_seconds=lease_seconds)

    def claim(
        self, which: Document, ids: Sequence[str], *, lease_seconds: float
    ) -> tuple[str, list[Schedule | CorruptSchedule]]:
        """The same for those of `ids` that match `which`, which is to say that they are `free`."""
        token = new_token()
        if not ids:
            return token, []

        def claim(part: Sequence[str]) -> None:
            # Claimed schedules are read back by the token.
            written_by_token(
                lambda: self._schedules.update_many(
                    {**which, "_id": {"$in": list(part)}},
                    [{"$set": {"owner": token, "lease_until": lease(lease_seconds)}}],
                    hint=BY_ID,
                )
            )

        isolated(ids, claim, self.condemn)
        rows = self._majority.find({"_id": {"$in": list(ids)}, "owner": token}, UNREAD)
        won = {row["_id"]: without_request(row) for row in rows}
        # MongoDB returns rows in its own order. A page may end before its last schedules, and the most urgent
        # ones must not be those again and again.
        found = [read(won[each], self._secret_box) for each in ids if each in won]
        return token, self._calendars.attach(found)

    def advance(self, advances: Sequence[Advance], token: str) -> int:
        """Writes the cursors of schedules still held by `token`, and releases them.

        Events first, cursor second: a crash between the two expands once more, onto the same ids. Returns
        how many were still held: the others were edited meanwhile, and their next owner begins again.
        """
        if not advances:
            return 0

        def move(part: Sequence[Advance]) -> int:
            ids = [advance.schedule_id for advance in part]
            row = {"$set": {"row": own_value(ids, list(map(_row, part)))}}
            return self._schedules.update_many(
                {"_id": {"$in": ids}, "owner": token},
                [row, *_MOVED],
            ).matched_count

        def condemn(advance: Advance, error: Exception) -> bool:
            return self.condemn(advance.schedule_id, error)

        return sum(isolated(advances, move, condemn).results)

    def advance_within(self, session: ClientSession, advance: Advance, token: str) -> bool:
        """As `advance` for one schedule, in the session's transaction; False when the claim was lost."""
        moved = self._schedules.update_one(
            {"_id": advance.schedule_id, "owner": token},
            [{"$set": {"row": {"$literal": _row(advance)}}}, *_MOVED],
            session=session,
        )
        return moved.matched_count == 1

    def release(self, ids: Sequence[str], token: str) -> None:
        """Releases claimed schedules unchanged; another tick takes them."""
        self._update_sound(
            {"_id": {"$in": list(ids)}, "owner": token}, {"$unset": {"owner": "", "lease_until": ""}}
        )

    def set_aside(self, schedule_id: str, token: str, reason: str, now: datetime) -> bool:
        """Puts a schedule that cannot be expanded into `error` with the reason. False when the claim was
        lost."""
        return set_schedule_aside(self._schedules, {"_id": schedule_id, "owner": token}, reason, now)

    def condemn(self, schedule_id: str, error: Exception) -> bool:
        """Sets a schedule aside to whose document MongoDB rejects writes. False where nothing is wrong with
        it."""
        row = self._schedules.find_one({"_id": schedule_id})
        found = read(row, self._secret_box) if row else None
        is_corrupt = isinstance(found, CorruptSchedule) and not found.readable_elsewhere
        if found is not None and not is_corrupt and not of_one_document(error):
            return False
        reason = found.reason if isinstance(found, CorruptSchedule) else str(error)
        if row and set_schedule_aside(self._schedules, {"_id": schedule_id}, reason, clock.now()):
            report_set_aside(schedule_id, reason)
        return True

    def finish_ended(self, now: datetime) -> int:
        """Finishes active schedules whose last occurrence has passed; returns how many."""
        return self._update_sound(
            {"state": ScheduleState.ACTIVE.value, "finishes_at": {"$lte": now}},
            {"$set": {"state": ScheduleState.FINISHED.value}, "$unset": {"finishes_at": ""}},
        )

    def _update_sound(self, which: Document, change: Document) -> int:
        """`update_many`; the schedules that make MongoDB reject it are set aside, and the others updated.
        Returns how many were modified, exactly where none was rejected."""
        try:
            return self._schedules.update_many(which, change).modified_count
        except REJECTED:
            ids = [row["_id"] for row in self._schedules.find(which, {"_id": 1})]

        def update(part: Sequence[str]) -> int:
            return self._schedules.update_many(which | {"_id": {"$in": list(part)}}, change).modified_count

        return sum(isolated(ids, update, self.condemn).results)


#: A page of the largest bodies and headers would be more than all the rest of a beat, and to open the secrets
#: among them more than all its other work.
UNREAD = {
    **{f"action.{name}": 0 for kind in KINDS.values() for name in kind.not_for_beats},
    "sealed": 0,
    "signing": 0,
    "owed": 0,
    "last_run": 0,
}


def without_request(row: Document) -> Document:
    """Returns a row that was fetched without `UNREAD` so that it can be read as a schedule."""
    action = row.get("action")
    if not isinstance(action, dict) or type(action.get("type")) is not str:
        return row
    kind = KINDS.get(action["type"])
    return row | {"action": action | kind.in_their_place} if kind is not None else row


def _ready(before: datetime) -> Document:
    return free({"next_run_at": {"$lt": before}})


def free(which: Document) -> Document:
    """The condition of an active schedule that matches `which` (which has no `$or`), and that no beat has
    claimed."""
    return {
        "state": ScheduleState.ACTIVE.value,
        **which,
        **unclaimed("owner", "lease_until"),
    } | READABLE


#: What an update does with the `row` of a schedule's advance.
_MOVED: list[Document] = [
    {"$set": {key: or_unset(f"$row.{key}") for key in ("next_run_at", "finishes_at", "checkpoint")}},
    {"$unset": ["row", "cut_pending", "owner", "lease_until"]},
]


def _row(advance: Advance) -> Document:
    return {
        "next_run_at": advance.next_run_at,
        "finishes_at": advance.finishes_at,
        "checkpoint": dict(advance.checkpoint) if advance.checkpoint else None,
    }

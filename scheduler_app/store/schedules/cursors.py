"""How far each schedule is expanded: its cursor, and the ranges of occurrences that edits owe it. Beats claim
both by a token and advance them.

Owed ranges are stored with their schedules and claimed oldest first. Their claim is apart from that of the
schedule's own expansion: neither waits for the other.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from bson import MinKey
from pymongo.client_session import ClientSession

from scheduler_app.actions.registry import KINDS
from scheduler_app.clock import clock
from scheduler_app.domain.action import CALLBACKS
from scheduler_app.domain.ids import SEPARATOR, TENANT, tenant_of
from scheduler_app.domain.lateness import DEFAULT_LATENESS, Lateness
from scheduler_app.domain.schedule import MAX_OWED, OwedRange, Schedule, ScheduleState
from scheduler_app.store.bulk_writes import or_unset, value_by_id, write_isolated
from scheduler_app.store.calendars import Calendars
from scheduler_app.store.encryption import SecretBox
from scheduler_app.store.faults import REJECTED, STORE_FAULTS, of_one_document
from scheduler_app.store.indexes import BY_NEXT_RUN, OWED_RANGES
from scheduler_app.store.mongo import BY_ID, Document, Mongo, lease, new_token, unclaimed, written_by_token
from scheduler_app.store.partition_owners import in_partitions
from scheduler_app.store.resource_fields import read_lateness
from scheduler_app.store.schedules.documents import (
    READABLE,
    CorruptSchedule,
    read_schedule,
    report_set_aside,
    set_schedule_aside,
)
from scheduler_app.store.schedules.owed_lines import with_line_of_beat
from scheduler_app.store.schedules.trigger_documents import from_owed_document, to_owed_document


@dataclass(frozen=True, slots=True)
class CursorAdvance:
    """How far a schedule is expanded; written after its events."""

    schedule_id: str
    next_run_at: datetime | None
    finishes_at: datetime | None
    checkpoint: Mapping[str, Any] | None


class ReadySchedule(NamedTuple):
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
        self,
        before: datetime,
        *,
        limit: int,
        since: datetime | None = None,
        partitions: Collection[int] | None = None,
        but_tenants: Collection[str] = (),
    ) -> list[ReadySchedule]:
        """Active, unclaimed schedules in `partitions` (None: in any) whose next occurrence without an event
        is before `before` (and not before `since`), the earliest first; none of `but_tenants`, whose ids the
        index leaves out."""
        which = _ready(before) | in_partitions(partitions)
        if since is not None:
            which["next_run_at"]["$gte"] = since
        if but_tenants:
            which["_id"] = _ids_of_others(but_tenants)
        rows = self._schedules.find(which, {"next_run_at": 1}).sort("next_run_at", 1).limit(limit)
        if but_tenants:  # the index of ids does not give the order
            rows = rows.hint(BY_NEXT_RUN)
        return [ReadySchedule(row["next_run_at"], row["_id"]) for row in rows]

    def claim_for_expansion(
        self, ids: Sequence[str], before: datetime, *, lease_seconds: float
    ) -> tuple[str, list[Schedule | CorruptSchedule]]:
        """Claims those that are still ready.

        Returns the token and the schedules, without what is sent (body, headers, signature), in the order of
        `ids`; with a CorruptSchedule for each that can no longer be read.
        """
        return self.claim(_ready(before), ids, lease_seconds=lease_seconds)

    def claim_written(
        self, written: Sequence[Schedule], *, lease_seconds: float
    ) -> tuple[str, list[Schedule]]:
        """Claims schedules that were just written, except those that somebody has claimed, edited or expanded
        since. Returns the token and the schedules that were won, which are still as they were written: only
        where some were lost, MongoDB is asked which."""
        token = new_token()
        claimed = [{"$set": {"owner": token, "lease_until": lease(lease_seconds)}}]

        def claim(part: Sequence[Schedule]) -> int:
            ids = [each.id for each in part]
            stamp = value_by_id(ids, [[each.version, each.revision, each.next_run_at] for each in part])
            # What an edit, a new revision or an expansion changes.
            unchanged = {"$eq": [["$version", "$revision", "$next_run_at"], stamp]}
            which = unclaimed_active({"_id": {"$in": ids}, "$expr": unchanged})
            return self._schedules.update_many(which, claimed, hint=BY_ID).matched_count

        def condemn(schedule: Schedule, error: Exception) -> bool:
            return self.condemn(schedule.id, error)

        if sum(write_isolated(written, claim, condemn).results) == len(written):
            return token, list(written)
        rows = self._majority.find(
            {"_id": {"$in": [each.id for each in written]}, "owner": token}, {"_id": 1}
        )
        won = {row["_id"] for row in rows}
        return token, [each for each in written if each.id in won]

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

        write_isolated(ids, claim, self.condemn)
        rows = self._majority.find({"_id": {"$in": list(ids)}, "owner": token}, WITHOUT_REQUEST)
        won = {row["_id"]: without_request(row) for row in rows}
        # MongoDB returns rows in its own order. A page may end before its last schedules, and the most urgent
        # ones must not be those again and again.
        found = [read_schedule(won[each], self._secret_box) for each in ids if each in won]
        return token, self._calendars.attach(found)

    def advance(self, advances: Sequence[CursorAdvance], token: str) -> int:
        """Writes the cursors of schedules still held by `token`, and releases them.

        Events first, cursor second: a crash between the two expands once more, onto the same ids. Returns
        how many were still held: the others were edited meanwhile, and their next owner begins again.
        """
        if not advances:
            return 0

        def move(part: Sequence[CursorAdvance]) -> int:
            ids = [advance.schedule_id for advance in part]
            row = {"$set": {"row": value_by_id(ids, list(map(_row, part)))}}
            return self._schedules.update_many(
                {"_id": {"$in": ids}, "owner": token},
                [row, *_MOVED],
            ).matched_count

        def condemn(advance: CursorAdvance, error: Exception) -> bool:
            return self.condemn(advance.schedule_id, error)

        return sum(write_isolated(advances, move, condemn).results)

    def advance_within(self, session: ClientSession, advance: CursorAdvance, token: str) -> bool:
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
        found = read_schedule(row, self._secret_box) if row else None
        is_corrupt = isinstance(found, CorruptSchedule) and not found.readable_elsewhere
        if found is not None and not is_corrupt and not of_one_document(error):
            return False
        reason = found.reason if isinstance(found, CorruptSchedule) else str(error)
        if row and set_schedule_aside(self._schedules, {"_id": schedule_id}, reason, clock.now()):
            report_set_aside(schedule_id, reason)
        return True

    def finish_ended(self, now: datetime) -> int:
        """Finishes active schedules whose last occurrence has passed; returns how many."""
        finished = {"state": ScheduleState.FINISHED.value}
        return self._update_sound(
            {"state": ScheduleState.ACTIVE.value, "finishes_at": {"$lte": now}},
            [
                {"$set": {"unlogged": with_line_of_beat("finished", finished, now)}},
                {"$set": finished},
                {"$unset": "finishes_at"},
            ],
        )

    def _update_sound(self, which: Document, change: Document | list[Document]) -> int:
        """`update_many`; the schedules that make MongoDB reject it are set aside, and the others updated.
        Returns how many were modified, exactly where none was rejected."""
        try:
            return self._schedules.update_many(which, change).modified_count
        except REJECTED:
            ids = [row["_id"] for row in self._schedules.find(which, {"_id": 1})]

        def update(part: Sequence[str]) -> int:
            return self._schedules.update_many(which | {"_id": {"$in": list(part)}}, change).modified_count

        return sum(write_isolated(ids, update, self.condemn).results)


#: A page of the largest bodies and headers would be more than all the rest of a beat, and to open the secrets
#: among them more than all its other work.
WITHOUT_REQUEST = {
    **{f"action.{name}": 0 for kind in KINDS.values() for name in kind.not_for_beats},
    "sealed": 0,
    "signing": 0,
    "owed": 0,
    "unlogged": 0,
    "last_run": 0,
}


def without_request(row: Document) -> Document:
    """Returns a row that was fetched by `WITHOUT_REQUEST` so that it can be read as a schedule."""
    action = row.get("action")
    if not isinstance(action, dict) or type(action.get("type")) is not str:
        return row
    kind = KINDS.get(action["type"])
    return row | {"action": action | kind.in_their_place} if kind is not None else row


def _ids_of_others(tenants: Collection[str]) -> re.Pattern[str]:
    """What the ids of all other tenants' schedules match. MongoDB compares a pattern with the keys of an
    index, and the negation of one only with documents: so the pattern itself is a negation."""
    named = "|".join(re.escape(each) for each in tenants if each != TENANT)
    not_theirs = f"(?!({named}){SEPARATOR})" if named else ""
    not_default = f"(?=[^{SEPARATOR}]*{SEPARATOR})" if TENANT in tenants else ""
    return re.compile(f"^{not_theirs}{not_default}")


def _ready(before: datetime) -> Document:
    return unclaimed_active({"next_run_at": {"$lt": before}})


def unclaimed_active(which: Document) -> Document:
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


def _row(advance: CursorAdvance) -> Document:
    return {
        "next_run_at": advance.next_run_at,
        "finishes_at": advance.finishes_at,
        "checkpoint": dict(advance.checkpoint) if advance.checkpoint else None,
    }


@dataclass(frozen=True, slots=True)
class ClaimedOwedRange:
    """A schedule's oldest owed range; None with the reason where its document can no longer be read."""

    schedule_id: str
    created_at: datetime | None
    range: OwedRange | None
    queue: str = CALLBACKS
    lateness: Lateness = DEFAULT_LATENESS
    reason: str = ""


class OwingSchedule(NamedTuple):
    """A schedule with owed ranges."""

    id: str


class OwedRanges:
    def __init__(self, mongo: Mongo, calendars: Calendars) -> None:
        self._calendars = calendars
        self._schedules = mongo.collection("schedules")
        self._majority = mongo.majority("schedules")

    def waiting(self, *, limit: int, but_tenants: Collection[str] = ()) -> list[OwingSchedule]:
        """Schedules with owed ranges that no beat has claimed, those furthest behind first; none of
        `but_tenants`, which the index leaves out."""
        # Without the first bound MongoDB reads all documents for the second one.
        of_others = {"owed.next_run_at": {"$gte": MinKey()}, "tenant": {"$nin": list(but_tenants)}}
        which = _unclaimed_range() | of_others
        rows = self._schedules.find(which, {"_id": 1}, hint=OWED_RANGES)
        return [OwingSchedule(row["_id"]) for row in rows.sort("owed.next_run_at", 1).limit(limit)]

    def claim(self, ids: Sequence[str], *, lease_seconds: float) -> tuple[str, list[ClaimedOwedRange]]:
        """Claims those that are still free. Returns the token and the oldest range of each."""
        token = new_token()
        # Claimed ranges are read back by the token.
        written_by_token(
            lambda: self._schedules.update_many(
                {**_unclaimed_range(), "_id": {"$in": list(ids)}},
                [{"$set": {"owed_owner": token, "owed_lease_until": lease(lease_seconds)}}],
                hint=BY_ID,
            )
        )
        which = {"_id": {"$in": list(ids)}, "owed_owner": token}
        rows = self._majority.find(which, {"created_at": 1, "owed": 1, "queue": 1, "lateness": 1})
        return token, [self._claimed(row) for row in rows]

    def _claimed(self, row: Document) -> ClaimedOwedRange:
        try:
            owed = from_owed_document(row["owed"][0])
            if owed.calendar is not None:
                use = self._calendars.attached_use(owed.calendar, tenant_of(row["_id"]))
                owed = replace(owed, calendar=use)
            queue, lateness = row.get("queue") or CALLBACKS, read_lateness(row.get("lateness"))
            return ClaimedOwedRange(row["_id"], row["created_at"], owed, queue, lateness)
        except STORE_FAULTS:
            raise
        except Exception as error:  # a document edited by hand may cause any error
            return ClaimedOwedRange(row["_id"], None, None, reason=f"{type(error).__name__}: {error}")

    def advance(
        self,
        schedule_id: str,
        token: str,
        remainder: OwedRange | None,
        session: ClientSession | None = None,
    ) -> bool:
        """Replaces the oldest range by `remainder`, or removes it for None, and releases the schedule.

        Events first, this second: a crash between the two expands once more, onto the same ids. False when
        the schedule was deleted meanwhile, or the claim was lost. Within the transaction of `session`, if
        given.
        """
        first = [to_owed_document(remainder)] if remainder else []
        return self._replace_oldest(schedule_id, token, first, {}, session)

    def drop(self, schedule_id: str, token: str, reason: str, now: datetime) -> bool:
        """Removes the oldest range, which cannot be expanded; the schedule says why in its `reason`."""
        said = {"reason": {"$literal": reason[:1000]}, "updated_at": now}
        return self._replace_oldest(schedule_id, token, [], said)

    def _replace_oldest(
        self,
        schedule_id: str,
        token: str,
        first: list[Document],
        said: Document,
        session: ClientSession | None = None,
    ) -> bool:
        # Edits append ranges meanwhile.
        others = {"$cond": [{"$isArray": "$owed"}, {"$slice": ["$owed", 1, MAX_OWED]}, []]}
        left: Document = {"$concatArrays": [{"$literal": first}, others]}
        result = self._schedules.update_one(
            {"_id": schedule_id, "owed_owner": token},
            [
                {"$set": {"owed": left} | said},
                {"$set": {"owed": {"$cond": [{"$eq": ["$owed", []]}, "$$REMOVE", "$owed"]}}},
                {"$unset": ["owed_owner", "owed_lease_until"]},
            ],
            session=session,
        )
        return result.matched_count == 1


def _unclaimed_range() -> dict[str, Any]:
    return {
        "owed": {"$exists": True},
    } | unclaimed("owed_owner", "owed_lease_until")

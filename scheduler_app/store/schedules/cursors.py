"""Cursors: how far each schedule is expanded. Beats claim them by a token and advance them."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from random import sample
from typing import Any, NamedTuple

from pymongo.client_session import ClientSession
from pymongo.errors import AutoReconnect

from scheduler_app.actions.registry import KINDS
from scheduler_app.clock import clock
from scheduler_app.domain.calendars import NamedCalendar
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.store.calendars.calendars import Calendars, observing
from scheduler_app.store.documents.isolation import isolated
from scheduler_app.store.documents.leases import lease, unclaimed
from scheduler_app.store.documents.per_document_update import or_unset, own_value
from scheduler_app.store.encryption import SecretBox
from scheduler_app.store.faults import REJECTED, of_one_document
from scheduler_app.store.mongo import BY_ID, Document, Mongo, new_token
from scheduler_app.store.schedules.corrupt import CorruptSchedule, read
from scheduler_app.store.schedules.documents import READABLE
from scheduler_app.store.schedules.set_aside import (
    report_set_aside,
    set_aside_corrupt,
    set_schedule_aside,
)

#: Beats that look at the schedules of one calendar at once choose among so many pages.
BEATS_APART = 5


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
        """Active schedules that nobody has claimed and whose next occurrence without an event is before
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
        return self._claim(_ready(before), ids, lease_seconds)

    def claim_these(
        self, ids: Sequence[str], *, lease_seconds: float
    ) -> tuple[str, list[Schedule | CorruptSchedule]]:
        """The same for schedules that somebody has just made or edited, whatever their next occurrence."""
        return self._claim(_free({"$exists": True}), ids, lease_seconds)

    def _claim(
        self, free: Document, ids: Sequence[str], lease_seconds: float
    ) -> tuple[str, list[Schedule | CorruptSchedule]]:
        token = new_token()
        if not ids:
            return token, []

        def claim(part: Sequence[str]) -> None:
            # Claimed schedules are read back by the token: `update_many` is not retryable after a broken
            # connection.
            with suppress(AutoReconnect):
                self._schedules.update_many(
                    {**free, "_id": {"$in": list(part)}},
                    [{"$set": {"owner": token, "lease_until": lease(lease_seconds)}}],
                    hint=BY_ID,
                )

        isolated(ids, claim, self._condemn)
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
            return self._condemn(advance.schedule_id, error)

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

    def _condemn(self, schedule_id: str, error: Exception) -> bool:
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

    def with_older_zone_data(self, version: str, *, limit: int) -> list[Schedule]:
        """Active schedules whose future was computed with older zone data than `version`. Those that cannot
        be read are set aside: they would stay on this page for ever."""
        return self._active(
            {"state": ScheduleState.ACTIVE.value, "zone_data": {"$lt": version}}, limit, "zone_v1"
        )

    def with_other_days(self, named: NamedCalendar, now: datetime, *, limit: int) -> list[Schedule]:
        """Active schedules whose future was computed with other days of their calendar, but for those that
        expansion is behind with. Those that cannot be read are set aside, as above."""
        due: Document = {"$or": [{"next_run_at": {"$exists": False}}, {"next_run_at": {"$gt": now}}]}
        which = observing(named) | due | READABLE
        rows = self._schedules.find(which, {"_id": 1}, hint="calendar_v1").limit(BEATS_APART * limit)
        ids = [row["_id"] for row in rows]
        # Any of them, so that beats at work at once mostly look at others.
        chosen = sample(ids, min(limit, len(ids)))
        return self._active(which | {"_id": {"$in": chosen}}, limit, BY_ID) if chosen else []

    def _active(self, which: Document, limit: int, index: str) -> list[Schedule]:
        which = which | READABLE
        found = []
        for row in list(self._schedules.find(which, hint=index).limit(limit)):
            schedule = read(row, self._secret_box)
            if isinstance(schedule, Schedule):
                found.append(schedule)
            else:
                set_aside_corrupt(self._schedules, row, schedule)
        return self._calendars.attach(found)

    def keep_with_days(self, schedule: Schedule, named: NamedCalendar) -> bool:
        """Notes that the calendar's days compute the same future; False when the schedule was changed
        meanwhile, or another beat has noted it."""
        return self._keep(schedule, {"calendar_days": named.days_version})

    def keep_with_zone_data(self, schedule: Schedule, version: str) -> bool:
        """Notes that `version` computes the same future; False as above."""
        return self._keep(schedule, {"zone_data": version})

    def _keep(self, schedule: Schedule, change: Document) -> bool:
        # Not while a beat expands it: what that beat computes with may be older than what was compared.
        which = {
            "_id": schedule.id,
            "revision": schedule.revision,
            "next_run_at": schedule.next_run_at,
        } | unclaimed("owner", "lease_until")
        return self._schedules.update_one(which, {"$set": change}).modified_count == 1

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

        return sum(isolated(ids, update, self._condemn).results)


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
    return _free({"$lt": before})


def _free(next_run_at: Document) -> Document:
    """The condition of an active schedule that no beat is expanding."""
    return {
        "state": ScheduleState.ACTIVE.value,
        "next_run_at": next_run_at,
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

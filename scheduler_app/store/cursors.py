"""Cursors: how far each schedule is expanded. Beats claim them by token and move them on."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from random import sample
from typing import Any, NamedTuple

from pymongo.errors import AutoReconnect

from scheduler_app.clock import clock
from scheduler_app.domain.calendars import NamedCalendar
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.store.calendars import Calendars, observing
from scheduler_app.store.corrupt_schedules import (
    set_aside_unreadable,
    set_schedule_aside,
    told_of_schedule,
)
from scheduler_app.store.event_documents import lease, lease_over
from scheduler_app.store.faults import REJECTED, of_one_document
from scheduler_app.store.isolation import isolated
from scheduler_app.store.mongo import BY_ID, Document, Mongo, new_token
from scheduler_app.store.one_update import or_removed, own_value
from scheduler_app.store.schedule_documents import READABLE
from scheduler_app.store.secrets import Envelope
from scheduler_app.store.unreadable import Unreadable, read

#: Beats that look at the schedules of one calendar at once choose among so many pages.
BEATS_APART = 5


@dataclass(frozen=True, slots=True)
class Advance:
    """Where a schedule's expansion has come to, written after its events."""

    schedule_id: str
    next_run_at: datetime | None
    finishes_at: datetime | None
    checkpoint: Mapping[str, Any] | None


class Ready(NamedTuple):
    """A schedule that wants events."""

    next_run_at: datetime
    id: str


class Cursors:
    """They stand in the schedules' documents: an edit that makes the future anew takes them from a beat."""

    def __init__(self, mongo: Mongo, envelope: Envelope, calendars: Calendars) -> None:
        self._calendars = calendars
        self._schedules = mongo.collection("schedules")
        self._settled = mongo.majority("schedules")
        self._envelope = envelope

    def ready_for_expansion(
        self, before: datetime, *, limit: int, since: datetime | None = None
    ) -> list[Ready]:
        """Active schedules that nobody has and whose next occurrence without an event comes before `before`
        (and not before `since`), those first that have the least left."""
        which = _ready(before)
        if since is not None:
            which["next_run_at"]["$gte"] = since
        rows = self._schedules.find(which, {"next_run_at": 1}).sort("next_run_at", 1).limit(limit)
        return [Ready(row["next_run_at"], row["_id"]) for row in rows]

    def claim_for_expansion(
        self, ids: Sequence[str], before: datetime, *, lease_seconds: float
    ) -> tuple[str, list[Schedule | Unreadable]]:
        """Claims those that are still ready.

        Returns the token and the schedules, without what is sent (body, headers, signature), in the order of
        `ids`; among them those that can no longer be read.
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

        def claim(part: Sequence[str]) -> None:
            # What was won is read by the token: `update_many` is not retryable after a broken connection.
            with suppress(AutoReconnect):
                self._schedules.update_many(
                    {**free, "_id": {"$in": list(part)}},
                    [{"$set": {"owner": token, "lease_until": lease(lease_seconds)}}],
                    hint=BY_ID,
                )

        isolated(ids, claim, self._condemn)
        rows = self._settled.find({"_id": {"$in": list(ids)}, "owner": token}, UNREAD)
        won = {row["_id"]: without_request(row) for row in rows}
        # MongoDB gives them in the order of its own. A page may come to its end before the last of them: what
        # has the least left must not be that one, time and again.
        found = [read(won[each], self._envelope) for each in ids if each in won]
        return token, self._calendars.attach(found)

    def advance(self, advances: Sequence[Advance], token: str) -> int:
        """Writes the cursors of schedules still held by `token`, and lets go of them.

        Events first, cursor second: a crash between the two expands once more, onto the same ids. Returns how
        many were still held: the others were edited meanwhile, and their new owner begins anew.
        """
        if not advances:
            return 0

        def move(part: Sequence[Advance]) -> int:
            ids = [advance.schedule_id for advance in part]
            row = {"$set": {"row": own_value(ids, list(map(_row, part)))}}
            moved = {key: or_removed(f"$row.{key}") for key in ("next_run_at", "finishes_at", "checkpoint")}
            return self._schedules.update_many(
                {"_id": {"$in": ids}, "owner": token},
                [row, {"$set": moved}, {"$unset": ["row", "cut_pending", "owner", "lease_until"]}],
            ).matched_count

        def condemn(advance: Advance, error: Exception) -> bool:
            return self._condemn(advance.schedule_id, error)

        return sum(isolated(advances, move, condemn).results)

    def release(self, ids: Sequence[str], token: str) -> None:
        """Lets go of claimed schedules without a change; another tick takes them."""
        self._update_sound(
            {"_id": {"$in": list(ids)}, "owner": token}, {"$unset": {"owner": "", "lease_until": ""}}
        )

    def set_aside(self, schedule_id: str, token: str, reason: str, now: datetime) -> bool:
        """A schedule that cannot be expanded is in `error` with its reason; the others go on."""
        return set_schedule_aside(self._schedules, {"_id": schedule_id, "owner": token}, reason, now)

    def _condemn(self, schedule_id: str, error: Exception) -> bool:
        """Sets a schedule aside whose document MongoDB does not let be written to."""
        row = self._schedules.find_one({"_id": schedule_id})
        found = read(row, self._envelope) if row else None
        is_corrupt = isinstance(found, Unreadable) and not found.readable_elsewhere
        if found is not None and not is_corrupt and not of_one_document(error):
            return False
        reason = found.reason if isinstance(found, Unreadable) else str(error)
        if row and set_schedule_aside(self._schedules, {"_id": schedule_id}, reason, clock.now()):
            told_of_schedule(schedule_id, reason)
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
            schedule = read(row, self._envelope)
            if isinstance(schedule, Schedule):
                found.append(schedule)
            else:
                set_aside_unreadable(self._schedules, row, schedule)
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
        free = {"$or": [{"owner": {"$exists": False}}, *lease_over("lease_until")["$or"]]}
        which = {
            "_id": schedule.id,
            "revision": schedule.revision,
            "next_run_at": schedule.next_run_at,
        } | free
        return self._schedules.update_one(which, {"$set": change}).modified_count == 1

    def finish_ended(self, now: datetime) -> int:
        """Active schedules whose last occurrence has passed are finished."""
        return self._update_sound(
            {"state": ScheduleState.ACTIVE.value, "finishes_at": {"$lte": now}},
            {"$set": {"state": ScheduleState.FINISHED.value}, "$unset": {"finishes_at": ""}},
        )

    def _update_sound(self, which: Document, change: Document) -> int:
        """`update_many`, but for the schedules that MongoDB rejects it for: those are set aside. Returns how
        many were modified, exactly where none was rejected."""
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
    "action.body": 0,
    "action.headers": 0,
    "action.query": 0,
    "sealed": 0,
    "signing": 0,
    "owed": 0,
    "last_run": 0,
}


def without_request(row: Document) -> Document:
    action = row.get("action")
    return row | {"action": action | {"body": None, "headers": []}} if isinstance(action, dict) else row


def _ready(before: datetime) -> Document:
    return _free({"$lt": before})


def _free(next_run_at: Document) -> Document:
    """The condition of an active schedule that no beat is expanding."""
    return {
        "state": ScheduleState.ACTIVE.value,
        "next_run_at": next_run_at,
        "$or": [{"owner": {"$exists": False}}, *lease_over("lease_until")["$or"]],
    } | READABLE


def _row(advance: Advance) -> Document:
    return {
        "next_run_at": advance.next_run_at,
        "finishes_at": advance.finishes_at,
        "checkpoint": dict(advance.checkpoint) if advance.checkpoint else None,
    }

"""Revisions that beats write by themselves: of schedules whose future was computed with facts that have
changed since, which are claimed and cut in bulk; and of schedules whose pause is over.
"""

from collections.abc import Sequence
from datetime import datetime
from random import sample

from pymongo import UpdateOne

from scheduler_app.clock import clock
from scheduler_app.domain.audit import Change, Difference
from scheduler_app.domain.calendars import NamedCalendar
from scheduler_app.domain.ids import WholeId
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.store.audit_lines import new_line_document
from scheduler_app.store.bulk_writes import or_unset, value_by_id, write_isolated
from scheduler_app.store.calendars import Calendars, computed_with_other_days
from scheduler_app.store.encryption import SecretBox
from scheduler_app.store.ended_revisions import EndedRevisions
from scheduler_app.store.indexes import ENDS
from scheduler_app.store.mongo import Document, Mongo, written_by_token
from scheduler_app.store.schedules.cursors import WITHOUT_REQUEST, Cursors, unclaimed_active, without_request
from scheduler_app.store.schedules.documents import (
    READABLE,
    CorruptSchedule,
    read_schedule,
    report_set_aside,
    revision_document,
    set_aside_corrupt,
    set_schedule_aside,
)

#: Beats that look at the same schedules at once choose among this many pages.
BEATS_APART = 5

#: An edit of the same millisecond may have the same revision and cut; with all of these the same, it would be
#: the same future.
_STATE_FIELDS = ("revision", "revised_at", "state", "next_run_at")


class Remakes:
    """A schedule is claimed as expansion claims it: what one beat compares, no other expands or compares. An
    edit revokes the claim, and what was compared with the schedule as it was is not written then."""

    def __init__(self, mongo: Mongo, cursors: Cursors) -> None:
        self._schedules = mongo.collection("schedules")
        self._majority = mongo.majority("schedules")
        self._cursors = cursors
        self._ended = EndedRevisions(mongo)

    def with_older_zone_data(self, version: str, now: datetime, *, limit: int) -> list[str]:
        """Ids of schedules whose future was computed with older zone data than `version`, but for those that
        expansion is behind with or that are claimed."""
        return self._some(_with_older_zone_data(version, now), "zone_v1", limit)

    def with_other_days(self, named: NamedCalendar, now: datetime, *, limit: int) -> list[str]:
        """The same for a future that was computed with other days of the calendar."""
        return self._some(_with_other_days(named, now), "calendar_v1", limit)

    def claim_with_older_zone_data(
        self, ids: Sequence[str], version: str, now: datetime, *, lease_seconds: float
    ) -> tuple[str, list[Schedule]]:
        """Claims those of `ids` of which that is still true. Returns the token and the schedules, without
        what is sent; those that cannot be read are set aside, because they would come again for ever."""
        return self._claim(_with_older_zone_data(version, now), ids, lease_seconds)

    def claim_with_other_days(
        self, ids: Sequence[str], named: NamedCalendar, now: datetime, *, lease_seconds: float
    ) -> tuple[str, list[Schedule]]:
        """As `claim_with_older_zone_data`."""
        return self._claim(_with_other_days(named, now), ids, lease_seconds)

    def keep_with_zone_data(self, ids: Sequence[str], token: str, version: str) -> int:
        """Notes that `version` computes the same future, and releases the schedules; returns how many were
        still held."""
        return self._keep(ids, token, {"zone_data": version})

    def keep_with_days(self, ids: Sequence[str], token: str, named: NamedCalendar) -> int:
        """Notes that the calendar's days compute the same future; otherwise as above."""
        return self._keep(ids, token, {"calendar_days": named.days_version})

    def cut(self, revised: Sequence[Schedule], token: str) -> set[str]:
        """Begins the new revisions (`Schedule.revise`) of schedules still held by `token`, each in one write
        with its cut, and releases them. Returns the ids of those that were still held."""

        self._ended.keep([each.id for each in revised])

        def write(part: Sequence[Schedule]) -> set[str]:
            ids, rows = [each.id for each in part], [revision_document(each) for each in part]
            changed = {name: or_unset(f"$row.{name}") for name in rows[0]}
            written = written_by_token(
                lambda: self._schedules.update_many(
                    {"_id": {"$in": ids}, "owner": token},
                    [
                        {"$set": {"row": value_by_id(ids, rows)}},
                        {"$set": changed},
                        {"$unset": ["row", "owner", "lease_until"]},
                    ],
                )
            )
            if written is not None and written.matched_count == len(ids):
                return set(ids)
            # An edit came between, or the connection broke.
            return self._as_revised(part)

        def condemn(schedule: Schedule, error: Exception) -> bool:
            return self._cursors.condemn(schedule.id, error)

        return set[str]().union(*write_isolated(revised, write, condemn).results) if revised else set()

    def _as_revised(self, part: Sequence[Schedule]) -> set[str]:
        wanted = {each.id: _state_fields(revision_document(each)) for each in part}
        rows = self._majority.find({"_id": {"$in": list(wanted)}}, dict.fromkeys(_STATE_FIELDS, 1))
        return {row["_id"] for row in rows if _state_fields(row) == wanted[row["_id"]]}

    def _some(self, which: Document, index: str, limit: int) -> list[str]:
        rows = self._schedules.find(which, {"_id": 1}, hint=index).limit(BEATS_APART * limit)
        ids = [row["_id"] for row in rows]
        # Any of them, so that beats at work at once mostly look at others.
        return sample(ids, min(limit, len(ids)))

    def _claim(self, which: Document, ids: Sequence[str], lease_seconds: float) -> tuple[str, list[Schedule]]:
        token, found = self._cursors.claim(which, ids, lease_seconds=lease_seconds)
        for each in found:
            if isinstance(each, CorruptSchedule) and each.readable_elsewhere:
                self._cursors.release([each.schedule_id], token)
            elif isinstance(each, CorruptSchedule) and self._cursors.set_aside(
                each.schedule_id, token, each.reason, clock.now()
            ):
                report_set_aside(each.schedule_id, each.reason)
        return token, [each for each in found if isinstance(each, Schedule)]

    def _keep(self, ids: Sequence[str], token: str, change: Document) -> int:
        if not ids:
            return 0
        result = self._schedules.update_many(
            {"_id": {"$in": list(ids)}, "owner": token},
            {"$set": change, "$unset": {"owner": "", "lease_until": ""}},
        )
        return result.matched_count


def _with_older_zone_data(version: str, now: datetime) -> Document:
    return _to_compare({"zone_data": {"$lt": version}}, now)


def _with_other_days(named: NamedCalendar, now: datetime) -> Document:
    return _to_compare(computed_with_other_days(named), now)


def _to_compare(which: Document, now: datetime) -> Document:
    # What is owed up to now comes first. No `$or`, which the claim has already: also true of no next run.
    return unclaimed_active(which | {"next_run_at": {"$not": {"$lte": now}}})


def _state_fields(row: Document) -> tuple[object, ...]:
    return tuple(row.get(name) for name in _STATE_FIELDS)


class Pauses:
    def __init__(self, mongo: Mongo, secret_box: SecretBox, calendars: Calendars) -> None:
        self._calendars = calendars
        self._schedules = mongo.collection("schedules")
        self._secret_box = secret_box
        self._ended = EndedRevisions(mongo)

    def over(self, now: datetime, *, limit: int) -> list[Schedule]:
        """Schedules whose pause has ended by `now`, the longest ago first, without what is sent. One that
        cannot be read is set aside: it would stay on this page for ever."""
        which = _PAUSED | {"pause.until": {"$lte": now}} | READABLE
        rows = self._schedules.find(which, WITHOUT_REQUEST, sort=_FIRST_ENDED, limit=limit, hint=ENDS)
        found = []
        for row in list(rows):
            schedule = read_schedule(without_request(row), self._secret_box)
            if isinstance(schedule, CorruptSchedule):
                set_aside_corrupt(self._schedules, row, schedule)
            else:
                found.append(schedule)
        return self._calendars.attach(found)

    def end(self, resumed: Sequence[Schedule]) -> int:
        """Writes what `Schedule.resumed_by_itself` made, each in one write with its cut. Returns how many:
        another beat, or a person, may have changed some first, which are left alone."""
        if not resumed:
            return 0
        self._ended.keep([each.id for each in resumed])
        return self._schedules.bulk_write(list(map(_resumption, resumed)), ordered=False).modified_count

    def set_aside(self, schedule: Schedule, reason: str, now: datetime) -> None:
        """Puts a paused schedule that cannot be resumed into `error`, unless it was changed since."""
        which = {"_id": schedule.id, "version": schedule.version, "revision": schedule.revision}
        if set_schedule_aside(self._schedules, which | _PAUSED, reason, now):
            report_set_aside(schedule.id, reason)


_PAUSED: Document = {"state": ScheduleState.PAUSED.value}
#: The order of the index. Paused ones have none of the other times, unless somebody bent them.
_FIRST_ENDED = [("deleted_at", 1), ("finishes_at", 1), ("pause.until", 1)]


def _resumption(schedule: Schedule) -> UpdateOne:
    found: Document = {
        "state": schedule.state.value,
        "revision": schedule.revision,
        "revised_at": schedule.revised_at,
        "cuts": [list(cut) for cut in schedule.cuts],
        "cut_pending": True,
        "next_run_at": schedule.next_run_at,
        "zone_data": schedule.zone_data,
        "failures_since": schedule.failures_since,
        "calendar_days": schedule.calendar.days_version if schedule.calendar else None,
    }
    kept = {key: value for key, value in found.items() if value is not None}
    gone = ["pause", "reason", "finishes_at", "checkpoint", "owner", "lease_until", *(found.keys() - kept)]
    which: Document = {
        "_id": schedule.id,
        "version": schedule.version,
        "revision": schedule.revision - 1,
    }
    told = Difference({"state": ScheduleState.PAUSED.value}, {"state": schedule.state.value})
    line = new_line_document(Change("resumed", "schedule", WholeId(schedule.id), told, schedule.version))
    change = {"$set": kept, "$unset": dict.fromkeys(gone, ""), "$push": {"unlogged": line}}
    return UpdateOne(which | _PAUSED, change)

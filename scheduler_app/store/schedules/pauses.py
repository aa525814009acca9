"""Pauses that end by themselves: which are over, and the write that ends them."""

from collections.abc import Sequence
from datetime import datetime

from pymongo import UpdateOne

from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.store.calendars.calendars import Calendars
from scheduler_app.store.encryption import SecretBox
from scheduler_app.store.indexes import PAUSED_UNTIL
from scheduler_app.store.mongo import Document, Mongo
from scheduler_app.store.schedules.corrupt import CorruptSchedule, read
from scheduler_app.store.schedules.cursors import UNREAD, without_request
from scheduler_app.store.schedules.documents import READABLE
from scheduler_app.store.schedules.set_aside import (
    report_set_aside,
    set_aside_corrupt,
    set_schedule_aside,
)


class Pauses:
    def __init__(self, mongo: Mongo, secret_box: SecretBox, calendars: Calendars) -> None:
        self._calendars = calendars
        self._schedules = mongo.collection("schedules")
        self._secret_box = secret_box

    def over(self, now: datetime, *, limit: int) -> list[Schedule]:
        """Schedules whose pause has ended by `now`, the longest ago first, without what is sent. One that
        cannot be read is set aside: it would stay on this page for ever."""
        which = _PAUSED | {"pause.until": {"$lte": now}} | READABLE
        rows = self._schedules.find(which, UNREAD, hint=PAUSED_UNTIL).sort("pause.until", 1).limit(limit)
        found = []
        for row in list(rows):
            schedule = read(without_request(row), self._secret_box)
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
        return self._schedules.bulk_write(list(map(_end, resumed)), ordered=False).modified_count

    def set_aside(self, schedule: Schedule, reason: str, now: datetime) -> None:
        """Puts a paused schedule that cannot be resumed into `error`, unless it was changed since."""
        which = {"_id": schedule.id, "version": schedule.version, "revision": schedule.revision}
        if set_schedule_aside(self._schedules, which | _PAUSED, reason, now):
            report_set_aside(schedule.id, reason)


_PAUSED: Document = {"state": ScheduleState.PAUSED.value}


def _end(schedule: Schedule) -> UpdateOne:
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
    return UpdateOne(which | _PAUSED, {"$set": kept, "$unset": dict.fromkeys(gone, "")})

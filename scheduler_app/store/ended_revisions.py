"""What schedules and calendars said before they were changed: the witness judges the past by it.

A record is written before the cut that ends a revision, by whoever writes the cut: a person's edit, a beat
after new zone data or other holidays, the end of a pause, a new schedule under a deleted one's id. A crash
between the two leaves a record of a revision that has not ended, which is written over by the next one.
"""

from collections.abc import Collection, Iterable
from typing import Final

from pymongo import ReplaceOne

from scheduler_app.clock import clock
from scheduler_app.store.mongo import BY_ID, Document, Documents, Mongo

DOCUMENT_VERSION: Final = 1
#: What says when a revision fires, and for how long. Nothing of what is sent.
TIMING: Final = dict.fromkeys(
    (
        *("tenant", "state", "revision", "revised_at", "first_revision"),
        *("created_at", "updated_at", "deleted_at"),
        *("pinned", "rrule", "run_at", "timezone", "gap", "overlap", "trigger.kind", "zone_data"),
        *("calendar", "on_holiday", "calendar_days"),
    ),
    1,
)


class EndedRevisions:
    def __init__(self, mongo: Mongo) -> None:
        self._schedules = mongo.collection("schedules")
        self._calendars = mongo.collection("calendars")
        self._ended = mongo.collection("ended_revisions")
        self._ended_calendars = mongo.collection("ended_calendars")

    def keep(self, schedule_ids: Collection[str]) -> None:
        """Records the present revisions of these schedules, which are about to end. Raises a STORE_FAULT."""
        rows = self._schedules.find({"_id": {"$in": list(schedule_ids)}}, TIMING, hint=BY_ID)
        _write(
            self._ended,
            (row | {"_id": f"{row['_id']}/{row.get('revision')}", "schedule_id": row["_id"]} for row in rows),
        )

    def keep_calendar(self, calendar_id: str) -> None:
        """Records the present days of a calendar, which are about to change. Raises a STORE_FAULT."""
        rows = self._calendars.find({"_id": calendar_id}, hint=BY_ID)
        _write(
            self._ended_calendars,
            (
                row | {"_id": f"{calendar_id}/{row.get('days_version')}", "calendar_id": calendar_id}
                for row in rows
            ),
        )


def _write(collection: Documents, rows: Iterable[Document]) -> None:
    now = clock.now()
    own = {"v": DOCUMENT_VERSION, "ended_at": now}
    writes = [ReplaceOne({"_id": row["_id"]}, row | own, upsert=True) for row in rows]
    if writes:
        collection.bulk_write(writes, ordered=False)

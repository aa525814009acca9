"""What inspections look for: events that are late, events that no worker may take, schedules without a
future. Each look reads a bounded part of an index.
"""

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import NamedTuple

from scheduler_app.domain.action import UNKNOWN_ORIGIN
from scheduler_app.domain.ids import WholeId
from scheduler_app.domain.schedule import PAUSED_BY_FAILURES, ScheduleState
from scheduler_app.domain.states import UNCLAIMED
from scheduler_app.domain.stored_fields import EARLIEST
from scheduler_app.store.indexes import BY_DUE, BY_NEXT_RUN, ENDS, ROUTED, STOPPED
from scheduler_app.store.mongo import BY_ID, Document, Mongo
from scheduler_app.store.paging import last_of, later_than

_SCHEDULE: Document = {"$cond": [{"$eq": [{"$type": "$schedule_id"}, "string"]}, "$schedule_id", ""]}
_ORIGIN: Document = {"$cond": [{"$eq": [{"$type": "$origin"}, "string"]}, "$origin", UNKNOWN_ORIGIN]}


class OverdueEvents(NamedTuple):
    """Events of one schedule, or messages of one tenant, that wait for one receiver."""

    tenant: str
    schedule_id: str
    """Empty for messages."""
    receiver: str
    number: int
    oldest: datetime


class InspectedSchedule(NamedTuple):
    """A schedule that somebody may be told of."""

    schedule_id: WholeId
    at: datetime
    said: str
    tags: tuple[str, ...]


class CauseInspections:
    def __init__(self, mongo: Mongo) -> None:
        self._events = mongo.collection("events")
        self._schedules = mongo.collection("schedules")

    def overdue(self, before: datetime, *, limit: int) -> list[OverdueEvents]:
        """Events that were due before then and no worker has claimed; `limit` of each state are looked at,
        those that wait for longest."""
        looks: list[list[Document]] = [
            [
                {"$match": {"state": state.value, "due_at": {"$gte": EARLIEST, "$lt": before}}},
                {"$sort": {"due_at": 1}},
                {"$limit": limit},
            ]
            for state in sorted(UNCLAIMED)
        ]
        others: list[Document] = [{"$unionWith": {"coll": "events", "pipeline": look}} for look in looks[1:]]
        return self._grouped(looks[0] + others)

    def queued(self, queue: str, *, limit: int) -> list[OverdueEvents]:
        """Events that wait in a queue; `limit` of them are looked at."""
        which = {"routed": True, "queue": queue, "state": {"$in": sorted(UNCLAIMED)}}
        which["due_at"] = {"$gte": EARLIEST}
        return self._grouped([{"$match": which}, {"$limit": limit}], hint=ROUTED)

    def far_ahead(self, after: datetime, *, limit: int) -> list[tuple[str, datetime]]:
        """Active schedules whose next occurrence is later than that, and when it is; not those that people
        gave an instant."""
        which = {
            "state": ScheduleState.ACTIVE.value,
            "next_run_at": {"$gt": after},
            "pinned": {"$type": "string"},
        }
        rows = self._schedules.find(which, {"next_run_at": 1}, hint=BY_NEXT_RUN).limit(limit)
        return [(row["_id"], row["next_run_at"]) for row in rows if isinstance(row["_id"], str)]

    def finished_with_calendar(self, *, limit: int) -> list[str]:
        """Schedules that have no occurrence any more, and observe a calendar, which may be why."""
        which = {"calendar": {"$exists": True}, "state": ScheduleState.FINISHED.value}
        rows = self._schedules.find(which, {"_id": 1}, hint="calendar_v1").limit(limit)
        return [row["_id"] for row in rows if isinstance(row["_id"], str)]

    def late_after(self, schedule_ids: Collection[str]) -> dict[str, float]:
        """After how many seconds of lateness the occurrences of those of the schedules count as late that say
        so. It asks nothing for no schedule."""
        found: dict[str, float] = {}
        if not schedule_ids:
            return found
        rows = self._schedules.find(
            {"_id": {"$in": list(schedule_ids)}}, {"lateness.late_after_seconds": 1}, hint=BY_ID
        )
        for row in rows:
            late = row.get("lateness")
            seconds = late.get("late_after_seconds") if isinstance(late, dict) else None
            if isinstance(seconds, int | float):
                found[row["_id"]] = float(seconds)
        return found

    def paused_by_failures(
        self, last: tuple[str, str], *, limit: int
    ) -> tuple[list[InspectedSchedule], tuple[str, str]]:
        """The schedules that their failures have paused, since when and what led to it: in the order of
        tenants and ids those after the last one that was looked at, and what the next look goes on after."""
        which = {"pause.reason": PAUSED_BY_FAILURES, "state": ScheduleState.PAUSED.value}
        fields = {"at": "$revised_at", "said": "$pause.note", "tags": 1}
        return self._after(last, which, fields, limit)

    def in_error(
        self, last: tuple[str, str], *, limit: int
    ) -> tuple[list[InspectedSchedule], tuple[str, str]]:
        """The schedules that were set aside, since when and why, in the same order."""
        fields = {"at": "$updated_at", "said": "$reason", "tags": 1}
        return self._after(last, {"state": "error"}, fields, limit)

    def _after(
        self, last: tuple[str, str], which: Document, fields: Document, limit: int
    ) -> tuple[list[InspectedSchedule], tuple[str, str]]:
        asked = self._schedules.find(which | later_than(last), fields | {"tenant": 1}, hint=STOPPED)
        rows = list(asked.sort([("tenant", 1), ("_id", 1)]).limit(limit))
        return _inspected(rows), last_of(rows, limit=limit)

    def ending(self, now: datetime, tenants: Collection[str], *, limit: int) -> list[InspectedSchedule]:
        """The active schedules of these tenants whose last occurrence has passed, and when that was."""
        which = {"state": ScheduleState.ACTIVE.value, "finishes_at": {"$lte": now}}
        which["tenant"] = {"$in": sorted(tenants)}
        fields = {"at": "$finishes_at", "tags": 1}
        return _inspected(self._schedules.find(which, fields, hint=ENDS).limit(limit))

    def _grouped(self, stages: list[Document], hint: str = BY_DUE) -> list[OverdueEvents]:
        owner = {"tenant": "$tenant", "schedule": _SCHEDULE, "receiver": _ORIGIN}
        group = {"_id": owner, "number": {"$sum": 1}, "oldest": {"$min": "$due_at"}}
        return [
            OverdueEvents(
                row["_id"]["tenant"],
                row["_id"]["schedule"],
                row["_id"]["receiver"],
                row["number"],
                row["oldest"],
            )
            for row in self._events.aggregate([*stages, {"$group": group}], hint=hint)
            # What is corrupt is set aside by another inspection.
            if isinstance(row["_id"].get("tenant"), str) and isinstance(row["oldest"], datetime)
        ]


def _inspected(rows: Iterable[Document]) -> list[InspectedSchedule]:
    found = []
    for row in rows:
        tags, at = row.get("tags"), row.get("at")
        if isinstance(row["_id"], str) and isinstance(at, datetime):
            named = tuple(str(tag) for tag in tags) if isinstance(tags, list) else ()
            found.append(InspectedSchedule(WholeId(row["_id"]), at, str(row.get("said") or ""), named))
    return found

"""What a forecast is made of: the schedules with a future, and the events that wait."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from scheduler_app.domain.action import UNKNOWN_ORIGIN
from scheduler_app.domain.forecast import Buckets
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.domain.states import LIVING, Kind
from scheduler_app.store.calendars import Calendars
from scheduler_app.store.encryption import SecretBox
from scheduler_app.store.events.documents import stored_origin
from scheduler_app.store.indexes import BY_DUE
from scheduler_app.store.mongo import Document, Mongo
from scheduler_app.store.schedules.cursors import WITHOUT_REQUEST, without_request
from scheduler_app.store.schedules.documents import READABLE, CorruptSchedule, read_schedule

_LIVING: Document = {"$in": sorted(LIVING)}
_ORIGIN: Document = {"$cond": [{"$eq": [{"$type": "$origin"}, "string"]}, "$origin", UNKNOWN_ORIGIN]}
_MILLISECOND = timedelta(milliseconds=1)


class WaitingCount(NamedTuple):
    """How many events wait for one receiver in one bucket."""

    bucket: int
    receiver: str
    messages: bool
    number: int


class RecentOccurrence(NamedTuple):
    """An occurrence that became an event a moment ago."""

    schedule_id: str
    run_time: datetime
    due_at: datetime
    receiver: str


class WaitingEvent(NamedTuple):
    """One event that waits."""

    id: str
    due_at: datetime
    receiver: str
    occurs_at: datetime | None
    """The run time of an occurrence that nothing was tried for; None for anything else."""
    is_message: bool


class Forecasts:
    def __init__(self, mongo: Mongo, secret_box: SecretBox, calendars: Calendars) -> None:
        self._schedules = mongo.collection("schedules")
        self._events = mongo.collection("events")
        self._secret_box = secret_box
        self._calendars = calendars

    def sample(self, tenant: str, size: int) -> tuple[int, list[str]]:
        """How many active schedules there are, and the ids of `size` of them by chance, or of all. By
        index alone."""
        which: Document = {"tenant": tenant, "state": ScheduleState.ACTIVE.value}
        total = self._schedules.count_documents(which, hint="list_state_v1")
        steps: list[Document] = [{"$match": which}, {"$project": {"_id": 1}}, {"$sample": {"size": size}}]
        rows = self._schedules.aggregate(steps, hint="list_state_v1")
        return total, [row["_id"] for row in rows]

    def read(self, ids: Sequence[str]) -> list[Schedule | CorruptSchedule]:
        """The schedules of these ids, without what they send."""
        which: Document = {"_id": {"$in": list(ids)}} | READABLE
        rows = self._schedules.find(which, WITHOUT_REQUEST).batch_size(max(1, len(ids)))
        return self._calendars.attach([read_schedule(without_request(row), self._secret_box) for row in rows])

    def waiting(
        self, tenant: str, buckets: Buckets, made_before: datetime, *, limit: int
    ) -> tuple[list[WaitingCount], int]:
        """The tenant's events that fall due in the buckets, without occurrences that became events since
        `made_before`; and how many were looked at, `limit` at most."""
        rows = list(
            self._events.aggregate(
                [
                    {
                        "$match": _due(buckets.start, buckets.end, tenant)
                        | {"$nor": [_made_since(made_before)]}
                    },
                    {"$limit": limit},
                    {
                        "$group": {
                            "_id": {
                                "bucket": {
                                    "$floor": {
                                        "$divide": [
                                            {"$subtract": ["$due_at", buckets.start]},
                                            buckets.width // _MILLISECOND,
                                        ]
                                    }
                                },
                                "origin": _ORIGIN,
                                "message": {"$eq": ["$kind", "message"]},
                            },
                            "count": {"$sum": 1},
                        }
                    },
                ],
                hint=BY_DUE,
            )
        )
        found = [
            WaitingCount(
                int(row["_id"]["bucket"]), row["_id"]["origin"], bool(row["_id"]["message"]), row["count"]
            )
            for row in rows
        ]
        return found, sum(each.number for each in found)

    def each_waiting(
        self, tenant: str, since: datetime, until: datetime, made_before: datetime, *, limit: int
    ) -> list[WaitingEvent]:
        """As `waiting`, one by one."""
        which = _due(since, until, tenant) | {"$nor": [_made_since(made_before)]}
        fields = {"due_at": 1, "origin": 1, "run_time": 1, "kind": 1, "attempt": 1}
        found = []
        for row in self._events.find(which, fields, hint=BY_DUE).limit(limit):
            planned = row.get("kind") == Kind.SCHEDULED and row.get("attempt") == 0
            run_time = row.get("run_time") if planned else None
            found.append(
                WaitingEvent(
                    row["_id"],
                    row["due_at"],
                    stored_origin(row),
                    run_time if isinstance(run_time, datetime) else None,
                    row.get("kind") == Kind.MESSAGE,
                )
            )
        return found

    def made_since(
        self, tenant: str, since: datetime, buckets: Buckets, *, limit: int
    ) -> list[RecentOccurrence]:
        """Occurrences that fall due in the buckets and became events since then, `limit` at most."""
        which = _due(buckets.start, buckets.end, tenant) | _made_since(since)
        fields = {"schedule_id": 1, "run_time": 1, "due_at": 1, "origin": 1}
        rows = self._events.find(which, fields, hint=BY_DUE).limit(limit)
        return [
            RecentOccurrence(row["schedule_id"], row["run_time"], row["due_at"], stored_origin(row))
            for row in rows
            if isinstance(row.get("schedule_id"), str) and isinstance(row.get("run_time"), datetime)
        ]

    def count(self, tenant: str, since: datetime, until: datetime, *, most: int) -> int:
        """How many events fall due in that time; no more than `most` are counted."""
        which = _due(since, until, tenant)
        return self._events.count_documents(which, hint=BY_DUE, limit=most)


def _due(since: datetime, until: datetime, tenant: str) -> Document:
    # What is an array is found like a date, until an inspection sets its event aside.
    when = {"$gte": since, "$lt": until, "$not": {"$type": "array"}}
    return {"state": _LIVING, "due_at": when, "tenant": tenant}


def _made_since(since: datetime) -> Document:
    return {"kind": "scheduled", "created_at": {"$gte": since}}

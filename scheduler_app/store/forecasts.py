"""What a forecast is made of: the schedules with a future, and the events that wait."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from scheduler_app.domain.action import UNKNOWN_ORIGIN
from scheduler_app.domain.forecast import EVERY_CALLBACK, Buckets, ForecastChoice
from scheduler_app.domain.http_action import destination_key
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.domain.states import LIVING, Kind
from scheduler_app.store.calendars import Calendars
from scheduler_app.store.encryption import SecretBox
from scheduler_app.store.events.documents import stored_origin
from scheduler_app.store.indexes import BY_DUE, BY_TAG, OF_DESTINATION, PENDING
from scheduler_app.store.mongo import BY_ID, Document, Mongo
from scheduler_app.store.schedules.cursors import WITHOUT_REQUEST, without_request
from scheduler_app.store.schedules.documents import READABLE, CorruptSchedule, read_schedule

#: Schedules with a tag whose waiting events are looked at, and schedules that are counted where others stand
#: for them.
MOST_TAGGED = 2_000
MOST_COUNTED = 100_000
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


class WaitingChoice(NamedTuple):
    """Which events are looked at, and by which index."""

    which: Document
    hint: str


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

    def sample(
        self, tenant: str, size: int, choice: ForecastChoice = EVERY_CALLBACK
    ) -> tuple[int, list[str]]:
        """How many active schedules there are of those that are chosen, and the ids of `size` of them by
        chance, or of all. By index alone, but for the states of chosen ones."""
        which, hint = _schedules_chosen(tenant, choice)
        which["state"] = ScheduleState.ACTIVE.value
        total = self._schedules.count_documents(which, hint=hint, limit=MOST_COUNTED)
        steps: list[Document] = [
            {"$match": which},
            {"$limit": MOST_COUNTED},
            {"$project": {"_id": 1}},
            {"$sample": {"size": size}},
        ]
        rows = self._schedules.aggregate(steps, hint=hint)
        return total, [row["_id"] for row in rows]

    def waiting_choice(self, tenant: str, choice: ForecastChoice) -> tuple[WaitingChoice, bool]:
        """The events that wait of those that are chosen, and whether that leaves out some: the schedules with
        a tag of which there are more than `MOST_TAGGED`."""
        which: Document = {"tenant": tenant}
        hint, more = BY_DUE, False
        if choice.destination is not None:
            which["origin"], hint = destination_key(choice.destination), OF_DESTINATION
        if choice.schedule_id is not None:
            which["schedule_id"], hint = choice.schedule_id, PENDING
        if choice.tag is not None:
            ids, more = self.owners(tenant, choice, limit=MOST_TAGGED)
            which["schedule_id"], hint = {"$in": ids}, PENDING
        return WaitingChoice(which, hint), more

    def owners(self, tenant: str, choice: ForecastChoice, *, limit: int) -> tuple[list[str], bool]:
        """The ids of the schedules that are chosen, `limit` at most, in whatever state; whether there are
        more."""
        which, hint = _schedules_chosen(tenant, choice)
        rows = self._schedules.find(which, {"_id": 1}, hint=hint).limit(limit + 1)
        ids = [row["_id"] for row in rows.batch_size(limit + 1)]
        return ids[:limit], len(ids) > limit

    def read(self, ids: Sequence[str]) -> list[Schedule | CorruptSchedule]:
        """The schedules of these ids, without what they send."""
        which: Document = {"_id": {"$in": list(ids)}} | READABLE
        rows = self._schedules.find(which, WITHOUT_REQUEST).batch_size(max(1, len(ids)))
        return self._calendars.attach([read_schedule(without_request(row), self._secret_box) for row in rows])

    def waiting(
        self, chosen: WaitingChoice, buckets: Buckets, made_before: datetime, *, limit: int
    ) -> tuple[list[WaitingCount], int]:
        """The chosen events that fall due in the buckets, without occurrences that became events since
        `made_before`; and how many were looked at, `limit` at most."""
        rows = list(
            self._events.aggregate(
                [
                    {
                        "$match": _due(buckets.start, buckets.end, chosen)
                        | {"$nor": [_made_since(made_before)]}
                    },
                    {"$limit": limit},
                    {
                        "$group": {
                            "_id": {
                                "bucket": {
                                    "$floor": {
                                        "$divide": [
                                            {"$subtract": ["$due_at", buckets.origin]},
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
                hint=chosen.hint,
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
        self, chosen: WaitingChoice, since: datetime, until: datetime, made_before: datetime, *, limit: int
    ) -> list[WaitingEvent]:
        """As `waiting`, one by one."""
        which = _due(since, until, chosen) | {"$nor": [_made_since(made_before)]}
        fields = {"due_at": 1, "origin": 1, "run_time": 1, "kind": 1, "attempt": 1}
        found = []
        for row in self._events.find(which, fields, hint=chosen.hint).limit(limit):
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
        self, chosen: WaitingChoice, since: datetime, buckets: Buckets, *, limit: int
    ) -> list[RecentOccurrence]:
        """Occurrences that fall due in the buckets and became events since then, `limit` at most."""
        which = _due(buckets.start, buckets.end, chosen) | _made_since(since)
        fields = {"schedule_id": 1, "run_time": 1, "due_at": 1, "origin": 1}
        rows = self._events.find(which, fields, hint=chosen.hint).limit(limit)
        return [
            RecentOccurrence(row["schedule_id"], row["run_time"], row["due_at"], stored_origin(row))
            for row in rows
            if isinstance(row.get("schedule_id"), str) and isinstance(row.get("run_time"), datetime)
        ]

    def count(self, chosen: WaitingChoice, since: datetime, until: datetime, *, most: int) -> int:
        """How many events fall due in that time; no more than `most` are counted."""
        which = _due(since, until, chosen)
        return self._events.count_documents(which, hint=chosen.hint, limit=most)


def _schedules_chosen(tenant: str, choice: ForecastChoice) -> tuple[Document, str]:
    """Those that are chosen, active or not, and the index that finds them."""
    which: Document = {"tenant": tenant}
    hint = "list_state_v1"
    if choice.destination is not None:
        which["action.destination"], hint = choice.destination, OF_DESTINATION
    if choice.tag is not None:
        which["tags"], hint = choice.tag, BY_TAG
    if choice.schedule_id is not None:
        which["_id"], hint = choice.schedule_id, BY_ID
    return which, hint


def _due(since: datetime, until: datetime, chosen: WaitingChoice) -> Document:
    # What is an array is found like a date, until an inspection sets its event aside.
    when = {"$gte": since, "$lt": until, "$not": {"$type": "array"}}
    # What a kill switch holds is due whenever that is off; the time that it has until then says nothing.
    return chosen.which | {"state": _LIVING, "due_at": when, "held": {"$exists": False}}


def _made_since(since: datetime) -> Document:
    return {"kind": "scheduled", "created_at": {"$gte": since}}

"""What schedules expect of their runs, and what their runs are like. Each look reads a bounded part of an
index; schedules that expect nothing are in none of them.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Any, Final, NamedTuple

from scheduler_app.domain.expectation import ObservedRuns
from scheduler_app.domain.ids import WholeId
from scheduler_app.domain.schedule import ScheduleState
from scheduler_app.domain.states import State
from scheduler_app.domain.stored_fields import Corrupt, instant, one_of, text
from scheduler_app.store.indexes import EXPECTING
from scheduler_app.store.mongo import BY_ID, Document, Mongo
from scheduler_app.store.paging import MAX_MS, last_of, later_than
from scheduler_app.store.schedules.documents import read_expectation

#: Unfinished events of one schedule that are looked at.
UNFINISHED_LOOKED_AT: Final = 100
#: Of the newest runs of a schedule, where one that succeeded is looked for.
RUNS_LOOKED_AT: Final = 2_000
_STATES: Final = tuple(state.value for state in ScheduleState)
_READ: Final = {"state": 1, "expect": 1, "created_at": 1, "revised_at": 1, "tags": 1, "tenant": 1}


class UnfinishedRuns(NamedTuple):
    running: tuple[str, datetime] | None
    """The event whose attempt has run for longest, and since when."""
    oldest: tuple[str, datetime] | None
    """The oldest event, and its run time."""


class Expectations:
    def __init__(self, mongo: Mongo) -> None:
        self._schedules = mongo.collection("schedules")
        self._events = mongo.collection("events")

    def after(self, last: tuple[str, str], *, limit: int) -> tuple[list[ObservedRuns], tuple[str, str]]:
        """The schedules that expect something, in the order of tenants and ids, after the last one that was
        looked at, and what the next look goes on after; nothing is known of their runs yet. What is deleted
        or cannot be read is left out."""
        which = {"expect": {"$exists": True}} | later_than(last)
        asked = self._schedules.find(which, _READ, hint=EXPECTING).sort([("tenant", 1), ("_id", 1)])
        rows = list(asked.limit(limit))
        return _sound(rows), last_of(rows, limit=limit)

    def expecting(self, ids: Collection[str]) -> set[str]:
        """Those of the schedules that expect something."""
        which = {"_id": {"$in": list(ids)}, "expect": {"$exists": True}}
        rows = self._schedules.find(which, _READ, hint=BY_ID)
        return {each.schedule_id for each in _sound(rows)}

    def unfinished(self, schedule_id: str, now: datetime) -> UnfinishedRuns:
        """What is known of the runs of a schedule that were due and have not ended: of the oldest
        `UNFINISHED_LOOKED_AT` of them."""
        which = {"schedule_id": schedule_id, "due_at": {"$exists": True}, "run_time": {"$lte": now}}
        rows = self._events.find(which, {"run_time": 1, "since": _RUNNING_SINCE}, hint="pending_v1")
        found = list(
            rows.sort([("schedule_id", -1), ("run_time", 1), ("_id", 1)]).limit(UNFINISHED_LOOKED_AT)
        )
        # What is corrupt is set aside by another inspection.
        oldest = next((row for row in found if isinstance(row.get("run_time"), datetime)), None)
        running = [row for row in found if isinstance(row.get("since"), datetime)]
        longest = min(running, key=lambda row: row["since"], default=None)
        return UnfinishedRuns(
            None if longest is None else (str(longest["_id"]), longest["since"]),
            None if oldest is None else (str(oldest["_id"]), oldest["run_time"]),
        )

    def last_success(self, schedule_id: str, now: datetime) -> datetime | None:
        """When a run of the schedule last succeeded; of its newest `RUNS_LOOKED_AT` runs one is found."""
        rows = self._events.aggregate(
            [
                {"$match": {"schedule_id": schedule_id, "run_time": {"$lte": now}}},
                {"$sort": {"run_time": -1, "_id": -1}},
                {"$limit": RUNS_LOOKED_AT},
                {"$match": {"state": State.COMPLETED}},
                {"$limit": 1},
                {"$project": {"archived_at": 1}},
            ],
            hint="schedule_v1",
            maxTimeMS=MAX_MS,
        )
        at = next((row.get("archived_at") for row in rows), None)
        return at if isinstance(at, datetime) else None


def _list(name: str) -> Document:
    return {"$cond": [{"$isArray": f"${name}"}, f"${name}", []]}


_CLAIMS: Document = {"$filter": {"input": _list("status"), "cond": {"$eq": ["$$this.status", State.RUNNING]}}}
#: Since when an attempt of an event runs: since the claim, or the event's time if that is later; where its
#: receiver reports later, since the request. None where none does.
_RUNNING_SINCE: Document = {
    "$switch": {
        "branches": [
            {"case": {"$ne": ["$state", State.RUNNING]}, "then": None},
            {
                "case": {"$eq": ["$completion.awaiting", True]},
                "then": {"$let": {"vars": {"last": {"$last": _list("attempts")}}, "in": "$$last.started_at"}},
            },
        ],
        "default": {
            "$max": [{"$let": {"vars": {"last": {"$last": _CLAIMS}}, "in": "$$last.time"}}, "$due_at"]
        },
    }
}


def _sound(rows: Any) -> list[ObservedRuns]:
    found = []
    for row in rows:
        try:
            one = _observed(row)
        except Corrupt:
            continue
        if one is not None:
            found.append(one)
    return found


def _observed(row: Document) -> ObservedRuns | None:
    """None for one that is deleted or expects nothing. Raises Corrupt."""
    state = ScheduleState(one_of(row.get("state"), "state", _STATES))
    expect = read_expectation(row.get("expect"))
    if expect is None or state is ScheduleState.DELETED:
        return None
    tags = row.get("tags")
    return ObservedRuns(
        schedule_id=WholeId(text(row["_id"], "_id")),
        expect=expect,
        tags=tuple(str(tag) for tag in tags) if isinstance(tags, list) else (),
        is_active=state is ScheduleState.ACTIVE,
        counted_from=max(
            instant(row.get("created_at"), "created_at"), instant(row.get("revised_at"), "revised_at")
        ),
    )

"""Figures of events for charts: the newest events' outcomes, and counts by the quarter of an hour. All are
read by index, a bounded number of events at most.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from scheduler_app.domain.states import State
from scheduler_app.store.mongo import Document, Mongo
from scheduler_app.store.paging import MAX_MS

_FIELDS: Document = {
    "run_time": 1,
    "state": 1,
    "attempts": {"$slice": -1},
    "schedule_id": 1,
    "archived_at": 1,
    "attempt": 1,
}


class EventSummary(NamedTuple):
    """An event and its last attempt; what its document lacks, or has of another type, is None."""

    id: str
    schedule_id: str
    run_time: datetime
    state: State
    lag_ms: float | None
    """How late the last attempt started."""
    duration_ms: float | None
    status_code: int | None
    was_withdrawn: bool = False
    """Whether it was cancelled before it was due, by an edit, a pause or a deletion: nothing came of it."""
    tries: int = 0
    """How many attempts were made."""


class EventFigures:
    """Reads only, by the indexes of the lists."""

    def __init__(self, mongo: Mongo) -> None:
        self._events = mongo.collection("events")

    def newest(
        self,
        tenant: str,
        since: datetime,
        until: datetime,
        *,
        most: int,
        schedule_ids: Sequence[str] | None = None,
    ) -> list[EventSummary]:
        """The tenant's events whose run times lie from `since` to `until` (exclusive), newest first; `most`
        at most, those that were withdrawn included; of some schedules alone, if they are given. Raises a
        STORE_FAULT."""
        which, hint = _range(tenant, since, until, schedule_ids)
        return self._outcomes(which, hint, most)

    def of_schedule(
        self, schedule_id: str, since: datetime, until: datetime, *, most: int
    ) -> list[EventSummary]:
        """The same of one schedule, without what was withdrawn."""
        which: Document = {"schedule_id": schedule_id, "run_time": {"$gte": since, "$lt": until}}
        return [each for each in self._outcomes(which, "schedule_v1", most) if not each.was_withdrawn]

    def last_of_each(
        self, schedule_ids: Iterable[str], until: datetime, *, most: int
    ) -> dict[str, list[EventSummary]]:
        """The last `most` events of each schedule before `until`, newest first, without what was withdrawn.
        One query in all: a union of as many index scans as there are schedules."""
        ids = list(schedule_ids)
        if not ids:
            return {}
        scans = [self._scan(each, until, most) for each in ids]
        pipeline = [*scans[0], *({"$unionWith": {"coll": "events", "pipeline": each}} for each in scans[1:])]
        found: dict[str, list[EventSummary]] = {each: [] for each in ids}
        for row in self._events.aggregate(pipeline, maxTimeMS=MAX_MS):
            if (outcome := _event_summary(row)) is None or outcome.was_withdrawn:
                continue
            if outcome.schedule_id in found:
                found[outcome.schedule_id].append(outcome)
        return found

    def _scan(self, schedule_id: str, until: datetime, most: int) -> list[Document]:
        last = {"$cond": [{"$isArray": "$attempts"}, {"$slice": ["$attempts", -1]}, []]}
        return [
            {"$match": {"schedule_id": schedule_id, "run_time": {"$lt": until}}},
            {"$sort": {"run_time": -1, "_id": -1}},
            {"$limit": most},
            {"$project": _FIELDS | {"attempts": last}},
        ]

    def _outcomes(self, which: Document, hint: str, most: int) -> list[EventSummary]:
        rows = self._events.find(
            which,
            _FIELDS,
            sort=[("run_time", -1), ("_id", -1)],
            limit=most,
            hint=hint,
            max_time_ms=MAX_MS,
        )
        return [outcome for row in rows.to_list() if (outcome := _event_summary(row)) is not None]


def _range(
    tenant: str, since: datetime, until: datetime, schedule_ids: Sequence[str] | None
) -> tuple[Document, str]:
    """What is matched, and by which index."""
    run_time: Document = {"$gte": since, "$lt": until}
    if schedule_ids is None:
        return {"tenant": tenant, "run_time": run_time}, "list_v1"
    return {"schedule_id": {"$in": list(schedule_ids)}, "run_time": run_time}, "schedule_v1"


def _event_summary(row: Document) -> EventSummary | None:
    """None for a document that no figure can be made of."""
    run_time, attempts = row.get("run_time"), row.get("attempts")
    try:
        state = State(str(row.get("state")))
    except ValueError:
        return None
    if not isinstance(run_time, datetime):
        return None
    last = attempts[-1] if isinstance(attempts, list) and attempts else None
    last = last if isinstance(last, dict) else {}
    status, ended = last.get("status_code"), row.get("archived_at")
    return EventSummary(
        str(row["_id"]),
        row["schedule_id"] if isinstance(row.get("schedule_id"), str) else "",
        run_time,
        state,
        _number(last.get("lag_ms")),
        _number(last.get("duration_ms")),
        status if isinstance(status, int) else None,
        state is State.CANCELLED and isinstance(ended, datetime) and ended < run_time,
        tries if isinstance(tries := row.get("attempt"), int) else 0,
    )


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


#: Of each schedule.
MOST = 5


class NewestEvents:
    def __init__(self, mongo: Mongo) -> None:
        self._schedules = mongo.collection("schedules")

    def states(self, schedule_ids: Sequence[str], among: frozenset[State]) -> dict[str, list[State]]:
        """For each of the schedules the states of its newest events that are in one of `among`, the
        newest first, at most `MOST`. Events of a deleted schedule of the same id do not count."""
        newest: list[Document] = [
            {"$match": {"state": {"$in": sorted(among)}, "$expr": {"$gte": ["$revision", "$$first"]}}},
            {"$sort": {"run_time": -1, "_id": -1}},
            {"$limit": MOST},
            {"$project": {"state": 1}},
        ]
        joined: Document = {
            "from": "events",
            "localField": "_id",
            "foreignField": "schedule_id",
            "let": {"first": {"$ifNull": ["$first_revision", 1]}},
            "pipeline": newest,
            "as": "events",
        }
        pipeline: list[Document] = [
            {"$match": {"_id": {"$in": list(schedule_ids)}}},
            {"$lookup": joined},
            {"$project": {"events.state": 1}},
        ]
        rows: Any = self._schedules.aggregate(pipeline, hint="_id_", maxTimeMS=MAX_MS)
        return {row["_id"]: [State(each["state"]) for each in row["events"]] for row in rows}

"""How many events fell into each quarter of an hour: counted by index, a bounded number of them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from scheduler_app.domain.event import State
from scheduler_app.domain.tenants import tenant_of
from scheduler_app.store.mongo import Document, Mongo
from scheduler_app.store.paging import MAX_SECONDS

#: Every zone of today is off UTC by a multiple of it.
STEP_MS = 15 * 60 * 1_000
_AT: Document = {
    "$toDate": {"$subtract": [{"$toLong": "$run_time"}, {"$mod": [{"$toLong": "$run_time"}, STEP_MS]}]}
}
#: `counts` is 1 for what is of the schedules that are asked for, or else 0.
_COUNTED: Document = {
    "$facet": {
        "quarters": [
            {"$match": {"counts": 1}},
            {"$group": {"_id": _AT, "count": {"$sum": 1}}},
        ],
        "scans": [{"$group": {"_id": "$scan", "looked_at": {"$sum": 1}}}],
    }
}


class Counted(NamedTuple):
    """Events by the quarter of an hour, in UTC, of their run times."""

    quarters: Mapping[datetime, int]
    is_whole: bool
    """False where there may be more than were looked at."""


class HourlyCounts:
    """Reads only, by the indexes of the lists."""

    def __init__(self, mongo: Mongo) -> None:
        self._events = mongo.collection("events")

    def events(
        self,
        schedule_ids: Sequence[str] | None,
        since: datetime,
        until: datetime,
        *,
        tenant: str,
        most: int,
    ) -> Counted:
        """The tenant's events, or those of some schedules, whose run times lie from `since` to `until`
        (exclusive): the newest `most`, of several schedules as many of each as their share. No document is
        read. Raises a STORE_FAULT."""
        span: Document = {"$gte": since, "$lt": until}
        if schedule_ids is None:
            return self._counted([self._scan({"tenant": tenant, "run_time": span}, most, 0)], "list_v1", most)
        ids = [each for each in schedule_ids if tenant_of(each) == tenant]
        if not ids:
            return Counted({}, True)
        share = max(most // len(ids), 1)
        scans = [
            self._scan({"schedule_id": each, "run_time": span}, share, number)
            for number, each in enumerate(ids)
        ]
        return self._counted(scans, "schedule_v1", share)

    def dead_letters(
        self,
        schedule_ids: Sequence[str] | None,
        since: datetime,
        until: datetime,
        *,
        tenant: str,
        most: int,
    ) -> Counted:
        """The same of dead letters, among the tenant's newest `most` of that time."""
        which: Document = {
            "tenant": tenant,
            "state": State.ERROR.value,
            "run_time": {"$gte": since, "$lt": until},
        }
        newest: list[Document] = [
            {"$match": which},
            {"$sort": {"run_time": -1, "_id": -1}},
            {"$limit": most},
            {
                "$project": {
                    "run_time": 1,
                    "counts": {"$literal": 1} if schedule_ids is None else _is_one_of(schedule_ids),
                }
            },
        ]
        return self._counted([newest], "dead_v2", most)

    @staticmethod
    def _scan(which: Document, most: int, number: int) -> list[Document]:
        return [
            {"$match": which},
            {"$sort": {"run_time": -1, "_id": -1}},
            {"$limit": most},
            {"$project": {"_id": 0, "run_time": 1, "counts": {"$literal": 1}, "scan": {"$literal": number}}},
        ]

    def _counted(self, scans: Sequence[list[Document]], hint: str, most: int) -> Counted:
        """The union of scans, each of which looks at `most`."""
        united = [{"$unionWith": {"coll": "events", "pipeline": each}} for each in scans[1:]]
        options: dict[str, Any] = {"hint": hint, "maxTimeMS": int(MAX_SECONDS * 1000)}
        (found,) = self._events.aggregate([*scans[0], *united, _COUNTED], **options)
        counts = {row["_id"]: row["count"] for row in found["quarters"]}
        return Counted(counts, all(row["looked_at"] < most for row in found["scans"]))


def _is_one_of(schedule_ids: Sequence[str]) -> Document:
    return {"$cond": [{"$in": ["$schedule_id", list(schedule_ids)]}, 1, 0]}

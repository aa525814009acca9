"""The newest events of each of some schedules."""

from collections.abc import Sequence
from typing import Any

from scheduler_app.domain.event import State
from scheduler_app.domain.tenants import tenant_of
from scheduler_app.store.mongo import Document, Mongo
from scheduler_app.store.paging import MAX_SECONDS

#: Of each schedule.
MOST = 5


class NewestEvents:
    def __init__(self, mongo: Mongo) -> None:
        self._schedules = mongo.collection("schedules")

    def states(
        self, schedule_ids: Sequence[str], among: frozenset[State], *, tenant: str
    ) -> dict[str, list[State]]:
        """For each of the tenant's schedules the states of its newest events that are in one of `among`, the
        newest first, at most `MOST`. Events of a deleted schedule of the same id do not count."""
        own = [each for each in schedule_ids if tenant_of(each) == tenant]
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
            {"$match": {"_id": {"$in": own}}},
            {"$lookup": joined},
            {"$project": {"events.state": 1}},
        ]
        rows: Any = self._schedules.aggregate(pipeline, hint="_id_", maxTimeMS=int(MAX_SECONDS * 1000))
        return {row["_id"]: [State(each["state"]) for each in row["events"]] for row in rows}

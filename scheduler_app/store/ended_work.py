"""What has ended, of tenants that keep it for less time than the installation does: found and removed in
pages. What the whole installation keeps no longer is removed by MongoDB itself, by the indexes of retention.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from scheduler_app.domain.stored_fields import EARLIEST
from scheduler_app.store.indexes import OF_TENANT
from scheduler_app.store.mongo import BY_ID, Document, Documents, Mongo

#: The events of a tenant by their run times, and its failures by their beginnings.
_BY_TIME: Final = "list_v1"


@dataclass(frozen=True, slots=True)
class RemovedEvents:
    """A page of events that were removed."""

    count: int
    reached: datetime | None
    """Where the next page begins; None where nothing is left."""


class EndedWork:
    def __init__(self, mongo: Mongo) -> None:
        self._events = mongo.collection("events")
        self._causes = mongo.collection("causes")
        self._redrives = mongo.collection("redrives")

    def remove_events(
        self, tenant: str, before: datetime, *, reached: datetime | None = None, limit: int
    ) -> RemovedEvents:
        """Removes events of a tenant that ended before `before`, those with the earliest run times first.

        No event ends long before its run time but a message that is cancelled: such a one is kept until its
        run time is as old. What is living is passed over, once a round: `reached` is where a page goes on.
        """
        ended: Document = {"archived_at": {"$lt": before}}
        times = {"$gte": reached or EARLIEST, "$lt": before}
        rows = self._events.find(
            {"tenant": tenant, "run_time": times} | ended, {"run_time": 1}, hint=_BY_TIME
        ).sort("run_time", 1)
        found = list(rows.limit(limit).batch_size(limit))
        count = _remove(self._events, found, ended)
        return RemovedEvents(count, found[-1]["run_time"] if len(found) == limit else None)

    def remove_causes(self, tenant: str, before: datetime, *, limit: int) -> int:
        """Removes up to `limit` failures of a tenant that were over before `before`."""
        which: Document = {"tenant": tenant, "since": {"$lt": before}}
        over: Document = {"over_at": {"$lt": before}}
        return _remove(self._causes, _ids(self._causes, which | over, _BY_TIME, limit), over)

    def remove_redrives(self, tenant: str, before: datetime, *, limit: int) -> int:
        """Removes up to `limit` redrives of a tenant that ended before `before`."""
        ended: Document = {"ended_at": {"$lt": before}}
        return _remove(
            self._redrives, _ids(self._redrives, {"tenant": tenant} | ended, OF_TENANT, limit), ended
        )


def _ids(documents: Documents, which: Document, hint: str, limit: int) -> list[Document]:
    return list(documents.find(which, {"_id": 1}, hint=hint).limit(limit).batch_size(limit))


def _remove(documents: Documents, found: Sequence[Document], ended: Document) -> int:
    """Removes those of these that are still `ended`: an event may have been sent again meanwhile."""
    which: Document = {"_id": {"$in": [row["_id"] for row in found]}} | ended
    return documents.delete_many(which, hint=BY_ID).deleted_count if found else 0

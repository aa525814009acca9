"""How each schedule's newest run ended, noted on the schedule."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from scheduler_app.domain.event import State
from scheduler_app.domain.schedule import ScheduleState
from scheduler_app.store.documents.isolation import isolated
from scheduler_app.store.documents.per_document_update import own_value
from scheduler_app.store.mongo import BY_ID, Document, Mongo
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

#: An event older than its schedule by more than this belongs to an earlier schedule of the same id.
CLOCKS_DIFFER = timedelta(minutes=1)


class Run(NamedTuple):
    """What came of an event so far."""

    schedule_id: str
    time: datetime
    """Its run time, by which the newest is told."""
    outcome: State
    event_id: str
    ended_at: datetime

    @property
    def order(self) -> tuple[datetime, datetime]:
        """The greater, the newer: retries of an older occurrence may end after a newer one."""
        return self.time, self.ended_at


class LastRuns:
    def __init__(self, mongo: Mongo) -> None:
        self._schedules = mongo.collection("schedules")

    def write(self, runs: Sequence[Run]) -> None:
        """Notes runs, one for each schedule, where they are newer than what is noted. Written twice, or late,
        they change nothing. A document that MongoDB rejects is passed over. Raises a STORE_FAULT."""

        def write(part: Sequence[Run]) -> None:
            ids = [run.schedule_id for run in part]
            which = {"_id": {"$in": ids}, "state": {"$ne": ScheduleState.DELETED.value}}
            row = own_value(ids, list(map(run_document, part)))
            self._schedules.update_many(
                which,
                [{"$set": {"row": row}}, {"$set": {"last_run": _NEWEST}}, {"$unset": ["row"]}],
                hint=BY_ID,
            )

        def pass_over(run: Run, error: Exception) -> bool:
            log.warning(
                "schedule.last_run_rejected",
                message="MongoDB rejects the note of a schedule's last run; its document may be corrupt",
                schedule_id=run.schedule_id,
                error=str(error)[:300],
            )
            return True

        isolated(runs, write, pass_over)


def run_document(run: Run) -> Document:
    """How a schedule's document keeps its newest run."""
    return {
        "time": run.time,
        "outcome": run.outcome.value,
        "event_id": run.event_id,
        "ended_at": run.ended_at,
    }


_SUPERSEDED: Document = {
    "$or": [
        {"$gt": ["$last_run.time", "$row.time"]},
        {
            "$and": [
                {"$eq": ["$last_run.time", "$row.time"]},
                {"$gte": ["$last_run.ended_at", "$row.ended_at"]},
            ]
        },
        {"$gt": [{"$subtract": ["$created_at", CLOCKS_DIFFER // timedelta(milliseconds=1)]}, "$row.time"]},
    ]
}
_NEWEST: Document = {"$cond": [_SUPERSEDED, {"$ifNull": ["$last_run", "$$REMOVE"]}, "$row"]}

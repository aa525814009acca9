"""The last run of each schedule. Lists read it from the schedule's events, by index. On the schedule is what
they cannot tell: by which outcome it is found, and how its last event ended when that is gone.

So a run is written to its schedule where the outcome changes, and a run that succeeds after others, or as
the first one, costs no write. A schedule with no outcome is one whose runs have all succeeded, or have not
begun.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple, TypeVar

from scheduler_app.clock import clock
from scheduler_app.domain.schedule import LastRun, Schedule, ScheduleState
from scheduler_app.domain.states import State
from scheduler_app.store.bulk_writes import value_by_id, write_isolated
from scheduler_app.store.mongo import BY_ID, Document, Mongo
from scheduler_app.store.paging import MAX_MS
from scheduler_app.store.schedules.documents import CorruptSchedule, read_last_run
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

#: An event older than its schedule by more than this belongs to an earlier schedule of the same id.
CLOCKS_DIFFER = timedelta(minutes=1)
#: Of a schedule's events, this many are looked at. Where more of them are late, an older run is shown.
MOST_LOOKED_AT = 100
#: Schedules that one question is for.
AT_ONCE = 2_000
_Read = TypeVar("_Read", bound=Schedule | CorruptSchedule)
OUTCOMES = (State.COMPLETED, State.ERROR, State.EXPIRED, State.RETRYING)


class RunResult(NamedTuple):
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

    def write(self, runs: Sequence[RunResult]) -> None:
        """Notes runs, one for each schedule, where the outcome is another than that of the newest run noted.
        Written twice, or late, they change nothing. A document that MongoDB rejects is passed over. Raises a
        STORE_FAULT."""
        by_outcome: dict[State, list[RunResult]] = {}
        for run in runs:
            by_outcome.setdefault(run.outcome, []).append(run)
        for outcome, some in by_outcome.items():
            if self._note(some, _changed_by(outcome)):
                # A newer run may have ended with the outcome that was noted until now, and wrote nothing.
                # Whoever records one after this look finds what is noted here.
                self._note_newest([run.schedule_id for run in some])

    def _note_newest(self, schedule_ids: Sequence[str]) -> None:
        newest = self._newest_events(schedule_ids)
        for outcome in OUTCOMES:
            some = [run for run in newest if run.outcome is outcome]
            self._note(some, {"last_run.outcome": {"$ne": outcome.value}})

    def keep(self, schedule_ids: Sequence[str], before: datetime) -> None:
        """Notes the newest runs of these schedules that were before that time, whatever their outcome: their
        events will be removed by retention. Raises a STORE_FAULT."""
        self._note([run for run in self._newest_events(schedule_ids) if run.time < before], {})

    def _note(self, runs: Sequence[RunResult], which: Document) -> int:
        """Returns how many schedules were changed."""

        def write(part: Sequence[RunResult]) -> int:
            ids = [run.schedule_id for run in part]
            row = value_by_id(ids, list(map(run_document, part)))
            return self._schedules.update_many(
                {"_id": {"$in": ids}, "state": {"$ne": ScheduleState.DELETED.value}} | which,
                [{"$set": {"row": row}}, {"$set": {"last_run": _NEWEST}}, {"$unset": ["row"]}],
                hint=BY_ID,
            ).modified_count

        def pass_over(run: RunResult, error: Exception) -> bool:
            log.warning(
                "schedule.last_run_rejected",
                message="MongoDB rejects the note of a schedule's last run; its document may be corrupt",
                schedule_id=run.schedule_id,
                error=str(error)[:300],
            )
            return True

        return sum(write_isolated(runs, write, pass_over).results) if runs else 0

    def attach(self, schedules: Sequence[_Read]) -> list[_Read]:
        """The same schedules with their last runs. Raises a STORE_FAULT."""
        noted = {each.id: each.last_run for each in schedules if isinstance(each, Schedule)}
        newest = self._newest(noted)
        return [
            replace(each, last_run=newest.get(each.id)) if isinstance(each, Schedule) else each
            for each in schedules
        ]

    def succeeding(self, ids: Collection[str]) -> set[str]:
        """Those of the schedules whose last run succeeded."""
        return {each for each, run in self.newest(ids).items() if run.outcome == State.COMPLETED}

    def succeeded(self, ids: Collection[str]) -> dict[str, datetime | None]:
        """When those of these schedules last succeeded whose newest run did; None for what is gone, or has no
        run to come. Raises a STORE_FAULT."""
        known = list(ids)
        found: dict[str, datetime | None] = dict.fromkeys(known)
        for start in range(0, len(known), AT_ONCE):
            which = {"_id": {"$in": known[start : start + AT_ONCE]}}
            rows = {
                row["_id"]: read_last_run(row.get("last_run"))
                for row in self._schedules.find(which, {"state": 1, "last_run": 1}, hint=BY_ID)
                if row.get("state") not in (ScheduleState.DELETED, ScheduleState.FINISHED)
            }
            newest = self._newest(rows)
            for each in rows:
                run = newest.get(each)
                if run is not None and run.outcome == State.COMPLETED and run.ended_at is not None:
                    found[each] = run.ended_at
                else:
                    del found[each]
        return found

    def newest(self, ids: Collection[str]) -> dict[str, LastRun]:
        """The newest runs of those of the schedules that have run. Raises a STORE_FAULT."""
        rows = self._schedules.find({"_id": {"$in": list(ids)}}, {"last_run": 1}, hint=BY_ID)
        return self._newest({row["_id"]: read_last_run(row.get("last_run")) for row in rows})

    def _newest(self, noted: Mapping[str, LastRun | None]) -> dict[str, LastRun]:
        newest = {each: run for each, run in noted.items() if run is not None}
        for found in self._newest_events(list(noted)):
            known = newest.get(found.schedule_id)
            if known is None or (known.time, known.ended_at or known.time) <= found.order:
                newest[found.schedule_id] = LastRun(
                    found.time, found.outcome.value, found.event_id, found.ended_at
                )
        return newest

    def _newest_events(self, schedule_ids: Sequence[str]) -> list[RunResult]:
        """The newest event of each schedule that was attempted, as the last line of its history that tells an
        outcome has it."""
        if not schedule_ids:
            return []
        pipeline: list[Document] = [
            {"$match": {"_id": {"$in": list(schedule_ids)}}},
            {"$project": {"since": {"$cond": [_IS_DATED, _SINCE, None]}}},
            {"$lookup": _newest_event(clock.now())},
            {"$unwind": "$run"},
            {"$match": {"$expr": {"$gte": ["$run.time", "$since"]}}},
            {"$replaceWith": {"$mergeObjects": ["$run", {"schedule_id": "$_id"}]}},
        ]
        rows = self._schedules.aggregate(pipeline, hint=BY_ID, maxTimeMS=MAX_MS)
        return [
            RunResult(
                row["schedule_id"], run.time, State(run.outcome), run.event_id, run.ended_at or run.time
            )
            for row in rows
            if (run := read_last_run(row)) is not None
        ]


MILLISECOND = timedelta(milliseconds=1)


_IS_DATED: Document = {"$eq": [{"$type": "$created_at"}, "date"]}
_SINCE: Document = {"$subtract": ["$created_at", CLOCKS_DIFFER // MILLISECOND]}


def _newest_event(now: datetime) -> Document:
    lines = {"$cond": [{"$isArray": "$status"}, "$status", []]}
    outcomes = {"$in": ["$$this.status", [outcome.value for outcome in OUTCOMES]]}
    last = {"$last": {"$filter": {"input": lines, "cond": outcomes}}}
    shown = {"time": "$run_time", "outcome": "$line.status", "event_id": "$_id", "ended_at": "$line.time"}
    pipeline: list[Document] = [
        {"$match": {"run_time": {"$lte": now}}},
        {"$sort": {"run_time": -1, "_id": -1}},
        {"$limit": MOST_LOOKED_AT},
        {"$match": {"attempt": {"$gt": 0}}},
        {"$project": {"run_time": 1, "line": last}},
        {"$match": {"line": {"$exists": True}}},
        {"$limit": 1},
        {"$project": {"_id": 0} | shown},
    ]
    return {
        "from": "events",
        "localField": "_id",
        "foreignField": "schedule_id",
        "pipeline": pipeline,
        "as": "run",
    }


def _changed_by(outcome: State) -> Document:
    """The schedules that are noted with another outcome; those with none stand for success."""
    if outcome is State.COMPLETED:
        return {"last_run.outcome": {"$gt": outcome.value}}
    return {"last_run.outcome": {"$ne": outcome.value}}


def run_document(run: RunResult) -> Document:
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
        {"$gt": [_SINCE, "$row.time"]},
    ]
}
_NEWEST: Document = {"$cond": [_SUPERSEDED, {"$ifNull": ["$last_run", "$$REMOVE"]}, "$row"]}

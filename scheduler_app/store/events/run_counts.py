"""What became of the runs of a time, counted by the parts of it. Read by index, bounded."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from scheduler_app.domain.forecast import Buckets
from scheduler_app.domain.run_calendar import MOST_RARE, NamedRun, RunOutcome
from scheduler_app.domain.states import LIVING, Kind, State
from scheduler_app.store.mongo import BY_ID, Document, Mongo
from scheduler_app.store.paging import MAX_MS

#: Schedules that are named at most, of those with few runs.
MOST_NAMED = 2_000
OF_MESSAGES = "message_destinations_v1"
_MILLISECOND = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class RunChoice:
    """Which events: all of a tenant, those of some schedules, and with them the messages to a destination."""

    tenant: str
    schedule_ids: Sequence[str] | None = None
    destination: str | None = None
    """The id of the one whose messages count, too."""


@dataclass(slots=True)
class RunCounts:
    """What was found."""

    counts: Counter[tuple[int, RunOutcome]] = field(default_factory=Counter)
    """By the number of the part; nothing that is to come."""
    tried_again: Counter[int] = field(default_factory=Counter)
    rare: dict[str, list[NamedRun]] = field(default_factory=dict)
    """The runs of schedules that have few, also those to come that are events, in their order."""
    frequent: set[str] = field(default_factory=set)
    """The schedules with more."""
    is_whole: bool = True
    """False where there is more than was read."""


class RunCounting:
    """Reads only, by the indexes of the lists."""

    def __init__(self, mongo: Mongo) -> None:
        self._events = mongo.collection("events")
        self._schedules = mongo.collection("schedules")

    def exceeds(self, choice: RunChoice, buckets: Buckets, *, most: int) -> bool:
        """Whether more than `most` events have run times in the buckets; no document is read for it."""
        left = most
        for which, hint, _ in _scans(choice, buckets):
            when = {"$gte": buckets.start, "$lt": buckets.end}
            left -= self._events.count_documents(which | {"run_time": when}, hint=hint, limit=left + 1)
            if left < 0:
                return True
        return False

    def read(self, choice: RunChoice, buckets: Buckets, now: datetime, *, most: int) -> RunCounts:
        """The events with run times in the buckets; `most` of them are read, of a tenant or of one schedule
        the newest. Raises a STORE_FAULT."""
        found = RunCounts()
        for which, hint, order in _scans(choice, buckets):
            self._read(which, hint, order, buckets, now, most, found)
        return found

    def _read(
        self,
        which: Document,
        hint: str,
        order: list[Document],
        buckets: Buckets,
        now: datetime,
        most: int,
        found: RunCounts,
    ) -> None:
        number = {
            "$floor": {
                "$divide": [{"$subtract": ["$run_time", buckets.origin]}, buckets.width // _MILLISECOND]
            }
        }
        is_few = {"$lte": ["$number", MOST_RARE]}
        few: Document = {"schedule_id": "$_id", "runs": "$runs"}
        pipeline: list[Document] = [
            {"$match": which},
            *order,
            {"$limit": most},
            {"$project": {"schedule_id": 1, "run_time": 1} | _judged(now)},
            {
                "$facet": {
                    "parts": [
                        {
                            "$group": {
                                "_id": {"part": number, "outcome": "$outcome"},
                                "number": {"$sum": "$number"},
                                "again": {"$sum": "$again"},
                                "read": {"$sum": 1},
                            }
                        },
                    ],
                    # All schedules in one row: each facet would group them anew.
                    "schedules": [
                        {"$match": {"outcome": {"$ne": None}, "schedule_id": {"$type": "string"}}},
                        {
                            "$group": {
                                "_id": "$schedule_id",
                                "runs": {"$firstN": {"n": MOST_RARE + 1, "input": _RUN}},
                                "number": {"$sum": "$number"},
                            }
                        },
                        {
                            "$group": {
                                "_id": None,
                                "rare": {"$push": {"$cond": [is_few, few, "$$REMOVE"]}},
                                "frequent": {"$push": {"$cond": [is_few, "$$REMOVE", "$_id"]}},
                            }
                        },
                        {"$project": {"frequent": 1, "rare": {"$slice": ["$rare", MOST_NAMED]}}},
                    ],
                }
            },
        ]
        (row,) = self._events.aggregate(pipeline, hint=hint, maxTimeMS=MAX_MS)
        found.is_whole &= sum(each["read"] for each in row["parts"]) < most
        for each in row["parts"]:
            outcome = each["_id"]["outcome"]
            if outcome not in (None, RunOutcome.TO_COME):
                part = int(each["_id"]["part"])
                found.counts[part, RunOutcome(outcome)] += each["number"]
                found.tried_again[part] += each["again"]
        for each in row["schedules"]:
            found.frequent.update(each["frequent"])
            found.rare |= {rare["schedule_id"]: _named(rare["runs"]) for rare in each["rare"]}

    def name(self, schedule_ids: Sequence[str], buckets: Buckets, now: datetime) -> RunCounts:
        """Which of these schedules have few runs in the buckets, and these runs; nothing is counted. However
        many runs there are, a few of each schedule are read. Raises a STORE_FAULT."""
        when = {"$gte": buckets.start, "$lt": buckets.end, "$not": {"$type": "array"}}
        runs: list[Document] = [
            {"$match": {"run_time": when}},
            {"$sort": {"run_time": -1, "_id": -1}},
            {"$limit": MOST_RARE + 1},
            {"$project": {"run_time": 1} | _judged(now)},
            {"$match": {"outcome": {"$ne": None}}},
            {"$project": {"number": 1, "run": _RUN}},
        ]
        joined: Document = {
            "from": "events",
            "localField": "_id",
            "foreignField": "schedule_id",
            "pipeline": runs,
            "as": "runs",
        }
        pipeline: list[Document] = [
            {"$match": {"_id": {"$in": list(schedule_ids)}}},
            {"$project": {"_id": 1}},
            {"$lookup": joined},
        ]
        found = RunCounts()
        for row in self._schedules.aggregate(pipeline, hint=BY_ID, maxTimeMS=MAX_MS):
            if sum(each["number"] for each in row["runs"]) > MOST_RARE:
                found.frequent.add(row["_id"])
            elif row["runs"]:
                found.rare[row["_id"]] = _named([each["run"] for each in row["runs"]])
        return found


_RUN: Document = {"at": "$run_time", "outcome": "$outcome", "event_id": "$_id"}


def _named(runs: Sequence[Document]) -> list[NamedRun]:
    found = [NamedRun(run["at"], RunOutcome(run["outcome"]), run["event_id"]) for run in runs]
    return sorted(found, key=lambda run: run.at)


def _scans(choice: RunChoice, buckets: Buckets) -> list[tuple[Document, str, list[Document]]]:
    """What is matched, by which index, and in which order, if the index has it."""
    # What is an array is found like a date, until an inspection sets its event aside.
    when: Document = {"run_time": {"$gte": buckets.start, "$lt": buckets.end, "$not": {"$type": "array"}}}
    newest: list[Document] = [{"$sort": {"run_time": -1, "_id": -1}}]
    if choice.schedule_ids is None:
        return [({"tenant": choice.tenant} | when, "list_v1", newest)]
    scans: list[tuple[Document, str, list[Document]]] = []
    if len(choice.schedule_ids) == 1:
        scans.append(({"schedule_id": choice.schedule_ids[0]} | when, "schedule_v1", newest))
    elif choice.schedule_ids:
        of_them: Document = {"schedule_id": {"$in": list(choice.schedule_ids)}}
        scans.append((of_them | when, "schedule_v1", []))
    if choice.destination is not None:
        sent: Document = {"tenant": choice.tenant, "kind": Kind.MESSAGE.value}
        scans.append((sent | {"action.destination": choice.destination} | when, OF_MESSAGES, newest))
    return scans


def _judged(now: datetime) -> Document:
    """What became of an event, null where nothing did; how many runs it stands for; whether it took more
    than one attempt."""
    withdrawn = {"$lt": ["$archived_at", "$run_time"]}
    unsent = [State.EXPIRED.value, State.SKIPPED.value]
    done = {"$eq": ["$state", State.COMPLETED.value]}
    living = {"$in": ["$state", sorted(LIVING)]}
    branches: list[tuple[Document, object]] = [
        (done, RunOutcome.DONE.value),
        ({"$eq": ["$state", State.ERROR.value]}, RunOutcome.FAILED.value),
        ({"$in": ["$state", unsent]}, RunOutcome.DID_NOT_RUN.value),
        (
            {"$eq": ["$state", State.CANCELLED.value]},
            {"$cond": [withdrawn, None, RunOutcome.DID_NOT_RUN.value]},
        ),
        # Held events are due only in a day: nothing else looks at them until then.
        ({"$and": [living, {"$eq": [{"$type": "$held"}, "string"]}]}, RunOutcome.HELD.value),
        ({"$and": [living, {"$gte": ["$due_at", now]}]}, RunOutcome.TO_COME.value),
        (living, RunOutcome.WAITING.value),
    ]
    return {
        "outcome": {
            "$switch": {
                "branches": [{"case": case, "then": then} for case, then in branches],
                "default": None,
            }
        },
        "number": {"$cond": [{"$isNumber": "$missed.count"}, "$missed.count", 1]},
        "again": {"$cond": [{"$and": [done, {"$gt": ["$attempt", 1]}]}, 1, 0]},
    }

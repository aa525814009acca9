"""The backlog: events that were due before now and wait; and giving them up."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from scheduler_app.domain.action import UNKNOWN_ORIGIN
from scheduler_app.domain.ids import is_message
from scheduler_app.domain.lateness import CatchUp
from scheduler_app.domain.states import UNCLAIMED, Kind, State
from scheduler_app.domain.stored_fields import EARLIEST
from scheduler_app.store.events.documents import finish_events, source_states
from scheduler_app.store.events.messages import WIPED
from scheduler_app.store.indexes import BY_DUE
from scheduler_app.store.mongo import Document, Mongo

_ORIGIN: Document = {"$cond": [{"$eq": [{"$type": "$origin"}, "string"]}, "$origin", UNKNOWN_ORIGIN]}
_EXPIRES: Document = {"$isNumber": "$lateness.expire_after_seconds"}
_POLICIES = ("lateness", "run_overlap")
_SCHEDULES_A_READ = 5_000
_SCHEDULE: Document = {"$cond": [{"$eq": [{"$type": "$schedule_id"}, "string"]}, "$schedule_id", ""]}


@dataclass(frozen=True, slots=True)
class BacklogFilter:
    """Which late events are meant; what is None does not narrow."""

    due_before: datetime
    schedule_id: str | None = None
    """With its tenant."""
    receiver: str | None = None
    """An origin, or a destination with its prefix."""


class LateEventCount(NamedTuple):
    """How many late events of one kind one schedule has for one receiver."""

    schedule_id: str
    """Empty for messages."""
    receiver: str
    number: int
    oldest: datetime
    kind: str = Kind.SCHEDULED
    expires: bool = False
    """Whether they are messages that are given up some time after they were due."""


class LatenessPolicies(NamedTuple):
    """What a schedule says of its late occurrences."""

    catch_up: str = CatchUp.ALL
    expires: bool = False
    """The lateness beyond which an event is given up: `expire_after_seconds`."""
    run_overlap: str = "allow"


class Backlogs:
    def __init__(self, mongo: Mongo) -> None:
        self._events = mongo.collection("events")
        self._schedules = mongo.collection("schedules")

    def owed(self, tenant: str, now: datetime, *, limit: int) -> list[LateEventCount]:
        """The tenant's late events by schedule, receiver and kind; `limit` of them are looked at, in the
        order of their states and then of their times."""
        which = BacklogFilter(now)
        rows = self._events.aggregate(
            [
                {"$match": _late_events(which, tenant)},
                {"$limit": limit},
                {
                    "$group": {
                        "_id": {
                            "schedule": _SCHEDULE,
                            "receiver": _ORIGIN,
                            "kind": "$kind",
                            "expires": _EXPIRES,
                        },
                        "number": {"$sum": 1},
                        "oldest": {"$min": "$due_at"},
                    }
                },
            ],
            hint=BY_DUE,
        )
        return [
            LateEventCount(
                row["_id"]["schedule"],
                row["_id"]["receiver"],
                row["number"],
                row["oldest"],
                str(row["_id"].get("kind")),
                row["_id"]["expires"],
            )
            for row in rows
        ]

    def policies(self, schedule_ids: Sequence[str]) -> dict[str, LatenessPolicies]:
        """Those of these schedules."""
        found = {}
        for first in range(0, len(schedule_ids), _SCHEDULES_A_READ):
            which = {"_id": {"$in": list(schedule_ids[first : first + _SCHEDULES_A_READ])}}
            for row in self._schedules.find(which, _POLICIES):
                written = row.get("lateness")
                late = written if isinstance(written, dict) else {}
                found[row["_id"]] = LatenessPolicies(
                    _policy_word(late.get("catch_up"), CatchUp.ALL),
                    late.get("expire_after_seconds") is not None,
                    _policy_word(row.get("run_overlap"), "allow"),
                )
        return found

    def count(self, tenant: str, which: BacklogFilter, *, most: int) -> int:
        """How many late events there are; no more than `most` are counted."""
        return self._events.count_documents(_late_events(which, tenant), hint=_index(which), limit=most)

    def finished_since(self, tenant: str, since: datetime, *, most: int) -> int:
        """How many of the tenant's events have ended since then; no more than `most` of each kind are
        counted."""
        ended: Document = {"archived_at": {"$gte": since}, "tenant": tenant}
        occurrences = ended | {"schedule_id": {"$exists": True}}
        messages = ended | {"kind": "message"}
        return self._events.count_documents(
            occurrences, hint="retention_v2", limit=most
        ) + self._events.count_documents(messages, hint="message_retention_v1", limit=most)

    def page(self, tenant: str, which: BacklogFilter, *, limit: int) -> list[str]:
        """The ids of some late events."""
        rows = self._events.find(_late_events(which, tenant), {"_id": 1}, hint=_index(which)).limit(limit)
        return [row["_id"] for row in rows if isinstance(row["_id"], str)]

    def expire(self, ids: Sequence[str], which: BacklogFilter, now: datetime, message: str) -> int:
        """Gives these events up, unless a worker has claimed them; of messages nothing
        secret is left. Returns how many."""
        count = 0
        for some, wiped in (
            ([each for each in ids if not is_message(each)], None),
            ([each for each in ids if is_message(each)], WIPED),
        ):
            if some:
                late = {
                    "_id": {"$in": some},
                    "state": source_states("expire"),
                    "due_at": {"$lt": which.due_before},
                }
                count += finish_events(self._events, late, State.EXPIRED, now, message, wiped)
        return count


def _policy_word(written: object, usual: str) -> str:
    """`usual` also for a corrupt one: its schedule says so elsewhere."""
    return written if isinstance(written, str) else usual


def _late_events(which: BacklogFilter, tenant: str) -> Document:
    # What is an array is found like a date, until an inspection sets its event aside.
    late = {"$gte": EARLIEST, "$lt": which.due_before, "$not": {"$type": "array"}}
    found: Document = {"state": {"$in": sorted(UNCLAIMED)}, "due_at": late, "tenant": tenant}
    if which.schedule_id is not None:
        found["schedule_id"] = which.schedule_id
        # Later than its events are due, none of them runs.
        found["run_time"] = {"$lt": which.due_before + timedelta(seconds=1)}
    if which.receiver is not None:
        found["origin"] = which.receiver
    return found


def _index(which: BacklogFilter) -> str:
    return BY_DUE if which.schedule_id is None else "pending_v1"

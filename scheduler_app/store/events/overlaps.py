"""What the policies of overlapping runs ask of a schedule's events, and what they write."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple

from scheduler_app.domain.event import Event
from scheduler_app.domain.ids import name_of
from scheduler_app.domain.schedule import OverlapScope
from scheduler_app.domain.states import LIVING, Kind, State
from scheduler_app.domain.stored_fields import EARLIEST, Corrupt, text
from scheduler_app.store.bulk_writes import value_by_id
from scheduler_app.store.events.documents import (
    CLAIMED,
    WHILE_CLAIMED,
    appended,
    history_line,
    set_event_aside,
    source_states,
    to_events,
    update_or_set_aside,
)
from scheduler_app.store.mongo import BY_ID, Document, Mongo

#: A backfill has a policy of its own, and its occurrences of long ago hold back none of the living.
_JUDGED = {"$ne": Kind.BACKFILL.value}


class UnfinishedEvent(NamedTuple):
    """An event that is not finished, as those that come after it see it."""

    id: str
    run_time: datetime
    state: State


class UnsentOutcome(NamedTuple):
    """How a claimed event ends without its request, and why, for its history."""

    event_id: str
    token: str
    state: State
    message: str


class Overlaps:
    """Schedules without such a policy cost nothing here: workers neither ask nor write for them."""

    def __init__(self, mongo: Mongo) -> None:
        self._events = mongo.collection("events")
        self._majority = mongo.majority("events")

    def unfinished(
        self, schedule_id: str, until: datetime, *, scope: OverlapScope, limit: int
    ) -> list[UnfinishedEvent]:
        """The first events of a schedule that are not finished, with run times up to `until`, the earliest
        first; of the scope `attempt` only those that are running or wait for one.

        What is bent in `run_time` or `state` is in no answer: it would hold back all that come after it.
        """
        which: Document = {"run_time": {"$gte": EARLIEST, "$lte": until}}
        if scope == "event":
            which["state"] = {"$in": sorted(LIVING)}
        else:
            which["$or"] = [
                {"state": State.RUNNING},
                {"state": {"$in": sorted(LIVING)}, "waits_for": {"$exists": True}},
            ]
        return self._first(schedule_id, which, limit)

    def _first(self, schedule_id: str, which: Document, limit: int) -> list[UnfinishedEvent]:
        # The index of pending events has them in this order, however many are finished.
        rows = self._events.find(
            {"schedule_id": schedule_id, "due_at": {"$exists": True}, "kind": _JUDGED} | which,
            {"run_time": 1, "state": 1},
            sort=[("run_time", 1), ("_id", 1)],
            limit=limit,
            batch_size=limit,
            hint="pending_v1",
        )
        return [
            UnfinishedEvent(row["_id"], row["run_time"], State(row["state"]))
            for row in rows
            # An array matches a query for one of its items.
            if isinstance(row["_id"], str) and isinstance(row["run_time"], datetime)
            if isinstance(row["state"], str)
        ]

    def supersede(self, event: Event, now: datetime) -> None:
        """Ends what is left of the events before this one of its schedule: those that no worker has claimed
        are cancelled; those that are claimed are marked, so that no further attempt follows."""
        earlier = {
            "schedule_id": event.schedule_id,
            "due_at": {"$exists": True},
            "kind": _JUDGED,
            "state": {"$in": sorted(LIVING)},
            "$or": [
                {"run_time": {"$gte": EARLIEST, "$lt": event.run_time}},
                {"run_time": event.run_time, "_id": {"$lt": event.id}},
            ],
        }
        unclaimed = {"$in": ["$state", sorted(source_states("supersede")["$in"])]}
        entry = history_line(now, State.CANCELLED, superseded_message(event.id))
        removed = ("due_at", "owner", "lease_until", "dispatcher", *WHILE_CLAIMED)
        update_or_set_aside(
            self._events,
            earlier,
            [
                {"$set": {"superseded_by": {"$literal": event.id}, "unclaimed": unclaimed}},
                {
                    "$set": {
                        "state": {"$cond": ["$unclaimed", State.CANCELLED, "$state"]},
                        "archived_at": {"$cond": ["$unclaimed", now, "$$REMOVE"]},
                        "status": {"$cond": ["$unclaimed", appended("status", entry), "$status"]},
                    }
                    | {name: {"$cond": ["$unclaimed", "$$REMOVE", f"${name}"]} for name in removed}
                },
                {"$unset": ["unclaimed"]},
            ],
        )

    def superseded(self, ids: Collection[str]) -> dict[str, str]:
        """Those of the events after which a later one has begun, each with that one's id."""
        rows = self._majority.find(
            {"_id": {"$in": list(ids)}, "superseded_by": {"$exists": True}}, {"superseded_by": 1}
        )
        found = {}
        for row in rows:
            try:
                found[row["_id"]] = text(row["superseded_by"], "superseded_by")
            except Corrupt as error:
                set_event_aside(self._events, row["_id"], error)
                found[row["_id"]] = "another event"
        return found

    def end(self, endings: Sequence[UnsentOutcome], now: datetime) -> int:
        """Ends claimed events without their requests, under the tokens of their claims; returns how many."""
        ids = [each.event_id for each in endings]
        rows = [
            {"state": each.state, "line": history_line(now, each.state, each.message)} for each in endings
        ]
        written = update_or_set_aside(
            self._events,
            {
                "_id": {"$in": ids},
                "state": source_states("skip"),
                "$expr": {"$eq": ["$owner", value_by_id(ids, [each.token for each in endings])]},
            },
            [
                {"$set": {"row": value_by_id(ids, rows)}},
                {
                    "$set": {
                        "state": "$row.state",
                        "archived_at": now,
                        "status": appended("status", "$row.line"),
                    }
                },
                {"$unset": ["row", "due_at", "owner", "lease_until", "dispatcher", *WHILE_CLAIMED]},
            ],
            hint=BY_ID,
        )
        return written.modified

    def wake_next(self, schedule_id: str, now: datetime, *, scope: OverlapScope = "event") -> Event | None:
        """Makes the event that waits for nothing any more due at once, if the next one of the schedule waits;
        returns it, unless another process has claimed it meanwhile."""
        if scope == "event":
            living = {"state": {"$in": sorted(LIVING)}}
            first = self._first(schedule_id, living | {"run_time": {"$gte": EARLIEST}}, 1)
        else:
            first = self.unfinished(schedule_id, now, scope=scope, limit=1)
        if not first or first[0].state is not State.READY_QUEUE:
            return None
        which = {"_id": first[0].id, "state": source_states("wake"), "waits_for": {"$exists": True}}
        entry = history_line(now, State.READY_QUEUE, "It is its turn: the earlier event has ended")
        woken = update_or_set_aside(
            self._events,
            which,
            [
                {"$set": {"due_at": now, "status": appended("status", entry)}},
                {"$unset": ["waits_for"]},
            ],
        )
        if not woken.modified:
            return None
        # As it was left: it may have been claimed, and even have ended, while this process stood still.
        rows = self._majority.find({"_id": first[0].id, "state": State.READY_QUEUE}, CLAIMED)
        return next(iter(to_events(self._events, rows)), None)


def superseded_message(event_id: str) -> str:
    """Why an event is cancelled after which a later one has begun."""
    return f"Cancelled: run_overlap is cancel_earlier, and {name_of(event_id)} has begun"

"""One look for many duties of beats that mostly have nothing to do."""

from collections.abc import Callable
from datetime import datetime
from enum import StrEnum

from bson import MinKey

from scheduler_app.domain.schedule import ScheduleState
from scheduler_app.store.mongo import Document, Mongo


class Work(StrEnum):
    """What there may be to do."""

    FINISH = "finish"
    """Schedules whose last occurrence has passed."""
    RESUME = "resume"
    """Schedules whose pause is over."""
    HELD = "held"
    """Events that a kill switch holds, or has held."""
    NOTIFY = "notify"
    """Events whose notification is still to be made."""
    ROUTED = "routed"
    """Living events in queues that schedules name."""
    OWED = "owed"
    """Schedules with ranges that an edit left to beats."""
    BACKFILL = "backfill"
    """Backfills that are not over."""
    REDRIVE = "redrive"
    """Redrives that are not over."""
    TIME_OUT = "time_out"
    """Events whose receivers have not said in time how their work went."""


class WaitingWork:
    def __init__(self, mongo: Mongo) -> None:
        self._events = mongo.collection("events")

    def kinds(self, now: datetime) -> frozenset[Work]:
        """What there is to do at `now`, in one command. Each kind costs a look into an index that has little
        else. A duty may find less than this says, because others claim work too. Raises a STORE_FAULT."""
        first, *others = (_look(work, which(now)) for work, (_, which) in _LOOKS.items())
        collections = [name for name, _ in _LOOKS.values()][1:]
        pipeline = first + [
            {"$unionWith": {"coll": name, "pipeline": look}}
            for name, look in zip(collections, others, strict=True)
        ]
        return frozenset(Work(row["work"]) for row in self._events.aggregate(pipeline))


def _look(work: Work, which: Document) -> list[Document]:
    return [{"$match": which}, {"$limit": 1}, {"$project": {"_id": 0, "work": {"$literal": work.value}}}]


#: The collection of each kind, and what there is to do in it at an instant. The first one is `events`.
_LOOKS: dict[Work, tuple[str, Callable[[datetime], Document]]] = {
    Work.HELD: ("events", lambda now: {"held": {"$gt": ""}, "due_at": {"$exists": True}}),
    Work.NOTIFY: ("events", lambda now: {"notify.since": {"$exists": True}}),
    Work.ROUTED: (
        "events",
        lambda now: {"routed": True, "queue": {"$gt": ""}, "due_at": {"$exists": True}},
    ),
    Work.TIME_OUT: ("events", lambda now: {"completion.awaiting": True, "due_at": {"$lte": now}}),
    Work.FINISH: (
        "schedules",
        lambda now: {"state": ScheduleState.ACTIVE.value, "finishes_at": {"$lte": now}},
    ),
    Work.RESUME: (
        "schedules",
        lambda now: {"state": ScheduleState.PAUSED.value, "pause.until": {"$lte": now}},
    ),
    # Anything at all is above MinKey, a missing field too: the condition is for the index.
    Work.OWED: (
        "schedules",
        lambda now: {"owed": {"$exists": True}, "owed.next_run_at": {"$gte": MinKey()}},
    ),
    Work.BACKFILL: ("backfills", lambda now: {"active": True}),
    Work.REDRIVE: ("redrives", lambda now: {"active": True}),
}

"""One look for many duties of beats that mostly have nothing to do."""

from collections.abc import Callable, Collection
from datetime import datetime, timedelta
from enum import StrEnum

from bson import MinKey

from scheduler_app.domain.cause import CauseKind
from scheduler_app.domain.schedule import ScheduleState
from scheduler_app.domain.stored_fields import EARLIEST
from scheduler_app.store.events.documents import source_states
from scheduler_app.store.mongo import Document, Mongo, lease_over
from scheduler_app.store.recoveries import GRACE_SECONDS, lost_claims


class Work(StrEnum):
    """What there may be to do."""

    EXPAND = "expand"
    """Active schedules whose next events are to be made. Other beats may have claimed them."""
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
    DELETIONS = "deletions"
    """Deletions of tenants that are not over."""
    HEARTBEATS = "heartbeats"
    """Heartbeats that are to be looked at."""
    TIME_OUT = "time_out"
    """Events whose receivers have not said in time how their work went."""
    LEASE_OVER = "lease_over"
    """Events whose worker has not reported before its lease was over by mongod's clock; after a jump of that
    clock it may not be."""
    UNSENT = "unsent"
    """Pages of the outbox whose dispatcher died, or is slow."""
    UNCLAIMED = "unclaimed"
    """Events that were dispatched, and that no worker has claimed for long after they were due."""
    AUDIT = "audit"
    """Lines of the audit without a place in its chain."""
    OWED_LINES = "owed_lines"
    """Lines of the audit in the documents of schedules."""
    CALENDARS = "calendars"
    """Calendars that have changed, and whose schedules are to be looked at."""
    CAUSES = "causes"
    """Causes of failing receivers that are not over, or whose dead letters may be left."""


#: What nobody notices when it is done a second or two later: it was due long ago, or follows a lease or a
#: timeout of many seconds. Each kind is a twelfth of what a look costs.
PATIENT = frozenset(
    {
        *(Work.FINISH, Work.OWED, Work.BACKFILL, Work.REDRIVE, Work.DELETIONS, Work.TIME_OUT),
        *(Work.LEASE_OVER, Work.UNCLAIMED, Work.CAUSES, Work.AUDIT, Work.OWED_LINES, Work.CALENDARS),
    }
)

#: No lease is over so soon after its event was due: what runs is left out without being read.
SHORTEST_LEASE = timedelta(seconds=5)


class WaitingWork:
    def __init__(self, mongo: Mongo) -> None:
        self._events = mongo.collection("events")

    def kinds(
        self, now: datetime, *, expand_before: datetime | None = None, but: Collection[Work] = ()
    ) -> frozenset[Work]:
        """What there is to do at `now`, in one command, all kinds but those in `but` (which may not be
        HELD). Occurrences before `expand_before` (None: `now`) are to be events. Each kind costs a look into
        an index that has little else, or begins with it. A duty may find less than this says, because others
        claim work too. Raises a STORE_FAULT."""
        times = {Work.EXPAND: expand_before or now}
        (_, first), *others = (
            (name, _look(work, which(times.get(work, now))))
            for work, (name, which) in _LOOKS.items()
            if work not in but
        )
        pipeline = first + [{"$unionWith": {"coll": name, "pipeline": look}} for name, look in others]
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
    Work.LEASE_OVER: ("events", lambda now: lost_claims({"$lt": now - SHORTEST_LEASE})),
    Work.UNCLAIMED: (
        "events",
        lambda now: {
            "state": source_states("recover_message"),
            "due_at": {"$gte": EARLIEST, "$lt": now - timedelta(seconds=GRACE_SECONDS)},
        },
    ),
    Work.UNSENT: ("outbox", lambda now: lease_over("until")),
    Work.EXPAND: (
        "schedules",
        lambda before: {"state": ScheduleState.ACTIVE.value, "next_run_at": {"$lt": before}},
    ),
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
    Work.CALENDARS: ("calendars", lambda now: {"changed_at": {"$gte": MinKey(), "$exists": True}}),
    Work.HEARTBEATS: ("heartbeats", lambda now: {"look_at": {"$lte": now}}),
    Work.BACKFILL: ("backfills", lambda now: {"active": True}),
    Work.REDRIVE: ("redrives", lambda now: {"active": True}),
    Work.DELETIONS: ("deletions", lambda now: {"active": True}),
    Work.AUDIT: ("audit", lambda now: {"unchained": True, "tenant": {"$gt": ""}}),
    Work.OWED_LINES: (
        "schedules",
        lambda now: {"unlogged": {"$exists": True}, "unlogged._id": {"$gte": MinKey()}},
    ),
    # Key and tenant are for the indexes.
    Work.CAUSES: (
        "causes",
        lambda now: {
            "$or": [
                {"living": True, "kind": CauseKind.FAILING.value, "key": {"$gt": ""}},
                {"dead": True, "tenant": {"$gt": ""}},
            ]
        },
    ),
}

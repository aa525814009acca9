"""Dispatch's transitions: take waiting events, put them back where their message was not sent, and keep those
out of the way that a blackout or a kill switch stops.

An event that a kill switch holds has `held`, the key of its switch, and is due only in a day: nothing
reads it meanwhile. When the switch is off, beats give each its own time back. Events that fall due within
a blackout are skipped or postponed before a message is sent for them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from scheduler_app.domain.action import CALLBACKS, UNKNOWN_ORIGIN, is_queue
from scheduler_app.domain.states import Kind, State
from scheduler_app.domain.stored_fields import EARLIEST, Corrupt, items, text, wrong
from scheduler_app.store.bulk_writes import value_by_id
from scheduler_app.store.events.documents import (
    READABLE,
    appended,
    finish_events,
    history_line,
    in_queues,
    set_event_aside,
    source_states,
    stored_origin,
    update_or_set_aside,
)
from scheduler_app.store.indexes import BY_DUE, HELD, ROUTED
from scheduler_app.store.mongo import BY_ID, Document, Mongo, lease, lease_over, new_token
from scheduler_app.store.partition_owners import in_partitions
from scheduler_app.telemetry import get_logger, metrics

log = get_logger(__name__)

PAGE_VERSION = 1
#: Queues that one dispatch looks at; with more they take turns.
MOST_QUEUES = 64


class DueEvent(NamedTuple):
    """What dispatch needs to know of a waiting event. They sort by when they are due."""

    due_at: datetime
    id: str
    origin: str = UNKNOWN_ORIGIN
    """A hint: the URL may have been edited since."""
    lost_leases: int = 0
    postponed_from: datetime | None = None
    """When it was due before it was put off to a place in its destination's line; None if it was not."""
    queue_by_destination: bool = False
    """Its destination has named its queue, and no schedule or message."""
    returns: bool = False
    """It is a retry, or was claimed before and put off."""


class Deferral(NamedTuple):
    """A waiting event that is to be dispatched later, at `due_at`, and why, for its history."""

    id: str
    due_at: datetime
    postponed_from: datetime
    message: str


class Outbox:
    """An event is marked before its message is published; the mark also keeps other dispatchers from it.
    Before the mark, the ids are stored as a page with a lease, so that a crash in between costs two
    seconds. (A dispatcher that marks after its page's lease and then dies leaves a lost message.)
    """

    def __init__(self, mongo: Mongo) -> None:
        self._events = mongo.collection("events")
        self._majority = mongo.majority("events")
        self._pages = mongo.collection("outbox")

    def due(
        self,
        until: datetime,
        *,
        limit: int,
        after: datetime | None = None,
        but: Collection[str] = (),
        but_tenants: Collection[str] = (),
        queue: str = CALLBACKS,
        partitions: Collection[int] | None = None,
    ) -> list[DueEvent]:
        """Waiting events of a queue, due up to `until` (and after `after`), oldest first; none of the origins
        in `but`, of `but_tenants`, and of other partitions than these, which the index leaves out."""
        which = _waiting(until) | in_queues((queue,)) | in_partitions(partitions)
        if after is not None:
            which["due_at"]["$gt"] = after
        if but:
            # Documents of older releases have no origin, which counts as unknown.
            which["origin"] = {"$nin": [*but, *([None] if UNKNOWN_ORIGIN in but else [])]}
        if but_tenants:
            which["tenant"] = {"$nin": list(but_tenants)}
        # In one batch, and so in one round trip: by default the first has 101 rows.
        rows = self._events.find(which, _DUE).sort("due_at", 1).limit(limit).batch_size(limit)
        if queue != CALLBACKS:  # the other index has the backlog of CALLBACKS, too
            rows = rows.hint(ROUTED)
        elif but_tenants:  # others begin with the tenant, and do not give the order
            rows = rows.hint(BY_DUE)
        return self._readable(rows)

    def named_queues(self, *, after: str = "", limit: int = MOST_QUEUES) -> list[str]:
        """The queues beside CALLBACKS that living events are in, by their names from `after` on, and then
        from the beginning. Each costs a look into an index that has nothing else."""
        names: list[str] = []
        last, wrapped = after, not after
        while len(names) < limit:
            row = self._events.find_one(
                {"routed": True, "queue": {"$gt": last}, "due_at": {"$exists": True}},
                {"queue": 1},
                sort=[("queue", 1)],
            )
            if row is None and wrapped:
                break
            if row is None:
                last, wrapped = "", True
                continue
            last = str(row["queue"])
            if last in names:
                break
            if is_queue(last):  # else an inspection sets its events aside
                names.append(last)
        return names

    def take(
        self, events: Sequence[DueEvent], until: datetime, now: datetime, *, lease_seconds: float
    ) -> tuple[str, list[DueEvent]]:
        """Marks those of the events that still wait and are due up to `until`, by a token in `dispatcher`.
        Returns the token and the events that were won, oldest first. The caller publishes their messages,
        and then calls `sent`.
        Raises a STORE_FAULT, after which recovery puts back what was won.
        """
        token, ids = new_token(), [event.id for event in events]
        page = {"v": PAGE_VERSION, "ids": {"$literal": ids}, "until": lease(lease_seconds)}
        self._pages.update_one({"_id": token}, [{"$set": page}], upsert=True)
        queued = history_line(now, State.WORKER_QUEUE, "Event queued for a worker")
        # Plain operators cost mongod a quarter less than a pipeline. They cannot shorten the history, which
        # the next transition does. If the connection breaks here, it is unknown which events are marked:
        # recovery puts them back by the page.
        written = update_or_set_aside(
            self._events,
            {**_waiting(until), "_id": {"$in": ids}},
            {
                "$set": {"state": State.WORKER_QUEUE, "dispatcher": token, "dispatched_at": now},
                "$inc": {"dispatches": 1},
                "$push": {"status": queued},
            },
            hint=BY_ID,
        )
        # Usually all are won: then what was read of them before is good enough for an eta.
        if written.at_once and written.matched == len(events):
            return token, sorted(events)
        won = self._majority.find({"_id": {"$in": ids}, "dispatcher": token}, _DUE)
        return token, sorted(self._readable(won))

    def put_off(self, events: Sequence[Deferral], until: datetime, now: datetime) -> int:
        """Gives events that wait and are due up to `until` a later time; each keeps the time that it was due
        at first. Returns how many: another dispatcher may have taken some."""
        ids = [each.id for each in events]
        row = value_by_id(
            ids,
            [
                {
                    "due_at": each.due_at,
                    "postponed_from": each.postponed_from,
                    "line": history_line(now, State.READY_QUEUE, each.message),
                }
                for each in events
            ],
        )
        written = update_or_set_aside(
            self._events,
            {**_waiting(until), "_id": {"$in": ids}},
            [
                {"$set": {"row": row}},
                {
                    "$set": {
                        "state": State.READY_QUEUE,
                        "due_at": "$row.due_at",
                        "postponed_from": {"$ifNull": ["$postponed_from", "$row.postponed_from"]},
                        "status": appended("status", "$row.line"),
                    }
                },
                {"$unset": ["row"]},
            ],
            hint=BY_ID,
        )
        return written.modified

    def move(self, moves: Mapping[str, Sequence[str]], until: datetime) -> int:
        """Moves events that wait and are due up to `until` into the queues that their destinations name;
        `moves` has their ids by their new queues. Returns how many: another dispatcher may have taken
        some."""
        moved = 0
        for queue, ids in moves.items():
            named = queue != CALLBACKS
            written = update_or_set_aside(
                self._events,
                {**_waiting(until), "_id": {"$in": list(ids)}},
                [{"$set": {"queue": queue, "routed": named, "queue_by_destination": named}}],
                hint=BY_ID,
            )
            moved += written.modified
        return moved

    def _readable(self, rows: Iterable[Document]) -> list[DueEvent]:
        found = []
        for row in rows:
            # The other fields are checked where they are needed. An id that is not text fits into no
            # message; a list of dates is found like a date, and has no place in the order.
            if not isinstance(row["_id"], str):
                set_event_aside(self._events, row["_id"], Corrupt("_id is no text"))
            elif not isinstance(row["due_at"], datetime):
                set_event_aside(self._events, row["_id"], wrong("due_at", row["due_at"], "a date"))
            else:
                found.append(_due_event(row))
        return found

    def sent(self, token: str) -> None:
        """Removes the page, whose messages are published."""
        self._pages.delete_one({"_id": token})

    def put_back(self, token: str, now: datetime) -> int:
        """Requeues the events that were taken, except those that a worker has claimed meanwhile. Returns
        how many."""
        return sum(self._put_back(page, now) for page in self._pages.find({"_id": token}))

    def put_back_abandoned(self, now: datetime, *, limit: int) -> int:
        """Does the same for up to `limit` pages whose lease is over: their dispatcher died before `sent`,
        or was slow."""
        over = self._pages.find(lease_over("until")).limit(limit)
        return sum(self._put_back(page, now) for page in over)

    def _put_back(self, page: Document, now: datetime) -> int:
        try:
            ids = [text(each, "an item of ids") for each in items(page.get("ids"), "ids")]
        except Corrupt as error:
            self._discard(page, error)
            return 0
        which = {"_id": {"$in": ids}, "dispatcher": page["_id"], "state": source_states("put_back")}
        message = "Put back: its message may not have been sent"
        written = update_or_set_aside(
            self._events,
            which,
            [
                {
                    "$set": {
                        "state": State.READY_QUEUE,
                        # Recovery's grace doubles with each message that led to no claim; this one was not
                        # sent.
                        "dispatches": {"$subtract": ["$dispatches", 1]},
                        "status": appended("status", history_line(now, State.READY_QUEUE, message)),
                    }
                },
                {"$unset": ["dispatcher"]},
            ],
            hint=BY_ID,
        )
        self.sent(page["_id"])
        return written.modified

    def _discard(self, page: Document, error: Corrupt) -> None:
        """Removes a page whose ids cannot be read. Recovery treats its events as those of a lost message,
        some seconds after they were due."""
        self.sent(page["_id"])
        metrics.pages_discarded.inc()
        log.error(
            "outbox.discarded",
            message="A page of the outbox is corrupt and was removed; its events are recovered as overdue",
            token=str(page["_id"])[:200],
            reason=str(error),
        )


_DUE = dict.fromkeys(
    ("due_at", "origin", "attempt", "lost_leases", "postponed_from", "queue_by_destination"), 1
)


def _due_event(row: Document) -> DueEvent:
    lost, since = row.get("lost_leases"), row.get("postponed_from")
    return DueEvent(
        row["due_at"],
        row["_id"],
        stored_origin(row),
        lost if isinstance(lost, int) else 0,
        since if isinstance(since, datetime) else None,
        row.get("queue_by_destination") is True,
        bool(row.get("attempt") or lost or since),
    )


def _waiting(until: datetime) -> Document:
    # Dispatch cannot compare dates before 1970 with its own.
    return {"state": source_states("mark_dispatched"), "due_at": {"$gte": EARLIEST, "$lte": until}} | READABLE


class BlackedOutEvents:
    def __init__(self, mongo: Mongo) -> None:
        self._events = mongo.collection("events")

    def skip(self, ids: Sequence[str], since: datetime, until: datetime, now: datetime, message: str) -> int:
        """Ends those occurrences whose run times lie from `since` on, due up to `until`, and that nothing was
        tried for. A message, and a call by hand, is never skipped."""
        which: Document = {
            "_id": {"$in": list(ids)},
            "state": source_states("skip_waiting"),
            "due_at": {"$lte": until},
            "run_time": {"$gte": since},
            "kind": Kind.SCHEDULED.value,
            "attempt": 0,
        }
        return finish_events(self._events, which | READABLE, State.SKIPPED, now, message)

    def postpone(self, ids: Sequence[str], to: datetime, until: datetime, now: datetime, message: str) -> int:
        """Gives waiting events that are due up to `until` another time; it is theirs from then on, as if they
        had been made for it."""
        which: Document = {
            "_id": {"$in": list(ids)},
            "state": source_states("put_off"),
            "due_at": {"$lte": until},
        }
        later = {
            "state": State.READY_QUEUE,
            "due_at": to,
            "status": appended("status", history_line(now, State.READY_QUEUE, message)),
        }
        change: list[Document] = [{"$set": later}, {"$unset": ["postponed_from"]}]
        return update_or_set_aside(self._events, which | READABLE, change, hint=BY_ID).modified


#: A held event is judged again after this time, unless it is released before.
HELD_FOR: Final = timedelta(days=1)
#: Keys that one look brings.
_MOST_KEYS: Final = 200


class EventHolds:
    def __init__(self, mongo: Mongo) -> None:
        self._events = mongo.collection("events")

    def hold(self, ids: Sequence[str], key: str, until: datetime, now: datetime, message: str) -> int:
        """Holds waiting events that are due up to `until`; returns how many."""
        which: Document = {
            "_id": {"$in": list(ids)},
            "state": source_states("hold"),
            "due_at": {"$lte": until},
        }
        held = {
            "state": State.READY_QUEUE,
            "held": {"$literal": key},
            "postponed_from": {"$ifNull": ["$postponed_from", "$due_at"]},
            "due_at": now + HELD_FOR,
            "status": appended("status", history_line(now, State.READY_QUEUE, message)),
        }
        return update_or_set_aside(self._events, which | READABLE, [{"$set": held}], hint=BY_ID).modified

    def keys(self) -> list[str]:
        """The switches that events are held by. Each costs a look into an index that has nothing else."""
        keys: list[str] = []
        last = ""
        for _ in range(_MOST_KEYS):
            row = self._events.find_one(
                {"held": {"$gt": last}, "due_at": {"$exists": True}},
                {"held": 1},
                sort=[("held", 1)],
                hint=HELD,
            )
            if row is None:
                break
            if isinstance(row["held"], str):
                last = row["held"]
                keys.append(last)
            else:  # a list is found by each of its items
                set_event_aside(self._events, row["_id"], wrong("held", row["held"], "text"))
        return keys

    def count(self, keys: Sequence[str], *, most: int) -> int:
        """How many events a switch of these keys holds; no more than `most` are counted."""
        which: Document = {"held": {"$in": list(keys)}, "due_at": {"$exists": True}}
        return self._events.count_documents(which, hint=HELD, limit=most)

    def release(self, key: str, now: datetime, *, limit: int) -> int:
        """Gives up to `limit` events their own times back; returns how many it found."""
        which: Document = {"held": key, "due_at": {"$exists": True}}
        rows = self._events.find(which, {"_id": 1}, hint=HELD).limit(limit).batch_size(limit)
        ids = [row["_id"] for row in rows]
        if ids:
            released = {
                "due_at": {"$ifNull": ["$postponed_from", "$due_at"]},
                "status": appended("status", history_line(now, State.READY_QUEUE, "The kill switch is off")),
            }
            waits = {"state": source_states("release")}
            update_or_set_aside(
                self._events,
                which | waits | {"_id": {"$in": ids}},
                [{"$set": released}, {"$unset": ["held", "postponed_from"]}],
                hint=BY_ID,
            )
            # What moved on otherwise is held no more.
            others = {"state": {"$ne": State.READY_QUEUE.value}}
            update_or_set_aside(
                self._events, which | others | {"_id": {"$in": ids}}, [{"$unset": ["held"]}], hint=BY_ID
            )
        return len(ids)

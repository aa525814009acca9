"""Delivery's transitions: workers claim events, and release, postpone, cancel or expire those that they do
not send.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from itertools import repeat
from typing import NamedTuple

from pymongo import DESCENDING

from scheduler_app.domain.action import CALLBACKS
from scheduler_app.domain.event import Event, from_id
from scheduler_app.domain.ids import is_message
from scheduler_app.domain.states import Kind, State
from scheduler_app.store.bulk_writes import or_unset, value_by_id
from scheduler_app.store.encryption import SecretBox
from scheduler_app.store.events.documents import (
    CLAIMED,
    READABLE,
    WHILE_CLAIMED,
    appended,
    finish_events,
    history_line,
    in_queues,
    source_states,
    to_events,
    update_by_token,
    update_or_set_aside,
)
from scheduler_app.store.events.messages import CONTENT, WIPED, read_message
from scheduler_app.store.mongo import BY_ID, Document, Mongo, lease, new_token

#: Matches events that are as `scheduled` made them, and not those that came back.
AS_MADE: Document = {
    "kind": Kind.SCHEDULED,
    "attempt": 0,
    "lost_leases": 0,
    "$expr": {"$eq": ["$due_at", "$run_time"]},
}


#: Recovery's grace doubles with each message that led to no claim, and this one led to one. A message that
#: arrived twice may lead to two claims.
_DISPATCHES_WITHOUT_THIS_ONE = {"$max": [0, {"$subtract": ["$dispatches", 1]}]}


class Postponement(NamedTuple):
    """A claimed event that is to be tried later, at `due_at`."""

    event_id: str
    token: str
    due_at: datetime
    postponed_from: datetime
    """When it was due before the first postponement."""
    message: str
    """Why, for its history."""
    queue: str | None = None
    """The queue that it moves to; None: it stays where it is."""
    queue_by_destination: bool = False
    """Its destination says so, and no schedule or message."""
    waits_for: str | None = None
    """The event of its schedule that it waits for; None: it waits for its time alone."""
    held: str | None = None
    """The key of the kill switch that holds it from now on; None: none does."""


class Claims:
    def __init__(self, mongo: Mongo, secret_box: SecretBox) -> None:
        self._events = mongo.collection("events")
        self._majority = mongo.majority("events")
        self._secret_box = secret_box

    def claim(
        self,
        ids: Sequence[str],
        *,
        until: datetime,
        now: datetime,
        lease_seconds: float,
        worker: str,
        queues: Collection[str] = (CALLBACKS,),
    ) -> tuple[str, list[Event]]:
        """Claims the events in `queues` that are unclaimed and due up to `until`, with a fresh token. Returns
        both.

        An event that is missing from the answer belongs to another worker, is finished, or is not due. That
        is no error. An event that cannot be read is set aside. Messages are read whole: once claimed, they
        can no longer be cancelled or moved.
        """
        token, which = new_token(), {"_id": {"$in": list(ids)}, "due_at": {"$lte": until}} | READABLE
        which |= in_queues(queues)
        claimed = _claimed(token, now, lease_seconds, worker)
        as_made = [event for event in map(from_id, ids) if event is not None]
        # Usually all events are claimed, and are as they were made: then their ids tell what a read would.
        if len(as_made) == len(ids) and self._claim(which | AS_MADE, claimed) == len(ids):
            return token, sorted(as_made, key=_claim_order)
        self._claim(which, claimed)
        won = self._majority.find({"_id": {"$in": list(ids)}, "owner": token}, CLAIMED | CONTENT)
        rows = {row["_id"]: row for row in won}
        events = map(self._with_message, to_events(self._events, rows.values()), repeat(rows))
        return token, sorted(events, key=_claim_order)

    def _with_message(self, event: Event, rows: Mapping[str, Document]) -> Event:
        """The event with what it delivers, if it is a message."""
        if event.kind is not Kind.MESSAGE:
            return event
        return event._replace(message=read_message(rows[event.id], self._secret_box))

    def _claim(self, which: Document, claimed: list[Document]) -> int | None:
        return update_by_token(self._events, which | {"state": source_states("claim")}, claimed)

    def renew(self, ids: Sequence[str], token: str, lease_seconds: float) -> Sequence[str]:
        """Renews the leases of those events that the claim still holds, from now on. Returns their ids."""
        held = {"_id": {"$in": list(ids)}, "owner": token, "state": State.RUNNING}
        renewed = update_by_token(self._events, held, [{"$set": {"lease_until": lease(lease_seconds)}}])
        if renewed == len(ids):
            return ids
        return [row["_id"] for row in self._majority.find(held, {"_id": 1})]

    def isolate(self, event_id: str, token: str) -> bool:
        """Notes that the worker now makes this event's request, and no other suspect event's. False when
        the claim was lost."""
        held = {"_id": event_id, "owner": token, "state": State.RUNNING}
        return self._events.update_one(held, {"$set": {"isolated": token}}).matched_count == 1

    def postpone(self, postponements: Sequence[Postponement], now: datetime) -> int:
        """Requeues claimed events whose origins have no room. No attempt is counted, and each event waits
        for its own time."""
        ids = [each.event_id for each in postponements]
        row = value_by_id(ids, [_postponed(each, now) for each in postponements])
        written = update_or_set_aside(
            self._events,
            {
                "_id": {"$in": ids},
                "state": source_states("postpone"),
                "$expr": {"$eq": ["$owner", value_by_id(ids, [each.token for each in postponements])]},
            },
            [
                {"$set": {"row": row}},
                {
                    "$set": {
                        "state": State.READY_QUEUE,
                        "due_at": "$row.due_at",
                        "dispatches": _DISPATCHES_WITHOUT_THIS_ONE,
                        "postponed_from": "$row.postponed_from",
                        "queue": {"$ifNull": ["$row.queue", "$queue"]},
                        "routed": {"$ifNull": ["$row.routed", "$routed"]},
                        "queue_by_destination": {
                            "$ifNull": ["$row.queue_by_destination", "$queue_by_destination"]
                        },
                        "held": or_unset("$row.held"),
                        "status": appended("status", "$row.line"),
                        "waits_for": or_unset("$row.waits_for"),
                    }
                },
                {"$unset": ["row", "owner", "lease_until", "isolated"]},
            ],
            hint=BY_ID,
        )
        return written.modified

    def give_back(self, ids: Sequence[str], token: str, now: datetime, message: str) -> int:
        """Releases claimed events without an attempt: no request was made, and none is counted."""
        written = update_or_set_aside(
            self._events,
            {"_id": {"$in": list(ids)}, "owner": token, "state": source_states("give_back")},
            [
                {
                    "$set": {
                        "state": State.READY_QUEUE,
                        "dispatches": _DISPATCHES_WITHOUT_THIS_ONE,
                        "status": appended("status", history_line(now, State.READY_QUEUE, message)),
                    }
                },
                {"$unset": ["owner", "lease_until", "isolated"]},
            ],
            hint=BY_ID,
        )
        return written.modified

    def cancel_claimed(self, ids: Sequence[str], token: str, now: datetime, message: str) -> None:
        """Cancels claimed events that an edit, a deletion or a person has withdrawn: they are not sent. Of
        messages nothing secret is left."""
        messages = [each for each in ids if is_message(each)]
        for some, wiped in ((messages, WIPED), ([each for each in ids if not is_message(each)], None)):
            if some:
                which = {"_id": {"$in": some}, "owner": token, "state": source_states("cancel_claimed")}
                finish_events(self._events, which, State.CANCELLED, now, message, wiped)


def _claimed(token: str, now: datetime, lease_seconds: float, worker: str) -> list[Document]:
    return [
        {
            "$set": {
                "state": State.RUNNING,
                "owner": token,
                "lease_until": lease(lease_seconds),
                "status": appended("status", history_line(now, State.RUNNING, f"Claimed by {worker}")),
            }
        },
        {"$unset": ["dispatcher"]},
    ]


def _postponed(postponement: Postponement, now: datetime) -> Document:
    return {
        "due_at": postponement.due_at,
        "postponed_from": postponement.postponed_from,
        "queue": postponement.queue,
        "held": postponement.held,
        "routed": None if postponement.queue is None else postponement.queue != CALLBACKS,
        "queue_by_destination": None if postponement.queue is None else postponement.queue_by_destination,
        "line": history_line(now, State.READY_QUEUE, postponement.message),
        "waits_for": postponement.waits_for,
    }


def _claim_order(event: Event) -> tuple[datetime, str]:
    return event.due_at, event.id


class Expiration(NamedTuple):
    """A claimed event that is too late, and why, for its history."""

    event_id: str
    token: str
    message: str


class Expirations:
    def __init__(self, mongo: Mongo) -> None:
        self._events = mongo.collection("events")
        self._majority = mongo.majority("events")

    def expire_claimed(self, expirations: Sequence[Expiration], now: datetime) -> int:
        """Expires claimed events by one update; returns how many at least. What a worker that dies before
        leaves is judged again after its lease."""
        ids = [each.event_id for each in expirations]
        tokens = value_by_id(ids, [each.token for each in expirations])
        lines = value_by_id(ids, [history_line(now, State.EXPIRED, each.message) for each in expirations])
        written = update_or_set_aside(
            self._events,
            {
                "_id": {"$in": ids},
                "state": source_states("expire_claimed"),
                "$expr": {"$eq": ["$owner", tokens]},
            },
            [
                {"$set": {"row": lines}},
                {
                    "$set": {
                        "state": State.EXPIRED,
                        "archived_at": now,
                        "status": appended("status", "$row"),
                    }
                },
                {"$unset": ["row", "due_at", "owner", "lease_until", "dispatcher", *WHILE_CLAIMED]},
            ],
            hint=BY_ID,
        )
        return written.modified

    def newest_due(self, event: Event, now: datetime) -> datetime | None:
        """The run time of its schedule's newest occurrence that is due and was not withdrawn, of whatever
        revision; None if that is the event's own."""
        newest = self._majority.find_one(
            {
                "schedule_id": event.schedule_id,
                "run_time": {"$gt": event.run_time, "$lte": now},
                "kind": Kind.SCHEDULED,
                "state": {"$ne": State.CANCELLED},
            },
            {"run_time": 1},
            sort=[("run_time", DESCENDING), ("_id", DESCENDING)],
            hint="schedule_v1",
        )
        return newest["run_time"] if newest else None

"""Events as MongoDB keeps them, and what their transitions have in common."""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any

from scheduler_app.domain.event import TRANSITIONS, Event, Kind, State
from scheduler_app.domain.field_types import (
    Corrupt,
    instant,
    optional,
    tenant,
    text,
    version,
    whole,
)
from scheduler_app.domain.origin import MAX_ORIGIN, UNKNOWN_ORIGIN
from scheduler_app.domain.queues import CALLBACKS, is_queue
from scheduler_app.store.collection import Document, Documents
from scheduler_app.store.events.fields import DOCUMENT_VERSION, MESSAGE_VERSION, kind, owner_schedule
from scheduler_app.store.events.history import appended, line
from scheduler_app.store.events.set_aside import set_aside, update_sound
from scheduler_app.store.mongo import BY_ID, written_by_token

#: The fields that a claim reads: all but the history.
CLAIMED = {
    "v": 1,
    "schedule_id": 1,
    "revision": 1,
    "run_time": 1,
    "due_at": 1,
    "kind": 1,
    "attempt": 1,
    "attempts_before": 1,
    "lost_leases": 1,
    "tenant": 1,
    "postponed_from": 1,
    "due_since": 1,
    "origin": 1,
    "hops": 1,
    "queue": 1,
    "routed": 1,
}

#: Fields that a claim, or a postponement before it, notes on an event. The end of the claim removes them.
WHILE_CLAIMED = ("isolated", "postponed_from", "waits_for")


def sources(verb: str) -> dict[str, list[str]]:
    """The states that a transition may start from, as a condition."""
    return {"$in": sorted(TRANSITIONS[verb].sources)}


#: Documents of a newer release are left to its processes.
READABLE: Document = {"v": {"$not": {"$gt": MESSAGE_VERSION}}}


def to_document(event: Event, now: datetime, message: str) -> Document:
    """A new event, with the first line of its history."""
    document = {
        "_id": event.id,
        "v": DOCUMENT_VERSION,
        "tenant": event.tenant,
        "schedule_id": event.schedule_id,
        "revision": event.revision,
        "kind": event.kind.value,
        "run_time": event.run_time,
        "state": State.READY_QUEUE.value,
        "due_at": event.due_at,
        "queue": event.queue,
        "origin": event.origin,
        "attempt": 0,
        "dispatches": 0,
        "lost_leases": 0,
        "status": [line(now, State.READY_QUEUE, message)],
        "attempts": [],
        "created_at": now,
    }
    if event.queue != CALLBACKS:
        document["routed"] = True
    if event.due_since is not None:
        document["due_since"] = event.due_since
    if event.hops:
        document["hops"] = event.hops
    return document


def to_expired_document(event: Event, now: datetime, message: str) -> Document:
    """A new event that has already ended: its occurrence was missed."""
    document = to_document(event, now, message)
    del document["due_at"]
    said = [line(now, State.EXPIRED, message)]
    return document | {"state": State.EXPIRED.value, "status": said, "archived_at": now}


def to_event(row: Document) -> Event:
    """What delivery and dispatch need to know of it. Raises Corrupt."""
    version(row.get("v"), MESSAGE_VERSION)
    event_id = text(row["_id"], "_id")
    tenant(row.get("tenant"), "tenant", event_id)
    return Event(
        id=event_id,
        schedule_id=owner_schedule(row.get("schedule_id"), "schedule_id", event_id),
        revision=whole(row.get("revision"), "revision", least=1),
        run_time=instant(row.get("run_time"), "run_time"),
        due_at=instant(row.get("due_at"), "due_at"),
        kind=Kind(kind(row.get("kind"), "kind", event_id)),
        attempt=whole(row.get("attempt"), "attempt"),
        attempts_before=whole(row.get("attempts_before") or 0, "attempts_before"),
        lost_leases=whole(row.get("lost_leases") or 0, "lost_leases"),
        hops=whole(row.get("hops") or 0, "hops"),
        origin=stored_origin(row),
        queue=stored_queue(row),
        postponed_from=optional(instant, row.get("postponed_from"), "postponed_from"),
        due_since=optional(instant, row.get("due_since"), "due_since"),
    )


def stored_origin(row: Document) -> str:
    """The origin as it was written; UNKNOWN_ORIGIN where none was, or nothing that could be one."""
    origin = row.get("origin")
    return origin if isinstance(origin, str) and len(origin) <= MAX_ORIGIN else UNKNOWN_ORIGIN


def stored_queue(row: Mapping[str, Any]) -> str:
    """The queue as it was written; CALLBACKS where none was, or nothing that could be one."""
    queue = row.get("queue")
    return str(queue) if row.get("routed") is True and is_queue(queue) else CALLBACKS


def in_queues(queues: Collection[str]) -> Document:
    """A condition for events in one of these queues.

    Events in another queue than CALLBACKS are `routed`: a partial index has them alone, and those who name no
    queue pay for none. What is in no queue that could be one counts as in CALLBACKS, until it is set aside.
    """
    named = sorted(queue for queue in queues if queue != CALLBACKS)
    in_named: Document = {"routed": True, "queue": named[0] if len(named) == 1 else {"$in": named}}
    if CALLBACKS not in queues:
        return in_named
    in_callbacks: Document = {"routed": {"$ne": True}}
    return {"$or": [in_callbacks, in_named]} if named else in_callbacks


def to_events(events: Documents, rows: Iterable[Document]) -> list[Event]:
    """The events that can be read. The others are set aside, unless a newer release wrote them."""
    found = []
    for row in rows:
        try:
            found.append(to_event(row))
        except Corrupt as error:
            set_aside(events, row["_id"], error)
    return found


def finish(
    events: Documents,
    which: Document,
    state: State,
    now: datetime,
    message: str,
    extra: Document | None = None,
) -> int:
    """Moves what matches `which` into a final state; returns how many at least. What MongoDB rejects is set
    aside."""
    written = update_sound(
        events,
        which,
        [
            {
                "$set": {
                    "state": state,
                    "archived_at": now,
                    "status": appended("status", line(now, state, message)),
                }
                | (extra or {})
            },
            {"$unset": ["due_at", "owner", "lease_until", "dispatcher", *WHILE_CLAIMED]},
        ],
    )
    return written.modified


def update_by_token(events: Documents, which: Document, pipeline: list[Document]) -> int | None:
    """An update whose effect is read back by its token, where its connection broke or MongoDB has rejected
    some of the documents, which are set aside. Returns how many documents matched; None when they have to be
    read back. Raises a STORE_FAULT."""
    written = written_by_token(lambda: update_sound(events, which, pipeline, hint=BY_ID))
    return written.matched if written is not None and written.at_once else None

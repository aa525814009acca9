"""Events as MongoDB keeps them, and what their transitions have in common: an append-only, bounded history,
and updates that set corrupt events aside.

An event whose document is corrupt ends in `error` by itself, with the reason. What was wrong is kept as
text in the event's `corrupt`, and is replaced: the event can be listed and redriven.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from bson import json_util

from scheduler_app.clock import clock
from scheduler_app.domain.act import ActorKind
from scheduler_app.domain.action import CALLBACKS, MAX_ORIGIN, UNKNOWN_ORIGIN, is_queue
from scheduler_app.domain.event import Event
from scheduler_app.domain.states import FINAL, TRANSITIONS, Kind, State
from scheduler_app.domain.stored_fields import Corrupt, Newer, instant, optional, tenant, text, version, whole
from scheduler_app.store.acting import current_act
from scheduler_app.store.bulk_writes import write_isolated
from scheduler_app.store.events.fields import (
    DOCUMENT_VERSION,
    MESSAGE_VERSION,
    field_faults,
    read_kind,
    read_schedule_id,
    replaced_fields,
)
from scheduler_app.store.faults import REJECTED, of_one_document
from scheduler_app.store.mongo import BY_ID, Document, Documents, written_by_token
from scheduler_app.telemetry import get_logger, metrics

#: A list keeps its first line and this many of the last ones. Counters count all.
KEPT_LAST = 50


def history_line(now: datetime, state: State, message: str) -> dict[str, Any]:
    """A line of an event's `status` list, as in the seed."""
    return {"time": now, "status": state.value, "message": message}


def line_of_act(now: datetime, state: State, message: str) -> dict[str, Any]:
    """A line that also says whose act it is, and by which request: it stands for a line of the audit. The
    scheduler's own has no more than any other."""
    line, act = history_line(now, state, message), current_act()
    if act.by.kind is ActorKind.SCHEDULER:
        return line
    said = {
        "by": act.by.name or act.by.kind.value,
        "key": act.by.key,
        "address": act.by.address,
        "reason": act.reason,
        "request_id": act.request_id,
    }
    return line | {name: value for name, value in said.items() if value}


def appended(field: str, entry: Mapping[str, Any] | str) -> dict[str, Any]:
    """The expression of `field` with `entry` at its end, for an update with a pipeline.

    `entry` is a value, or the path of the field that holds it. A value is a `$literal`, because an answer's
    text may begin with `$`.
    """
    item = [entry] if isinstance(entry, str) else [{"$literal": dict(entry)}]
    return {
        "$let": {
            "vars": {"list": {"$ifNull": [f"${field}", []]}},
            "in": {
                "$cond": [
                    {"$lte": [{"$size": "$$list"}, KEPT_LAST]},
                    {"$concatArrays": ["$$list", item]},
                    {
                        "$concatArrays": [
                            {"$slice": ["$$list", 1]},
                            {"$slice": ["$$list", 1 - KEPT_LAST]},
                            item,
                        ]
                    },
                ]
            },
        }
    }


log = get_logger(__name__)

#: Characters that are kept of a wrong value.
KEPT_CHARACTERS = 10_000
#: The fields of an event that is alive, or claimed.
_OF_THE_LIVING = (
    "due_at",
    "owner",
    "lease_until",
    "dispatcher",
    "isolated",
    "postponed_from",
    "due_since",
    "waits_for",
    "superseded_by",
    "held",
)


class UpdateCount(NamedTuple):
    """How many documents an update matched and modified; exact only when it was done `at_once`."""

    matched: int
    modified: int
    at_once: bool


def update_or_set_aside(
    events: Documents, which: Document, change: Document | list[Document], **options: Any
) -> UpdateCount:
    """`update_many`; the events that make MongoDB reject it are set aside, and the others updated."""

    def update(ids: Sequence[Any] | None) -> UpdateCount:
        chosen = which if ids is None else which | {"_id": {"$in": list(ids)}}
        result = events.update_many(chosen, change, **options)
        return UpdateCount(result.matched_count, result.modified_count, at_once=True)

    try:
        return update(None)
    except REJECTED:
        named = [row["_id"] for row in events.find(which, {"_id": 1})]
    parts, _ = write_isolated(named, update, lambda event_id, error: set_event_aside(events, event_id, error))
    return UpdateCount(
        sum(part.matched for part in parts), sum(part.modified for part in parts), at_once=False
    )


def set_event_aside(
    events: Documents, event_id: Any, error: Exception, *, attempt: Mapping[str, Any] | None = None
) -> bool:
    """Ends an event in `error` if its document is the reason for `error`, and mends the document; a final
    state stays what it is. False when nothing is wrong with it.

    `attempt` is kept: an attempt that was made while the document could not be written to.
    """
    if isinstance(error, Newer):
        log.error(
            "event.newer",
            message="An event was written by a newer release; its processes will do it",
            event_id=str(event_id)[:200],
            reason=str(error),
        )
        return True
    row = events.find_one({"_id": event_id})
    if row is None:
        return True
    faults = field_faults(row)
    if not faults and not of_one_document(error):
        return False
    reason = "; ".join(faults.values()) or str(error)[:500]
    ended = _ended_in_error(row, faults, reason, attempt)
    try:
        events.update_one(_unchanged_since_read(row), ended)
    except REJECTED:
        # Mostly, the document is too large: its history is removed, and the reason stays.
        lines = [ended["$set"]["status"][-1]]
        made = [{"claim": attempt.get("claim"), "error": reason}] if attempt else []
        small = ended["$set"] | {"status": lines, "attempts": made, "corrupt": {"*": reason}}
        events.update_one(_unchanged_since_read(row), ended | {"$set": small})
    metrics.events_set_aside.inc()
    log.error(
        "event.set_aside",
        message="An event's document is corrupt; it is in error, for a redrive",
        event_id=str(event_id)[:200],
        reason=reason,
    )
    return True


def _ended_in_error(
    row: Document, faults: Mapping[str, str], reason: str, attempt: Mapping[str, Any] | None
) -> Document:
    state = row.get("state")
    final = "state" not in faults and state in FINAL
    now, ends_as = clock.now(), State(str(state)) if final else State.ERROR
    put: Document = {"attempts": row.get("attempts"), "status": row.get("status")} | replaced_fields(
        row, faults
    )
    if attempt is not None:
        put["attempts"] = [*_bounded(put["attempts"]), dict(attempt)]
        if "attempt" not in put:
            put["attempt"] = int(row["attempt"]) + 1
    put["status"] = [*_bounded(put["status"]), history_line(now, ends_as, f"Set aside: {reason}")]
    put["state"] = ends_as.value
    if not final or "archived_at" in faults:
        put["archived_at"] = now
    kept = {
        name: f"{why}: {json_util.dumps(row[name])[:KEPT_CHARACTERS]}"
        for name, why in faults.items()
        if name in row
    }
    if kept:
        put["corrupt"] = kept
    return {"$set": put, "$unset": dict.fromkeys(_OF_THE_LIVING, "")}


def _bounded(lines: Any) -> list[Any]:
    """As `appended` keeps them: the first one and the last ones."""
    return [*lines[:1], *lines[1:][1 - KEPT_LAST :]]


def _unchanged_since_read(row: Document) -> Document:
    """The event, if its state has not changed since it was read."""
    same = {name: row.get(name) for name in ("state", "owner") if isinstance(row.get(name), str | None)}
    return {"_id": {"$eq": row["_id"]}} | same


__all__ = ["Corrupt", "UpdateCount", "set_event_aside", "update_or_set_aside"]


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


def source_states(verb: str) -> dict[str, list[str]]:
    """The states that a transition may start from, as a condition."""
    return {"$in": sorted(TRANSITIONS[verb].sources)}


#: Documents of a newer release are left to its processes.
READABLE: Document = {"v": {"$not": {"$gt": MESSAGE_VERSION}}}


def to_event_document(event: Event, now: datetime, message: str) -> Document:
    """A new event, with the first line of its history."""
    line = history_line if event.kind is Kind.SCHEDULED else line_of_act
    document = {
        "_id": event.id,
        "v": DOCUMENT_VERSION,
        "tenant": event.tenant,
        "partition": event.partition,
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


def to_expired_event_document(event: Event, now: datetime, message: str) -> Document:
    """A new event that has already ended: its occurrence was missed."""
    document = to_event_document(event, now, message)
    del document["due_at"]
    said = [history_line(now, State.EXPIRED, message)]
    return document | {"state": State.EXPIRED.value, "status": said, "archived_at": now}


def to_event(row: Document) -> Event:
    """What delivery and dispatch need to know of it. Raises Corrupt."""
    version(row.get("v"), MESSAGE_VERSION)
    event_id = text(row["_id"], "_id")
    tenant(row.get("tenant"), "tenant", event_id)
    return Event(
        id=event_id,
        schedule_id=read_schedule_id(row.get("schedule_id"), "schedule_id", event_id),
        revision=whole(row.get("revision"), "revision", least=1),
        run_time=instant(row.get("run_time"), "run_time"),
        due_at=instant(row.get("due_at"), "due_at"),
        kind=Kind(read_kind(row.get("kind"), "kind", event_id)),
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
            set_event_aside(events, row["_id"], error)
    return found


def finish_events(
    events: Documents,
    which: Document,
    state: State,
    now: datetime,
    message: str,
    extra: Document | None = None,
) -> int:
    """Moves what matches `which` into a final state; returns how many at least. What MongoDB rejects is set
    aside."""
    written = update_or_set_aside(
        events,
        which,
        [
            {
                "$set": {
                    "state": state,
                    "archived_at": now,
                    "status": appended("status", line_of_act(now, state, message)),
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
    written = written_by_token(lambda: update_or_set_aside(events, which, pipeline, hint=BY_ID))
    return written.matched if written is not None and written.at_once else None

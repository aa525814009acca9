"""Sets aside events whose documents are corrupt: each ends in `error` by itself, with the reason.

What was wrong is kept as text in the event's `corrupt`, and is replaced: the event can be listed and
redriven.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bson import json_util

from scheduler_app.clock import clock
from scheduler_app.domain.event import FINAL, State
from scheduler_app.domain.field_types import Corrupt, Newer
from scheduler_app.store.collection import Document, Documents
from scheduler_app.store.documents.isolation import isolated
from scheduler_app.store.events.fields import faults_of, mended
from scheduler_app.store.events.history import KEPT_LAST, line
from scheduler_app.store.faults import REJECTED, of_one_document
from scheduler_app.telemetry import get_logger, metrics

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


class Written(NamedTuple):
    """How many documents an update matched and modified; exact only when it was done `at_once`."""

    matched: int
    modified: int
    at_once: bool


def update_sound(events: Documents, which: Document, pipeline: list[Document], **options: Any) -> Written:
    """`update_many`; the events that make MongoDB reject it are set aside, and the others updated."""

    def update(ids: Sequence[Any] | None) -> Written:
        chosen = which if ids is None else which | {"_id": {"$in": list(ids)}}
        result = events.update_many(chosen, pipeline, **options)
        return Written(result.matched_count, result.modified_count, at_once=True)

    try:
        return update(None)
    except REJECTED:
        named = [row["_id"] for row in events.find(which, {"_id": 1})]
    parts, _ = isolated(named, update, lambda event_id, error: set_aside(events, event_id, error))
    return Written(sum(part.matched for part in parts), sum(part.modified for part in parts), at_once=False)


def set_aside(
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
    faults = faults_of(row)
    if not faults and not of_one_document(error):
        return False
    reason = "; ".join(faults.values()) or str(error)[:500]
    ended = _ended(row, faults, reason, attempt)
    try:
        events.update_one(_as_read(row), ended)
    except REJECTED:
        # Mostly, the document is too large: its history is removed, and the reason stays.
        lines = [ended["$set"]["status"][-1]]
        made = [{"claim": attempt.get("claim"), "error": reason}] if attempt else []
        small = ended["$set"] | {"status": lines, "attempts": made, "corrupt": {"*": reason}}
        events.update_one(_as_read(row), ended | {"$set": small})
    metrics.events_set_aside.inc()
    log.error(
        "event.set_aside",
        message="An event's document is corrupt; it is in error, for a redrive",
        event_id=str(event_id)[:200],
        reason=reason,
    )
    return True


def _ended(
    row: Document, faults: Mapping[str, str], reason: str, attempt: Mapping[str, Any] | None
) -> Document:
    state = row.get("state")
    final = "state" not in faults and state in FINAL
    now, ends_as = clock.now(), State(str(state)) if final else State.ERROR
    put: Document = {"attempts": row.get("attempts"), "status": row.get("status")} | mended(row, faults)
    if attempt is not None:
        put["attempts"] = [*_bounded(put["attempts"]), dict(attempt)]
        if "attempt" not in put:
            put["attempt"] = int(row["attempt"]) + 1
    put["status"] = [*_bounded(put["status"]), line(now, ends_as, f"Set aside: {reason}")]
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


def _as_read(row: Document) -> Document:
    """The event, if its state has not changed since it was read."""
    same = {name: row.get(name) for name in ("state", "owner") if isinstance(row.get(name), str | None)}
    return {"_id": {"$eq": row["_id"]}} | same


__all__ = ["Corrupt", "Written", "set_aside", "update_sound"]

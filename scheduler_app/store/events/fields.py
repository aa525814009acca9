"""Checks of the fields of stored events, and the values that replace those that are wrong."""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, cast

from scheduler_app.domain.action import CALLBACKS, is_queue
from scheduler_app.domain.event import (
    LEAST_COMPLETION_TIMEOUT,
    MAX_COMPLETION_TIMEOUT,
    CompletionReport,
    from_id,
)
from scheduler_app.domain.ids import PARTITIONS, is_backfill, is_message, partition_of, schedule_of, tenant_of
from scheduler_app.domain.missed import Missed
from scheduler_app.domain.notification import Notifying, OwedNotification
from scheduler_app.domain.retry import MAX_BACKOFF_SECONDS
from scheduler_app.domain.states import LIVING, Kind, State
from scheduler_app.domain.stored_fields import (
    EARLIEST,
    LATEST,
    Corrupt,
    fields,
    flag,
    instant,
    items,
    number,
    one_of,
    schedule_id,
    tenant,
    text,
    version,
    whole,
    wrong,
)
from scheduler_app.store.resource_fields import destination_name

_REPORT_KINDS = ("completed", "failed", "timed_out")
_MAX_RETRY_MS = int(2 * MAX_BACKOFF_SECONDS * 1000)


def check_completion(value: Any, name: str) -> None:
    """Raises Corrupt for a stored `completion` that no release has written."""
    kept = fields(value, name)
    for token in items(kept.get("tokens"), f"{name}.tokens"):
        text(token, f"an item of {name}.tokens")
    whole(kept.get("attempt"), f"{name}.attempt", least=1)
    number(
        kept.get("seconds"), f"{name}.seconds", least=LEAST_COMPLETION_TIMEOUT, most=MAX_COMPLETION_TIMEOUT
    )
    if kept.get("retry_in_ms") is not None:
        whole(kept["retry_in_ms"], f"{name}.retry_in_ms", most=_MAX_RETRY_MS)
    if kept.get("awaiting") is not None:
        flag(kept["awaiting"], f"{name}.awaiting")
    if kept.get("told") is not None:
        read_completion_report(kept["told"], f"{name}.told")


def read_completion_report(value: Any, name: str) -> CompletionReport:
    kept = fields(value, name)
    return CompletionReport(
        cast(Any, one_of(kept.get("how"), f"{name}.how", _REPORT_KINDS)),
        whole(kept.get("attempt"), f"{name}.attempt"),
        instant(kept.get("at"), f"{name}.at"),
    )


#: `v` of an occurrence's event.
DOCUMENT_VERSION = 1
#: `v` of a message, which releases that know no messages leave alone; the newest that is read.
MESSAGE_VERSION = 2

_KINDS = tuple(kind.value for kind in Kind)
_STATES = tuple(state.value for state in State)


def read_schedule_id(value: Any, name: str, event_id: str) -> str:
    """The schedule of an event, empty for a message. Raises Corrupt."""
    if is_message(event_id):
        if value is not None:
            raise wrong(name, value, "missing: a message has no schedule")
        return ""
    return schedule_id(value, name, event_id)


def read_kind(value: Any, name: str, event_id: str) -> str:
    """The kind of an event, which fits its id. Raises Corrupt."""
    named = one_of(value, name, _KINDS)
    if (named == Kind.MESSAGE.value) != is_message(event_id):
        raise Corrupt(f"{name} is {named!r}, which does not fit the event's id")
    return named


def _list_of_lines(value: Any, name: str) -> list[Any]:
    for line in items(value, name):
        if not isinstance(line, dict):
            raise wrong(f"an item of {name}", line, "an object")
    return list(value)


def read_missed(value: Any, name: str) -> Missed:
    """What a record of missed occurrences tells of. Raises Corrupt."""
    row = fields(value, name)
    return Missed(
        instant(row.get("first"), f"{name}.first"),
        instant(row.get("last"), f"{name}.last"),
        whole(row.get("count"), f"{name}.count"),
    )


def read_owed_notification(value: Any, name: str) -> OwedNotification:
    """The notification that an event owes. Raises Corrupt."""
    row = fields(value, name)
    destination = row.get("destination")
    return OwedNotification(
        when=Notifying(one_of(row.get("when"), f"{name}.when", tuple(Notifying))),
        since=instant(row.get("since"), f"{name}.since"),
        destination=None if destination is None else destination_name(destination, f"{name}.destination"),
        hops=whole(row.get("hops") or 0, f"{name}.hops"),
    )


def owed_notification_document(owed: OwedNotification) -> dict[str, Any]:
    """What `read_owed_notification` reads."""
    document = {
        "when": owed.when.value,
        "since": owed.since,
        "destination": owed.destination,
        "hops": owed.hops or None,
    }
    return {name: value for name, value in document.items() if value is not None}


#: Fields that each event has, and that must fit its id.
OWNED: dict[str, Callable[[Any, str, str], str]] = {
    "tenant": tenant,
    "schedule_id": read_schedule_id,
    "kind": read_kind,
}
#: Fields that each event has.
REQUIRED: dict[str, Callable[[Any, str], Any]] = {
    "_id": text,
    "v": lambda value, name: version(value, MESSAGE_VERSION),
    "revision": partial(whole, least=1),
    "run_time": instant,
    "state": lambda value, name: one_of(value, name, _STATES),
    "attempt": whole,
    "status": _list_of_lines,
    "attempts": _list_of_lines,
    "created_at": instant,
}
#: Fields that only some events have. Readers accept them missing, null, or right.
OPTIONAL: dict[str, Callable[[Any, str], Any]] = {
    "attempts_before": whole,
    "lost_leases": whole,
    "dispatches": whole,
    "archived_at": instant,
    "hops": whole,
    "origin": text,
    "partition": partial(whole, most=PARTITIONS - 1),
    "routed": flag,
    "queue_by_destination": flag,
    "postponed_from": instant,
    "due_since": instant,
    "missed": read_missed,
    "held": text,
    "isolated": text,
    "completion": check_completion,
    "waits_for": text,
    "superseded_by": text,
    "isolated_losses": whole,
    "corrupt": fields,
    "notify": read_owed_notification,
}


def field_faults(row: Mapping[str, Any]) -> dict[str, str]:
    """The fields that are not what they must be, each with the reason."""
    found: dict[str, str] = {}
    for name, check_owner in OWNED.items():
        try:
            check_owner(row.get(name), name, row["_id"] if isinstance(row["_id"], str) else "")
        except Corrupt as error:
            found[name] = str(error)
    for name, check in REQUIRED.items():
        try:
            check(row.get(name), name)
        except Corrupt as error:
            found[name] = str(error)
    for name, check in OPTIONAL.items():
        if row.get(name) is not None:
            try:
                check(row[name], name)
            except Corrupt as error:
                found[name] = str(error)
    if row.get("routed") is True and not is_queue(row.get("queue")):
        found["queue"] = "queue is no name that a queue may have"
    if "dispatches" in row and row["dispatches"] is None:  # $inc takes a missing one, not null
        found["dispatches"] = str(wrong("dispatches", None, "a whole number"))
    due_at = row.get("due_at")
    if ("due_at" in row or row.get("state") in _LIVING) and not _is_instant(due_at):
        found["due_at"] = str(wrong("due_at", due_at, "a date"))
    return found


def replaced_fields(row: Mapping[str, Any], faults: Mapping[str, str]) -> dict[str, Any]:
    """Replacements of the faulty fields, so that the event can be listed and redriven: what its id tells,
    and else a neutral value."""
    event_id = row["_id"] if isinstance(row["_id"], str) else ""
    told, message = from_id(event_id), is_message(event_id)
    by_hand = Kind.BACKFILL if not message and is_backfill(event_id) else Kind.MANUAL
    kind_told = Kind.MESSAGE if message else Kind.SCHEDULED if told else by_hand
    default: dict[str, Any] = {
        "v": MESSAGE_VERSION if message else DOCUMENT_VERSION,
        "tenant": tenant_of(event_id),
        "schedule_id": None if message else schedule_of(event_id),
        "partition": partition_of(event_id if message else schedule_of(event_id)),
        "revision": told.revision if told else 1,
        "kind": kind_told.value,
        "run_time": told.run_time if told else _time_for_missing(row),
        "state": State.ERROR.value,
        "attempt": 0,
        "dispatches": 0,
        "lost_leases": 0,
        "attempts_before": 0,
        "isolated_losses": 0,
        "queue": CALLBACKS,
        "routed": False,
        "queue_by_destination": False,
        "created_at": _time_for_missing(row),
        "status": _lines(row.get("status")),
        "attempts": _lines(row.get("attempts")),
        "notify": None,
    }
    return {name: default[name] for name in faults if name in default}


def readable_event(row: dict[str, Any]) -> dict[str, Any]:
    """The event as it can be shown, without what is wrong in it. `corrupt` holds the reasons."""
    faults = field_faults(row)
    shown = _with_readable_lines(row)
    if not faults:
        return shown
    told = {name: value for name, value in shown.items() if name not in faults}
    return {"schedule_id": ""} | told | replaced_fields(row, faults) | {"corrupt": faults}


def _with_readable_lines(row: dict[str, Any]) -> dict[str, Any]:
    lists = {name: row[name] for name in ("status", "attempts") if name in row}
    right = {name: _shown_lines(name, value) for name, value in lists.items()}
    return row if all(right[name] is lists[name] for name in lists) else row | right


#: What is shown of a line; other fields are for the store itself.
_LINE: dict[str, tuple[type, ...]] = {
    "time": (datetime,),
    "status": (str,),
    "message": (str,),
    **dict.fromkeys(("by", "key", "address", "reason", "request_id"), (str,)),
    "number": (int, float),
    "started_at": (datetime,),
    "duration_ms": (int, float),
    "lag_ms": (int, float),
    "status_code": (int, float, type(None)),
    "error": (str, type(None)),
    "snippet": (str,),
    "output": (str,),
    "worker": (str,),
    "late": (bool,),
}


def _shown_lines(name: str, lines: Any) -> Any:
    if type(lines) is not list:
        return []
    if all(map(_is_readable_line, lines)):
        return lines
    return [
        {key: value for key, value in line.items() if _is_shown(key, value)}
        for line in lines
        if isinstance(line, dict)
    ]


def _is_readable_line(line: Any) -> bool:
    return isinstance(line, dict) and all(_is_shown(key, value) for key, value in line.items())


def _is_shown(key: str, value: Any) -> bool:
    if key not in _LINE:
        return True
    if isinstance(value, float) and value - value != 0:  # NaN and the infinities are no JSON
        return False
    return isinstance(value, _LINE[key])


def _lines(value: Any) -> list[Any]:
    return [line for line in value if isinstance(line, dict)] if type(value) is list else []


def _time_for_missing(row: Mapping[str, Any]) -> datetime:
    names = ("created_at", "run_time", "due_at", "archived_at")
    return next((row[name] for name in names if _is_instant(row.get(name))), EARLIEST)


def _is_instant(value: Any) -> bool:
    return isinstance(value, datetime) and EARLIEST <= value < LATEST


_LIVING = tuple(state.value for state in LIVING)

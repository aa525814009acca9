"""The lines of an export of a tenant, read as values that a tenant of this installation may have.

Documents are read by the readers of what is stored, and are written anew from what those have made: what a
file holds beside that gets nowhere.
"""

from datetime import UTC
from typing import Final, NamedTuple

from bson import json_util
from bson.codec_options import DatetimeConversion

from scheduler_app.domain.event import Event, from_id
from scheduler_app.domain.http_action import http_action
from scheduler_app.domain.ids import WholeId, is_message, name_of, schedule_of, tenant_of, whole_id
from scheduler_app.domain.message import Message
from scheduler_app.domain.schedule import Schedule
from scheduler_app.domain.states import FINAL, Kind, State
from scheduler_app.domain.stored_fields import Corrupt, fields, instant, one_of, optional, text, whole
from scheduler_app.store.encryption import SecretBox
from scheduler_app.store.events.messages import read_message
from scheduler_app.store.mongo import Document

#: Of the lines' form.
EXPORT_VERSION: Final = 1
_JSON: Final = json_util.JSONOptions(
    tz_aware=True, tzinfo=UTC, datetime_conversion=DatetimeConversion.DATETIME_AUTO
)
_KINDS: Final = tuple(kind.value for kind in Kind)
_STATES: Final = tuple(state.value for state in State)


class ImportedLine(NamedTuple):
    """A document of an export, with the ids that it has in the tenant that takes it."""

    collection: str
    id: str
    document: Document
    lacks: str = ""
    """What of its secrets is not in the export."""


def read_header(line: str) -> str:
    """The tenant that was exported. Raises Corrupt."""
    header = _parsed(line)
    if header.get("rrule_scheduler_export") != EXPORT_VERSION:
        raise Corrupt(
            "is not the first line of an export of a tenant, which this release reads: it has"
            f" rrule_scheduler_export: {EXPORT_VERSION}"
        )
    return text(header.get("tenant"), "tenant")


def read_line(line: str, source: str, target: str) -> ImportedLine | None:
    """A line of the tenant `source`, for the tenant `target`; None for the last one, which has the counts.
    Raises Corrupt."""
    row = _parsed(line)
    if row.get("end") is True:
        return None
    collection, document = text(row.get("collection"), "collection"), fields(row.get("document"), "document")
    own_id = text(document.get("_id"), "document._id")
    if document.get("tenant") != source or tenant_of(own_id) != source:
        raise Corrupt(f"is not of the tenant {source[:64]}, which this file is of")
    moved = whole_id(target, name_of(own_id))
    lacks = row["left_out"].get("fields", "") if isinstance(row.get("left_out"), dict) else ""
    own = _moved(document, target) | {"_id": moved, "tenant": target}
    return ImportedLine(collection, moved, own, str(lacks))


def _parsed(line: str) -> Document:
    try:
        found = json_util.loads(line, json_options=_JSON)
    except Exception as error:  # a line edited by hand may cause any error
        raise Corrupt(f"is no JSON of an export: {error}"[:300]) from None
    return fields(found, "the line")


def _moved(document: Document, target: str) -> Document:
    """With the ids that documents hold of other things of their tenant."""
    found = dict(document)
    for name in ("schedule_id", "target"):
        if isinstance(found.get(name), str):
            found[name] = whole_id(target, name_of(found[name]))
    action = found.get("action")
    if isinstance(action, dict) and isinstance(action.get("destination"), str):
        found["action"] = action | {"destination": whole_id(target, name_of(action["destination"]))}
    return found


def is_waiting(document: Document) -> bool:
    """Whether an event had not ended where it was exported."""
    return str(document.get("state")) not in FINAL


def owner_of(document: Document) -> WholeId | None:
    """The schedule whose event it is; None for a message."""
    own_id = str(document["_id"])
    return None if is_message(own_id) else WholeId(schedule_of(own_id))


def waiting_event(document: Document, schedule: Schedule) -> Event:
    """An event that waited, as it is made of a schedule that goes on here. Raises Corrupt."""
    made = _event(document, schedule.id, schedule.action.isolation_key, schedule.queue)
    derived = from_id(made.id)
    if made.kind is Kind.SCHEDULED and (
        derived is None or (derived.revision, derived.run_time) != (made.revision, made.run_time)
    ):
        raise Corrupt("its id is not that of its schedule, revision and run time")
    return made


def waiting_message(document: Document, secret_box: SecretBox) -> tuple[Event, Message]:
    """Raises Corrupt."""
    message = read_message(document, secret_box)
    if not isinstance(message, Message):
        raise Corrupt(message.reason)
    action = http_action(message.action)
    made = _event(document, "", action.isolation_key, message.queue)
    return made._replace(kind=Kind.MESSAGE, hops=message.hops, message=message), message


def _event(row: Document, schedule_id: str, origin: str, queue: str) -> Event:
    get = row.get
    one_of(get("state"), "state", _STATES)
    run_time = instant(get("run_time"), "run_time")
    return Event(
        id=text(row["_id"], "_id"),
        schedule_id=schedule_id,
        revision=whole(get("revision"), "revision", least=1),
        run_time=run_time,
        due_at=optional(instant, get("due_at"), "due_at") or run_time,
        kind=Kind(one_of(get("kind"), "kind", _KINDS)),
        origin=origin,
        queue=queue,
        hops=whole(get("hops") or 0, "hops"),
    )

"""The lines of the audit as documents."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final

from bson import ObjectId

from scheduler_app.clock import clock
from scheduler_app.domain.act import Act, Actor, ActorKind
from scheduler_app.domain.audit import AuditLine, Change, Difference
from scheduler_app.domain.ids import SEPARATOR, TENANT, WholeId, name_of, tenant_of
from scheduler_app.domain.instants import shown_instant
from scheduler_app.domain.schedule import EditedTimes
from scheduler_app.domain.stored_fields import (
    Corrupt,
    fields,
    flag,
    instant,
    items,
    one_of,
    optional,
    tenant,
    text,
    version,
    whole,
)
from scheduler_app.store.acting import current_act
from scheduler_app.store.mongo import Document

DOCUMENT_VERSION: Final = 1
BY_RESOURCE: Final = "resource_v1"
BY_NUMBER: Final = "number_v1"
OF_ALL: Final = "list_v1"
UNCHAINED: Final = "unchained_v1"
#: Of schedules.
OWED_LINES: Final = "unlogged_v1"
#: What every document has, or what only counts its writes.
_UNTOLD = ("_id", "v", "tenant", "origin", "writes", "version", "sealed", "updated_at", "request_seed")


def plain_fields(row: Mapping[str, Any]) -> Document:
    """What a document says; a shorter digest in the place of one that opens something."""
    return {
        name: str(value)[:16] if name.endswith("_sha256") else value
        for name, value in row.items()
        if name not in _UNTOLD
    }


def with_names(fields: Mapping[str, Any], tenant: str) -> Document:
    """The fields with names in the place of a tenant's ids: its people know no others."""
    is_id = re.compile(rf"{re.escape(tenant)}{SEPARATOR}[^\s:]+").fullmatch

    def told(value: Any) -> Any:
        if isinstance(value, str):
            return name_of(value) if is_id(value) else value
        if isinstance(value, Mapping):
            return {name: told(each) for name, each in value.items()}
        return list(map(told, value)) if isinstance(value, list | tuple) else value

    return {name: told(value) for name, value in fields.items()}


def new_line_document(change: Change, line_id: str | None = None) -> Document:
    """The line of a change that this thread's act makes, as it is stored."""
    return _line_document(change, _said_of_act(current_act()), line_id)


def new_line_documents(changes: Iterable[Change]) -> Iterator[Document]:
    """The lines of what one act changes at once, which may be thousands: what they have in common is made
    once."""
    said = _said_of_act(current_act())
    return (_line_document(change, said) for change in changes)


def _said_of_act(act: Act) -> Document:
    """What every line of an act says. None has its place in the chain yet."""
    by: Document = {
        "kind": act.by.kind.value,
        "name": act.by.name,
        "key": act.by.key,
        "address": act.by.address,
        "installation": act.by.is_installations,
    }
    row: Document = {
        "v": DOCUMENT_VERSION,
        "at": clock.now(),
        "by": _without_empty(by),
        "reason": act.reason,
        "request_id": act.request_id,
        "unchained": True,
    }
    return _without_empty(row)


def _line_document(change: Change, said_of_act: Document, line_id: str | None = None) -> Document:
    difference = change.difference.bounded()
    row: Document = {
        "_id": line_id or str(ObjectId()),
        "tenant": TENANT if change.of_installation else tenant_of(change.resource),
        "installation": change.of_installation,
        "what": change.what,
        "kind": change.kind,
        "resource": f"{change.kind}/{change.resource}",
        "version": change.version,
        "before": _storable_fields(difference.before),
        "after": _storable_fields(difference.after),
        "secrets": list(difference.secrets or ()),
        "times": _times_document(difference.times),
        "cut": difference.is_cut,
    }
    return _without_empty(row) | said_of_act


def _without_empty(row: Document) -> Document:
    return {name: value for name, value in row.items() if value}


def _storable_fields(values: Mapping[Any, Any]) -> Document:
    return {str(name): _storable(value) for name, value in values.items()}


def _storable(value: Any) -> Any:
    """A value of a resource as a document may have it."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Mapping):
        return _storable_fields(value)
    if isinstance(value, list | tuple | set | frozenset):
        return [_storable(each) for each in value]
    return shown_instant(value) if isinstance(value, datetime) else str(value)


def _times_document(times: EditedTimes | None) -> Document | None:
    if times is None:
        return None
    return {**asdict(times), "added": list(times.added), "removed": list(times.removed)}


def read_line(row: Mapping[str, Any]) -> AuditLine:
    """A line; of a document that cannot be read, why."""
    try:
        return _read(row)
    except Corrupt as error:
        at, resource = row.get("at"), row.get("resource")
        named = resource if isinstance(resource, str) else "/"
        kind, _, own_id = named.partition("/")
        change = Change("unknown", kind, WholeId(own_id))
        moment = at if isinstance(at, datetime) else datetime.fromtimestamp(0, UTC)
        nobody = Act(Actor(ActorKind.NOBODY))
        return AuditLine(str(row["_id"]), moment, change, nobody, corrupt=str(error))


def _read(row: Mapping[str, Any]) -> AuditLine:
    get = row.get
    version(get("v"), DOCUMENT_VERSION)
    kind, _, own_id = text(get("resource"), "resource").partition("/")
    of_installation = bool(optional(flag, get("installation"), "installation"))
    tenant(get("tenant"), "tenant", TENANT if of_installation else own_id)
    by, secrets = fields(get("by"), "by"), items(get("secrets") or [], "secrets")
    return AuditLine(
        id=text(get("_id"), "_id"),
        at=instant(get("at"), "at"),
        change=Change(
            what=text(get("what"), "what"),
            kind=kind,
            resource=WholeId(own_id),
            difference=Difference(
                fields(get("before") or {}, "before"),
                fields(get("after") or {}, "after"),
                (text(secrets[0], "secrets"), text(secrets[1], "secrets")) if len(secrets) == 2 else None,
                None if get("times") is None else _read_times(get("times")),
                bool(optional(flag, get("cut"), "cut")),
            ),
            version=whole(get("version") or 0, "version"),
            of_installation=of_installation,
        ),
        act=Act(
            Actor(
                ActorKind(one_of(by.get("kind"), "by.kind", tuple(ActorKind))),
                optional(text, by.get("name"), "by.name") or "",
                optional(text, by.get("key"), "by.key") or "",
                optional(text, by.get("address"), "by.address") or "",
                bool(optional(flag, by.get("installation"), "by.installation")),
            ),
            optional(text, get("reason"), "reason") or "",
            optional(text, get("request_id"), "request_id") or "",
        ),
        number=None if get("number") is None else whole(get("number"), "number", least=1),
        hash=optional(text, get("hash"), "hash"),
    )


def _read_times(value: object) -> EditedTimes:
    stored = fields(value, "times")
    added, removed = (
        tuple(instant(each, f"times.{name}") for each in items(stored.get(name) or [], f"times.{name}"))
        for name in ("added", "removed")
    )
    return EditedTimes(
        added,
        removed,
        whole(stored.get("added_count"), "times.added_count"),
        whole(stored.get("removed_count"), "times.removed_count"),
        optional(instant, stored.get("until"), "times.until"),
    )

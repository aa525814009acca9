"""The lines of the audit as documents."""

import re
from collections.abc import Mapping
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


def new_line_document(change: Change, line_id: str | None = None, at: datetime | None = None) -> Document:
    """The line of a change that this thread's act makes, as it is stored."""
    return line_document(AuditLine(line_id or str(ObjectId()), at or clock.now(), change, current_act()))


def line_document(line: AuditLine) -> Document:
    """What is stored of a line that has no place in the chain yet; what is empty is left out."""
    change, act, difference = line.change, line.act, line.change.difference.bounded()
    by: Document = {
        "kind": act.by.kind.value,
        "name": act.by.name,
        "key": act.by.key,
        "address": act.by.address,
    }
    if act.by.is_installations:
        by["installation"] = True
    row: Document = {
        "_id": line.id,
        "v": DOCUMENT_VERSION,
        "tenant": TENANT if change.of_installation else tenant_of(change.resource),
        "installation": change.of_installation,
        "at": line.at,
        "what": change.what,
        "kind": change.kind,
        "resource": f"{change.kind}/{change.resource}",
        "version": change.version,
        "by": {name: value for name, value in by.items() if value},
        "reason": act.reason,
        "request_id": act.request_id,
        "before": _storable(difference.before),
        "after": _storable(difference.after),
        "secrets": list(difference.secrets or ()),
        "times": _times_document(difference.times),
        "cut": difference.is_cut,
        "unchained": True,
    }
    return {name: value for name, value in row.items() if value or name == "v"}


def _storable(value: Any) -> Any:
    """A value of a resource as a document may have it."""
    if isinstance(value, Mapping):
        return {str(name): _storable(each) for name, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_storable(each) for each in value]
    if isinstance(value, datetime):
        return shown_instant(value)
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)


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

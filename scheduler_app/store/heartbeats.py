"""Heartbeats: few documents, each written when a ping comes and when one does not."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from scheduler_app.domain.heartbeat import (
    LEAST_GRACE,
    MAX_EXIT_STATUS,
    MAX_GRACE,
    MAX_HEARTBEATS,
    MAX_PINGS,
    Heartbeat,
    Ping,
    PingKind,
    look_after_ping,
)
from scheduler_app.domain.ids import WholeId, name_of, tenant_of
from scheduler_app.domain.stored_fields import (
    Corrupt,
    fields,
    flag,
    instant,
    items,
    number,
    one_of,
    optional,
    tenant,
    text,
    version,
    whole,
)
from scheduler_app.store.audit import AuditedDocuments, audited
from scheduler_app.store.bulk_writes import insert_new
from scheduler_app.store.calendars import Calendars
from scheduler_app.store.indexes import HEARTBEATS_DUE
from scheduler_app.store.mongo import BY_ID, CorruptReports, Document, Mongo
from scheduler_app.store.schedules.trigger_documents import (
    calendar_use_document,
    read_calendar_use,
    read_trigger,
    trigger_document,
)

DOCUMENT_VERSION = 1
#: One whose document is corrupt is looked at again after that.
_CORRUPT_AGAIN: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class CorruptHeartbeat:
    """A stored heartbeat that cannot be read, and why. Nobody is told when it is missed."""

    id: WholeId
    reason: str

    @property
    def name(self) -> str:
        return name_of(self.id)


class Heartbeats:
    def __init__(self, mongo: Mongo, calendars: Calendars) -> None:
        self._heartbeats = mongo.collection("heartbeats")
        self._majority = mongo.majority("heartbeats")
        self._calendars = calendars
        self.audited = AuditedDocuments(mongo, self._heartbeats, "heartbeat")
        self._reports = CorruptReports(
            "heartbeat.corrupt",
            "A heartbeat cannot be read, and nobody is told when it is missed; set it again",
            "heartbeat",
        )

    @audited()
    def insert(self, heartbeat: Heartbeat) -> bool:
        """False where there is one of that id."""
        return not insert_new(self._heartbeats, [_document(heartbeat)])

    def get(self, heartbeat_id: WholeId) -> Heartbeat | CorruptHeartbeat | None:
        row = self._majority.find_one({"_id": heartbeat_id})
        return None if row is None else self._read(row)

    def of(self, tenant: str) -> list[Heartbeat | CorruptHeartbeat]:
        """A tenant's, by name, without what their last pings said."""
        rows = self._majority.find({"tenant": tenant}, {"output": 0}, hint="list_v1")
        return [self._read(row) for row in rows.sort("_id", 1).limit(MAX_HEARTBEATS)]

    def count(self, tenant: str) -> int:
        return self._heartbeats.count_documents({"tenant": tenant}, hint="list_v1", limit=MAX_HEARTBEATS)

    def observing(self, calendar_id: WholeId) -> list[str]:
        """The names of those that observe a calendar."""
        which = {"tenant": tenant_of(calendar_id), "calendar": name_of(calendar_id)}
        rows = self._heartbeats.find(which, {"_id": 1}, hint="list_v1").limit(MAX_HEARTBEATS)
        return [name_of(row["_id"]) for row in rows]

    @audited()
    def edit(self, edited: Heartbeat, revision: int) -> bool:
        """Writes what a person has given over this revision; False where it is another one by now. Pings that
        come at this moment are kept."""
        settings = {
            name: None if value is None else {"$literal": value} for name, value in _settings(edited).items()
        }
        given = settings | _times(edited) | {"look_at": edited.look_at, "revision": edited.revision}
        return self._write({"_id": edited.id, "revision": revision}, given)

    @audited()
    def replace_corrupt(self, heartbeat: Heartbeat) -> None:
        """Stores it over a document that cannot be read."""
        self._heartbeats.delete_one({"_id": heartbeat.id})
        insert_new(self._heartbeats, [_document(heartbeat)])

    @audited("given another token")
    def rotate(self, heartbeat_id: WholeId, secret_sha256: str) -> bool:
        """From now on another token opens it; False where there is none."""
        return self._write({"_id": heartbeat_id}, {"secret_sha256": secret_sha256})

    @audited()
    def delete(self, heartbeat_id: WholeId) -> bool:
        """False where there is none."""
        return self._heartbeats.delete_one({"_id": heartbeat_id}).deleted_count == 1

    def ping(self, after: Heartbeat, ping: Ping, output: str | None) -> bool:
        """Writes a ping, and what it has made of the heartbeat; False where a person has edited that since
        it was read. Any number of them may come at once: each is one write. Where a cause tells of it, beats
        look at once."""
        looks = {"$cond": [{"$eq": ["$told", True]}, ping.at, look_after_ping(after, ping.at)]}
        shown = {"$concatArrays": [{"$ifNull": ["$pings", []]}, [{"$literal": _ping_document(ping)}]]}
        given: Document = _times(after) | {"pings": {"$slice": [shown, -MAX_PINGS]}, "look_at": looks}
        if output is not None:
            given["output"] = {"$literal": output}
        which: Document = {"_id": after.id, "revision": after.revision, "secret_sha256": after.secret_sha256}
        return self._write(which, given)

    def due(self, now: datetime, *, limit: int) -> list[Heartbeat]:
        """Those that beats have to look at. One that is corrupt is reported, and put off."""
        rows = list(self._heartbeats.find({"look_at": {"$lte": now}}, hint=HEARTBEATS_DUE).limit(limit))
        found = [self._read(row) for row in rows]
        corrupt = [each for each in found if isinstance(each, CorruptHeartbeat)]
        for each in corrupt:
            self._reports.report(each.id, each.reason)
            self._heartbeats.update_one({"_id": each.id}, {"$set": {"look_at": now + _CORRUPT_AGAIN}})
        return [each for each in found if isinstance(each, Heartbeat)]

    def settle(self, judged: Heartbeat) -> bool:
        """Writes what a beat has found; False where it was written since it was read."""
        given = _times(judged) | {"look_at": judged.look_at, "told": judged.is_told or None}
        return self._write({"_id": judged.id, "writes": judged.writes}, given)

    def _write(self, which: Document, given: Document) -> bool:
        """Sets these fields, whose texts begin with no `$`; those that are None are removed."""
        fields = {name: "$$REMOVE" if value is None else value for name, value in given.items()}
        change = [{"$set": fields | {"writes": {"$add": ["$writes", 1]}}}]
        return self._heartbeats.update_one(which, change, hint=BY_ID).matched_count == 1

    def _read(self, row: Mapping[str, Any]) -> Heartbeat | CorruptHeartbeat:
        try:
            found = _decoded(row)
        except Corrupt as error:
            return CorruptHeartbeat(WholeId(str(row["_id"])), str(error))
        if found.calendar is None:
            return found
        return replace(found, calendar=self._calendars.attached_use(found.calendar, found.tenant))


def _document(heartbeat: Heartbeat) -> Document:
    row = {
        "_id": heartbeat.id,
        "v": DOCUMENT_VERSION,
        "tenant": heartbeat.tenant,
        **_settings(heartbeat),
        **_times(heartbeat),
        "secret_sha256": heartbeat.secret_sha256,
        "created_at": heartbeat.created_at,
        "revision": heartbeat.revision,
        "writes": heartbeat.writes,
        "look_at": heartbeat.look_at,
    }
    return {name: value for name, value in row.items() if value is not None}


def _settings(heartbeat: Heartbeat) -> Document:
    """What people give."""
    return {
        **trigger_document(heartbeat.trigger),
        **calendar_use_document(heartbeat.calendar),
        "grace_seconds": heartbeat.grace_seconds,
        "note": heartbeat.note,
        "tags": list(heartbeat.tags) or None,
        "since": heartbeat.since,
    }


def _times(heartbeat: Heartbeat) -> Document:
    return {
        "succeeded_at": heartbeat.succeeded_at,
        "started_at": heartbeat.started_at,
        "due_at": heartbeat.due_at,
        "missed_at": heartbeat.missed_at,
        "missed_why": heartbeat.missed_why or None,
    }


def _ping_document(ping: Ping) -> Document:
    row: Document = {"at": ping.at, "kind": ping.kind.value}
    return row if ping.exit_status is None else row | {"exit_status": ping.exit_status}


def _decoded(row: Mapping[str, Any]) -> Heartbeat:
    get = row.get
    heartbeat_id = text(get("_id"), "_id")
    version(get("v"), DOCUMENT_VERSION)
    tenant(get("tenant"), "tenant", heartbeat_id)
    return Heartbeat(
        id=WholeId(heartbeat_id),
        trigger=read_trigger(row),
        calendar=read_calendar_use(row),
        grace_seconds=number(get("grace_seconds"), "grace_seconds", least=LEAST_GRACE, most=MAX_GRACE),
        note=optional(text, get("note"), "note"),
        tags=tuple(text(each, "an item of tags") for each in items(get("tags", []), "tags")),
        secret_sha256=text(get("secret_sha256"), "secret_sha256"),
        created_at=instant(get("created_at"), "created_at"),
        since=instant(get("since"), "since"),
        revision=whole(get("revision"), "revision", least=1),
        writes=whole(get("writes"), "writes"),
        pings=tuple(_ping(each) for each in items(get("pings", []), "pings")),
        output=optional(text, get("output"), "output"),
        succeeded_at=optional(instant, get("succeeded_at"), "succeeded_at"),
        started_at=optional(instant, get("started_at"), "started_at"),
        due_at=optional(instant, get("due_at"), "due_at"),
        missed_at=optional(instant, get("missed_at"), "missed_at"),
        missed_why=optional(text, get("missed_why"), "missed_why") or "",
        is_told=bool(optional(flag, get("told"), "told")),
        look_at=optional(instant, get("look_at"), "look_at"),
    )


def _ping(value: Any) -> Ping:
    row = fields(value, "an item of pings")
    status = row.get("exit_status")
    return Ping(
        instant(row.get("at"), "pings.at"),
        PingKind(one_of(row.get("kind"), "pings.kind", tuple(PingKind))),
        None if status is None else whole(status, "pings.exit_status", most=MAX_EXIT_STATUS),
    )

"""Silences in MongoDB, and what a document says of which causes something is about."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from pymongo import ReplaceOne

from scheduler_app.domain.cause import Cause
from scheduler_app.domain.cause_match import CauseMatch
from scheduler_app.domain.ids import WholeId
from scheduler_app.domain.silence import MAX_SILENCES, Silence
from scheduler_app.domain.stored_fields import (
    Corrupt,
    fields,
    instant,
    items,
    optional,
    tenant,
    text,
    version,
)
from scheduler_app.store.audit import AuditedDocuments, audited
from scheduler_app.store.bulk_writes import insert_new
from scheduler_app.store.indexes import OF_TENANT
from scheduler_app.store.mongo import BY_ID, CorruptReports, Document, Mongo

DOCUMENT_VERSION = 1
#: Of all tenants.
_MAX_READ: Final = 10_000


def match_document(match: CauseMatch) -> Document:
    """What is given of it."""
    given = {"tags": match.tags, "schedules": match.schedules, "destinations": match.destinations}
    return {name: list(values) for name, values in given.items() if values}


def read_match(value: Any) -> CauseMatch:
    """Raises Corrupt."""
    row = fields(value, "match")

    def names(name: str) -> tuple[str, ...]:
        found = row.get(name)
        return () if found is None else tuple(text(each, name) for each in items(found, name))

    return CauseMatch(names("tags"), names("schedules"), names("destinations"))


class Silences:
    def __init__(self, mongo: Mongo) -> None:
        self._silences = mongo.collection("silences")
        self._majority = mongo.majority("silences")
        self.audited = AuditedDocuments(mongo, self._silences, "silence")
        self._reports = CorruptReports(
            "silence.corrupt", "A silence cannot be read and silences nothing; set it again", "silence"
        )

    @audited()
    def put(self, silence: Silence) -> bool:
        """Stores it under its id; whether there was none."""
        row = _document(silence)
        if not insert_new(self._silences, [row]):
            return True
        self._silences.bulk_write([ReplaceOne({"_id": row["_id"]}, row)])
        return False

    @audited()
    def delete(self, silence_id: WholeId) -> bool:
        """False where there is none of that id."""
        return self._silences.delete_one({"_id": silence_id}).deleted_count == 1

    def of(self, tenant: str) -> list[Silence]:
        """A tenant's, by name, those that are over too."""
        rows = self._majority.find({"tenant": tenant}, hint=OF_TENANT).limit(MAX_SILENCES)
        return sorted(self._sound(rows), key=lambda each: each.id)

    def lasting(self, now: datetime) -> "LastingSilences":
        """Those of all tenants that last at `now`."""
        rows = self._silences.find({"until": {"$gt": now}}, hint=BY_ID).limit(_MAX_READ)
        return LastingSilences(self._sound(rows), now)

    def _sound(self, rows: Any) -> list[Silence]:
        found = []
        for row in rows:
            try:
                found.append(read_silence(row))
            except Corrupt as error:
                self._reports.report(str(row.get("_id"))[:200], str(error))
        return found


class LastingSilences:
    """The silences that last at one instant."""

    def __init__(self, silences: Sequence[Silence], now: datetime) -> None:
        self._silences = silences
        self._now = now

    def of(self, cause: Cause) -> Silence | None:
        """The one that ends last of those that are about the cause."""
        found = [each for each in self._silences if each.covers(cause, self._now)]
        return max(found, key=lambda each: each.until) if found else None


def _document(silence: Silence) -> Document:
    document = {
        "_id": silence.id,
        "v": DOCUMENT_VERSION,
        "tenant": silence.tenant,
        "match": match_document(silence.match),
        "until": silence.until,
        "reason": silence.reason,
        "created_at": silence.created_at,
        "by": silence.by or None,
    }
    return {name: value for name, value in document.items() if value is not None}


def read_silence(row: Mapping[str, Any]) -> Silence:
    """Raises Corrupt."""
    get = row.get
    version(get("v"), DOCUMENT_VERSION)
    own_id = WholeId(text(get("_id"), "_id"))
    tenant(get("tenant"), "tenant", own_id)
    return Silence(
        id=own_id,
        match=read_match(get("match")),
        until=instant(get("until"), "until"),
        reason=text(get("reason"), "reason"),
        created_at=instant(get("created_at"), "created_at"),
        by=optional(text, get("by"), "by") or "",
    )

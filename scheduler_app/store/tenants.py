"""Tenants: few documents, one for each; `default` has one only where somebody said something."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from pymongo import ReplaceOne

from scheduler_app.domain.ids import TENANT
from scheduler_app.domain.resources.tenant import TENANT_LIMITS
from scheduler_app.domain.stored_fields import (
    Corrupt,
    fields,
    instant,
    one_of,
    optional,
    text,
    version,
    whole,
)
from scheduler_app.domain.tenant import MAX_RETENTION_DAYS, MAX_TENANTS, Tenant, TenantLimits, TenantState
from scheduler_app.store.audit import AuditedDocuments, audited
from scheduler_app.store.mongo import BY_ID, CorruptReports, Document, Mongo
from scheduler_app.store.resource_fields import RowCodec

DOCUMENT_VERSION: Final = 1
_LIMITS = RowCodec(TenantLimits, TENANT_LIMITS)


class Tenants:
    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._tenants = mongo.collection("tenants")
        self.audited = AuditedDocuments(mongo, self._tenants, "tenant", of_installation=lambda row: True)
        self._majority = mongo.majority("tenants")
        self._reports = CorruptReports(
            "tenant.corrupt", "A tenant cannot be read, and its keys open nothing; set it again", "tenant"
        )

    @audited(of=lambda made: made.name)
    def put(self, made: Tenant) -> bool:
        """Stores it under its name; False where the one that is there is being deleted."""
        row = _document(made)
        deleting = {"_id": row["_id"], "state": TenantState.DELETING.value}
        # Both are one transaction, in which no error may be provoked.
        if self._tenants.find_one(deleting, {"_id": 1}, hint=BY_ID) is not None:
            return False
        self._tenants.bulk_write([ReplaceOne({"_id": row["_id"]}, row, upsert=True)])
        return True

    @audited("closed")
    def close(self, name: str) -> None:
        """Marks it as one that is being deleted."""
        self._tenants.update_one({"_id": name}, {"$set": {"state": TenantState.DELETING.value}}, hint=BY_ID)

    def get(self, name: str) -> Tenant | None:
        """One that cannot be read is reported, and suspended."""
        row = self._majority.find_one({"_id": name})
        return None if row is None else self._sound(row)

    def all(self) -> list[Tenant]:
        """Those that have documents, by name."""
        rows = self._majority.find({}, hint=BY_ID).sort("_id", 1).limit(MAX_TENANTS)
        return [self._sound(row) for row in rows]

    def retentions(self) -> dict[str, timedelta]:
        """Of those that say so, for how long what has ended is kept."""
        return {each.name: timedelta(days=each.retention_days) for each in self.all() if each.retention_days}

    def beside_default(self) -> bool:
        """Whether there are others than `default`."""
        return self._tenants.find_one({"_id": {"$ne": TENANT}}, {"_id": 1}, hint=BY_ID) is not None

    def count(self) -> int:
        return self._tenants.count_documents({}, hint="_id_", limit=MAX_TENANTS)

    def _sound(self, row: Mapping[str, Any]) -> Tenant:
        try:
            return _read(row)
        except Corrupt as error:
            name = str(row.get("_id"))[:200]
            self._reports.report(name, str(error))
            return Tenant(name, None, TenantState.SUSPENDED, f"Its document cannot be read: {error}")


def _document(tenant: Tenant) -> Document:
    row: Document = {
        "_id": tenant.name,
        "v": DOCUMENT_VERSION,
        "tenant": tenant.name,
        "state": tenant.state.value,
        "note": tenant.note,
        "limits": tenant.limits.given or None,
        "retention_days": tenant.retention_days,
        "created_at": tenant.created_at,
    }
    return {name: value for name, value in row.items() if value is not None}


def _read(row: Mapping[str, Any]) -> Tenant:
    """Raises Corrupt."""
    get = row.get
    version(get("v"), DOCUMENT_VERSION)
    return Tenant(
        name=text(get("_id"), "_id"),
        created_at=optional(instant, get("created_at"), "created_at"),
        state=TenantState(one_of(get("state"), "state", tuple(TenantState))),
        note=optional(text, get("note"), "note"),
        limits=TenantLimits(**_LIMITS.read(optional(fields, get("limits"), "limits") or {})),
        retention_days=optional(_days, get("retention_days"), "retention_days"),
    )


def _days(value: Any, name: str) -> int:
    return whole(value, name, least=1, most=MAX_RETENTION_DAYS)

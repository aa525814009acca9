"""Deletions: one document for each, claimed by beats while it is at work. What is removed and how much of it
is written in one transaction, and under the claim, so that the counts are right wherever a beat is killed."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from pymongo import DESCENDING

from scheduler_app.domain.audit import Change, Difference
from scheduler_app.domain.deletion import Deletion
from scheduler_app.domain.ids import WholeId, tenant_of, whole_id
from scheduler_app.domain.stored_fields import Corrupt, fields, instant, optional, text, version, whole
from scheduler_app.domain.stored_fields import tenant as check_tenant
from scheduler_app.domain.tenant import TenantState
from scheduler_app.store.audit import Audit, AuditedDocuments, audited
from scheduler_app.store.bulk_writes import insert_new
from scheduler_app.store.mongo import (
    BY_ID,
    CorruptReports,
    Document,
    Mongo,
    lease,
    new_token,
    unclaimed,
)
from scheduler_app.store.tagged_documents import RemovalBatch, TagCounts, TaggedDocuments
from scheduler_app.store.tenant_documents import TenantDocuments

#: A release that knows no deletions of tags takes none of them for one of a tenant.
DOCUMENT_VERSION: Final = 2
_WITHOUT_TAG: Final = 1
LISTED: Final = "list_v1"
LISTED_OF_TENANT: Final = "list_tenant_v1"
#: The newest ones that a list shows.
MAX_SHOWN: Final = 200
DOCUMENTS_A_BATCH: Final = 500


class _DeletionTaken(Exception):
    """The claim was lost: the transaction is undone."""


class Deletions:
    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._deletions = mongo.collection("deletions")
        self._majority = mongo.majority("deletions")
        self._tenants = mongo.collection("tenants")
        self._documents = TenantDocuments(mongo)
        self._tagged = TaggedDocuments(mongo)
        self._audit = Audit(mongo)
        self.audited = AuditedDocuments(mongo, self._deletions, "deletion", of_installation=_is_of_tenant)
        self._reports = CorruptReports(
            "deletion.corrupt", "A deletion cannot be read and does not go on; delete it again", "deletion"
        )

    @audited("asked for")
    def start(self, deletion: Deletion) -> bool:
        """Stores a new one; False where one of its key is at work."""
        # Its line is written in the same transaction, in which no error may be provoked.
        if self._deletions.find_one({"key": deletion.key, "active": True}, {"_id": 1}) is not None:
            return False
        return not insert_new(self._deletions, [_document(deletion)])

    def at_work(self, key: str) -> Deletion | None:
        """The one of this key that is not over."""
        row = self._majority.find_one({"key": key, "active": True})
        return None if row is None else self._sound(row)

    def get(self, deletion_id: str) -> Deletion | None:
        row = self._majority.find_one({"_id": deletion_id})
        return None if row is None else self._sound(row)

    def newest(self, tenant: str | None = None) -> list[Deletion]:
        """The newest first; with a tenant, those of its tags alone."""
        which: Document = {} if tenant is None else {"tenant": tenant, "tag": {"$exists": True}}
        hint = LISTED if tenant is None else LISTED_OF_TENANT
        rows = self._majority.find(which, sort=[("started_at", DESCENDING)], hint=hint).limit(MAX_SHOWN)
        return [each for row in rows if (each := self._sound(row)) is not None]

    def claim(self, now: datetime, *, lease_seconds: float) -> tuple[str, Deletion] | None:
        """Claims one that has something to do now; returns the token, too. Raises a STORE_FAULT."""
        free = {"active": True, "next_due_at": {"$lte": now}} | unclaimed("owner", "lease_until")
        token = new_token()
        held: Document = {"owner": token, "lease_until": lease(lease_seconds)}
        row = self._deletions.find_one_and_update(free, [{"$set": held}], hint="active_v1")
        found = None if row is None else self._sound(row)
        return None if found is None else (token, found)

    def has_tagged(self, tenant: str, tag: str) -> bool:
        """Whether a deletion of the tag would find anything. Raises a STORE_FAULT."""
        return self._tagged.any_of(tenant, tag)

    def count_tag(self, tenant: str, tag: str, *, most: int) -> TagCounts:
        """What a deletion of the tag would find. Raises a STORE_FAULT."""
        return self._tagged.count(tenant, tag, most=most)

    def delete_schedules(self, deletion: Deletion, now: datetime) -> bool:
        """Deletes some of the schedules with its tag; whether all are. Raises a STORE_FAULT."""
        return deletion.tag is None or self._tagged.delete_schedules(deletion.subject, deletion.tag, now)

    def remove_batch(self, deletion: Deletion, token: str, now: datetime) -> int:
        """Removes some documents of one collection, and counts them; 0 where there is nothing but what
        waits, such as events that workers hold. Raises a STORE_FAULT."""
        if deletion.tag is not None:
            batch = self._tagged.batch(deletion.subject, deletion.tag, now, limit=DOCUMENTS_A_BATCH)
            return 0 if batch is None else self._remove(deletion, token, batch)
        for name in self._documents.collections():
            if ids := self._documents.ids(name, deletion.subject, limit=DOCUMENTS_A_BATCH):
                return self._remove(deletion, token, RemovalBatch(name, ids, []))
        return 0

    def is_nothing_left(self, deletion: Deletion) -> bool:
        """Raises a STORE_FAULT."""
        if deletion.tag is not None:
            return not self._tagged.any_of(deletion.subject, deletion.tag)
        return not self._documents.any_of(deletion.subject)

    def close(self, deletion: Deletion, token: str) -> bool:
        """Marks the tenant as one of which everything is deleted, whatever somebody has set meanwhile; False
        where the claim was lost. Raises a STORE_FAULT."""
        if deletion.tag is not None:
            return True
        try:
            with self._mongo.transaction() as session:
                self._hold(deletion, token, session)
                state = {"$set": {"state": TenantState.DELETING.value}}
                self._tenants.update_one({"_id": deletion.subject}, state, session=session)
        except _DeletionTaken:
            return False
        return True

    def advance(self, deletion: Deletion, token: str) -> None:
        """Writes when to look again, and releases it."""
        times = {"found_at": deletion.found_at, "next_due_at": deletion.next_due_at}
        self._deletions.update_one(
            {"_id": deletion.id, "owner": token}, {"$set": times, "$unset": {"owner": "", "lease_until": ""}}
        )

    def finish(self, deletion: Deletion, token: str, now: datetime) -> bool:
        """Ends it. Of a whole tenant, it removes the tenant itself, so that its name is free. False where the
        claim was lost. Raises a STORE_FAULT."""
        over: Document = {
            "$set": {"ended_at": now},
            "$unset": {"active": "", "owner": "", "lease_until": "", "next_due_at": ""},
        }
        told = Difference(after={"removed": dict(deletion.counts)})
        if deletion.tag is None:
            change = Change("deleted", "tenant", WholeId(deletion.subject), told, of_installation=True)
        else:
            change = Change("deleted", "tag", whole_id(deletion.subject, deletion.tag), told)

        def write() -> bool:
            with self._mongo.transaction() as session:
                self._hold(deletion, token, session, over)
                if deletion.tag is None:
                    self._tenants.delete_one({"_id": deletion.subject}, session=session)
                else:
                    self._tagged.forget(deletion.subject, deletion.tag, session)
            return True

        try:
            return self._audit.change(change, write)
        except _DeletionTaken:
            return False

    def _remove(self, deletion: Deletion, token: str, batch: RemovalBatch) -> int:
        subject, name = deletion.subject, batch.collection
        try:
            with self._mongo.transaction() as session:
                if deletion.tag is None:
                    removed = self._documents.remove(name, subject, batch.ids, session)
                else:
                    removed = self._tagged.remove(subject, deletion.tag, batch, session)
                self._hold(deletion, token, session, {"$inc": {f"counts.{name}": removed}})
        except _DeletionTaken:
            return 0
        return removed

    def _hold(self, deletion: Deletion, token: str, session: Any, change: Document | None = None) -> None:
        """Writes the change under the claim. Raises _DeletionTaken."""
        written = self._deletions.update_one(
            {"_id": deletion.id, "owner": token},
            change or {"$set": {"owner": token}},
            hint=BY_ID,
            session=session,
        )
        if written.matched_count == 0:
            raise _DeletionTaken

    def _sound(self, row: Mapping[str, Any]) -> Deletion | None:
        try:
            return _read(row)
        except Corrupt as error:
            self._reports.report(str(row.get("_id"))[:200], str(error))
            return None


def _is_of_tenant(row: Mapping[str, Any]) -> bool:
    """Whether a whole tenant is deleted, of which the tenant itself is not told."""
    return "tag" not in row


def _document(deletion: Deletion) -> Document:
    row: Document = {
        "_id": deletion.id,
        "v": _WITHOUT_TAG if deletion.tag is None else DOCUMENT_VERSION,
        "tenant": tenant_of(deletion.id),
        "key": deletion.key,
        "subject": deletion.subject,
        "tag": deletion.tag,
        "by": deletion.by or None,
        "started_at": deletion.started_at,
        "next_due_at": deletion.next_due_at,
        "active": True,
        "counts": dict(deletion.counts),
    }
    return {name: value for name, value in row.items() if value is not None}


def _read(row: Mapping[str, Any]) -> Deletion:
    """Raises Corrupt."""
    get = row.get
    version(get("v"), DOCUMENT_VERSION)
    own_id = text(get("_id"), "_id")
    check_tenant(get("tenant"), "tenant", own_id)
    counts = fields(get("counts"), "counts")
    return Deletion(
        id=WholeId(own_id),
        subject=text(get("subject"), "subject"),
        started_at=instant(get("started_at"), "started_at"),
        by=optional(text, get("by"), "by") or "",
        next_due_at=optional(instant, get("next_due_at"), "next_due_at"),
        found_at=optional(instant, get("found_at"), "found_at"),
        counts={name: whole(value, f"counts.{name}") for name, value in counts.items()},
        ended_at=optional(instant, get("ended_at"), "ended_at"),
        tag=optional(text, get("tag"), "tag"),
    )

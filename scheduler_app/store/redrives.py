"""Redrives: one document for each, claimed by beats while it is at work."""

from collections.abc import Mapping
from datetime import datetime
from random import sample
from typing import Any

from scheduler_app.domain.ids import WholeId
from scheduler_app.domain.redrive import Redrive, RedriveChoice, RedriveState, RedriveTime
from scheduler_app.domain.stored_fields import (
    Corrupt,
    fields,
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
from scheduler_app.store.backfills import CHOSEN_AMONG
from scheduler_app.store.bulk_writes import insert_new
from scheduler_app.store.mongo import (
    BY_ID,
    Document,
    Mongo,
    lease,
    new_token,
    unclaimed,
    written_by_token,
)

DOCUMENT_VERSION = 1


class Redrives:
    def __init__(self, mongo: Mongo) -> None:
        self._redrives = mongo.collection("redrives")
        self._majority = mongo.majority("redrives")
        self.audited = AuditedDocuments(mongo, self._redrives, "redrive")

    @audited("started")
    def start(self, redrive: Redrive) -> bool:
        """Stores a new one; False where it is there already."""
        return not insert_new(self._redrives, [_to_document(redrive)])

    def running(self, tenant: str, *, most: int) -> int:
        """How many of the tenant's are at work; no more than `most` are counted."""
        which = {"active": True, "tenant": tenant}
        return self._redrives.count_documents(which, hint="active_v1", limit=most)

    def get(self, redrive_id: str) -> Redrive | None:
        """Raises Corrupt."""
        row = self._majority.find_one({"_id": redrive_id})
        return None if row is None else _from_document(row)

    def claim(self, now: datetime, *, limit: int, lease_seconds: float) -> tuple[str, list[Redrive]]:
        """Claims some of those that have something to do now, any of them: those of one tenant do not keep
        back others'. One that cannot be read is ended. Returns the token and them."""
        # Also true of one that says no time, so that it is ended.
        free = {"active": True, "next_due_at": {"$not": {"$gt": now}}} | unclaimed("owner", "lease_until")
        rows = self._redrives.find(free, {"_id": 1}, hint="active_v1").limit(CHOSEN_AMONG)
        ids = [row["_id"] for row in rows]
        if not ids:
            return "", []
        ids = sample(ids, min(limit, len(ids)))
        token = new_token()
        written_by_token(
            lambda: self._redrives.update_many(
                free | {"_id": {"$in": ids}},
                [{"$set": {"owner": token, "lease_until": lease(lease_seconds)}}],
                hint=BY_ID,
            )
        )
        found = []
        for row in self._majority.find({"_id": {"$in": ids}, "owner": token}):
            try:
                found.append(_from_document(row))
            except Exception as error:  # a document edited by hand may cause any error
                self._condemn(row["_id"], token, f"{type(error).__name__}: {error}")
        return token, found

    def advance(self, redrive: Redrive, token: str) -> bool:
        """Writes how far it has come, and releases it; False where it was stopped or claimed by another."""
        which = {"_id": redrive.id, "owner": token}
        return self._redrives.replace_one(which, _to_document(redrive)).matched_count == 1

    @audited("stopped")
    def stop(self, redrive_id: str, now: datetime) -> bool:
        """Ends it, and revokes a beat's claim: nothing more is sent. False where it is over."""
        result = self._redrives.update_one(
            {"_id": redrive_id, "active": True},
            [
                {"$set": {"state": RedriveState.STOPPED.value, "ended_at": now}},
                {"$unset": ["active", "owner", "lease_until", "newest"]},
            ],
        )
        return result.matched_count == 1

    def _condemn(self, redrive_id: Any, token: str, reason: str) -> None:
        said = {"state": RedriveState.ERROR.value, "reason": {"$literal": reason[:1000]}, "ended_at": "$$NOW"}
        self._redrives.update_one(
            {"_id": redrive_id, "owner": token},
            [{"$set": said}, {"$unset": ["active", "owner", "lease_until"]}],
        )


def _to_document(redrive: Redrive) -> Document:
    row: Document = {
        "_id": redrive.id,
        "v": DOCUMENT_VERSION,
        "tenant": redrive.tenant,
        "choice": redrive.choice.value,
        "time": redrive.time.value,
        "before": redrive.before,
        "state": redrive.state.value,
        "planned": redrive.planned,
        "sent": redrive.sent,
        "skipped": redrive.skipped,
        "next_due_at": redrive.next_due_at,
        "started_at": redrive.started_at,
        "active": None if redrive.is_over else True,
        "cause": redrive.cause,
        "rate_per_second": redrive.rate_per_second,
        "schedule_id": redrive.schedule_id,
        "tag": redrive.tag,
        "origin": redrive.origin,
        "newest": list(redrive.newest) or None,
        "after": {"at": redrive.after[0], "id": redrive.after[1]} if redrive.after else None,
        "reason": redrive.reason,
        "ended_at": redrive.ended_at,
    }
    return {name: value for name, value in row.items() if value is not None}


def _from_document(row: Mapping[str, Any]) -> Redrive:
    """Raises Corrupt."""
    get = row.get
    version(get("v"), DOCUMENT_VERSION)
    redrive_id = text(get("_id"), "_id")
    tenant(get("tenant"), "tenant", redrive_id)
    after = optional(fields, get("after"), "after")
    rate = optional(number, get("rate_per_second"), "rate_per_second")
    if rate is not None and rate <= 0:
        raise Corrupt("rate_per_second is not more than 0")
    return Redrive(
        id=WholeId(redrive_id),
        cause=optional(text, get("cause"), "cause"),
        choice=RedriveChoice(one_of(get("choice"), "choice", tuple(RedriveChoice))),
        time=RedriveTime(one_of(get("time"), "time", tuple(RedriveTime))),
        rate_per_second=rate,
        schedule_id=optional(text, get("schedule_id"), "schedule_id"),
        tag=optional(text, get("tag"), "tag"),
        origin=optional(text, get("origin"), "origin"),
        newest=tuple(text(each, "newest") for each in optional(items, get("newest"), "newest") or ()),
        before=instant(get("before"), "before"),
        after=after and (instant(after.get("at"), "after.at"), text(after.get("id"), "after.id")),
        state=RedriveState(one_of(get("state"), "state", tuple(RedriveState))),
        planned=whole(get("planned"), "planned"),
        sent=whole(get("sent"), "sent"),
        skipped=whole(get("skipped"), "skipped"),
        reason=optional(text, get("reason"), "reason"),
        next_due_at=instant(get("next_due_at"), "next_due_at"),
        started_at=instant(get("started_at"), "started_at"),
        ended_at=optional(instant, get("ended_at"), "ended_at"),
    )

"""Blackouts by their names: few, and every process reads all of them once a second."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast

from pymongo import ReplaceOne
from pymongo.errors import BulkWriteError

from scheduler_app.domain.blackout import (
    MAX_BLACKOUTS,
    MAX_DURATION,
    POLICIES,
    Blackout,
    BlackoutPolicy,
    Blackouts,
)
from scheduler_app.domain.kill_switch import Target
from scheduler_app.domain.stored_fields import Corrupt, instant, number, one_of, optional, text, version
from scheduler_app.store.decoded_cache import CorruptReports
from scheduler_app.store.faults import only_duplicates
from scheduler_app.store.mongo import BY_ID, Document, Mongo
from scheduler_app.store.schedules.trigger_documents import read_trigger, trigger_document

DOCUMENT_VERSION = 1
_MAX_READ = 10_000


@dataclass(frozen=True, slots=True)
class CorruptBlackout:
    """A stored blackout that cannot be read or evaluated, and why. It stops nothing."""

    name: str
    reason: str


class BlackoutDocuments:
    def __init__(self, mongo: Mongo) -> None:
        self._blackouts = mongo.collection("blackouts")
        self._majority = mongo.majority("blackouts")
        self._reports = CorruptReports(
            "blackout.corrupt", "A blackout cannot be read and stops nothing; set it again", "blackout"
        )

    def put(self, blackout: Blackout) -> bool:
        """Stores it under its name; whether there was none."""
        row = _document(blackout)
        try:
            self._blackouts.insert_many([row])
        except BulkWriteError as error:
            if not only_duplicates(error):
                raise
            self._blackouts.bulk_write([ReplaceOne({"_id": row["_id"]}, row)])
            return False
        return True

    def delete(self, name: str, *, tenant: str) -> bool:
        """False where there is none of that name."""
        return self._blackouts.delete_one({"_id": _key(tenant, name)}).deleted_count == 1

    def of(self, now: datetime, *, tenant: str) -> list[Blackout | CorruptBlackout]:
        """A tenant's, by name."""
        which = {"_id": {"$gte": f"{tenant}/", "$lt": f"{tenant}0"}}
        return [_read(row, now) for row in self._majority.find(which).sort("_id", 1).limit(MAX_BLACKOUTS)]

    def corrupt(self, now: datetime) -> list[CorruptBlackout]:
        """Those of all tenants that cannot be read, or evaluated at `now`."""
        found = [_read(row, now) for row in self._blackouts.find({}, hint=BY_ID).limit(_MAX_READ)]
        return [each for each in found if isinstance(each, CorruptBlackout)]

    def everybodys(self, now: datetime) -> Blackouts:
        """All that can be read, and evaluated at `now`. The others are reported, once each."""
        found = [_read(row, now) for row in self._blackouts.find({}, hint=BY_ID).limit(_MAX_READ)]
        for each in found:
            if isinstance(each, CorruptBlackout):
                self._reports.report(each.name, each.reason)
        return Blackouts(tuple(each for each in found if isinstance(each, Blackout)))


def _key(tenant: str, name: str) -> str:
    return f"{tenant}/{name}"


def _document(blackout: Blackout) -> Document:
    document = {
        "_id": _key(blackout.target.tenant, blackout.name),
        "v": DOCUMENT_VERSION,
        "tenant": blackout.target.tenant,
        "target": blackout.target.key,
        **trigger_document(blackout.trigger),
        "duration_seconds": blackout.duration.total_seconds(),
        "policy": blackout.policy,
        "note": blackout.note,
        "created_at": blackout.created_at,
    }
    return {key: value for key, value in document.items() if value is not None}


def _read(row: Mapping[str, Any], now: datetime) -> Blackout | CorruptBlackout:
    name = str(row["_id"]).partition("/")[2]
    try:
        found = _decoded(row, name)
    except Corrupt as error:
        return CorruptBlackout(name, str(error))
    fault = found.fault(now)
    return found if fault is None else CorruptBlackout(name, fault)


def _decoded(row: Mapping[str, Any], name: str) -> Blackout:
    version(row.get("v"), DOCUMENT_VERSION)
    target = Target.of(text(row.get("target"), "target"))
    if target is None or row["_id"] != _key(target.tenant, name) or row.get("tenant") != target.tenant:
        raise Corrupt("target, tenant and id do not fit together")
    return Blackout(
        name=name,
        target=target,
        trigger=read_trigger(row),
        duration=timedelta(
            seconds=number(
                row.get("duration_seconds"),
                "duration_seconds",
                least=1.0,
                most=MAX_DURATION.total_seconds(),
            )
        ),
        policy=cast(BlackoutPolicy, one_of(row.get("policy"), "policy", POLICIES)),
        created_at=instant(row.get("created_at"), "created_at"),
        note=optional(text, row.get("note"), "note"),
    )

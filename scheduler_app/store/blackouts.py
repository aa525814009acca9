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
from scheduler_app.domain.ids import SEPARATOR, TENANT, WholeId, name_of, tenant_of
from scheduler_app.domain.kill_switch import Target
from scheduler_app.domain.stored_fields import Corrupt, instant, number, one_of, optional, text, version
from scheduler_app.store.decoded_cache import CorruptReports
from scheduler_app.store.faults import only_duplicates
from scheduler_app.store.mongo import BY_ID, Document, Documents, Mongo
from scheduler_app.store.schedules.trigger_documents import read_trigger, trigger_document

DOCUMENT_VERSION = 1
_MAX_READ = 10_000


@dataclass(frozen=True, slots=True)
class CorruptBlackout:
    """A stored blackout that cannot be read or evaluated, and why. It stops nothing."""

    id: WholeId
    reason: str

    @property
    def name(self) -> str:
        return name_of(self.id)


class BlackoutDocuments:
    def __init__(self, mongo: Mongo) -> None:
        self._blackouts = mongo.collection("blackouts")
        self._majority = mongo.majority("blackouts")
        self._reports = CorruptReports(
            "blackout.corrupt", "A blackout cannot be read and stops nothing; set it again", "blackout"
        )

    def put(self, blackout: Blackout) -> bool:
        """Stores it under its id; whether there was none."""
        row = _document(blackout)
        try:
            self._blackouts.insert_many([row])
        except BulkWriteError as error:
            if not only_duplicates(error):
                raise
            self._blackouts.bulk_write([ReplaceOne({"_id": row["_id"]}, row)])
            return False
        return not self._delete_older(blackout.id)

    def delete(self, blackout_id: WholeId) -> bool:
        """False where there is none of that id."""
        older = self._delete_older(blackout_id)
        return self._blackouts.delete_one({"_id": blackout_id}).deleted_count == 1 or older

    def _delete_older(self, blackout_id: WholeId) -> bool:
        """Removes what an older release stored under `<tenant>/<name>`; whether there was any."""
        older = f"{tenant_of(blackout_id)}/{name_of(blackout_id)}"
        return self._blackouts.delete_one({"_id": older}).deleted_count == 1

    def of(self, tenant: str, now: datetime) -> list[Blackout | CorruptBlackout]:
        """A tenant's, by name."""
        own = {each: row for each, row in _by_id(self._majority).items() if tenant_of(each) == tenant}
        return [_read(each, own[each], now) for each in sorted(own)[:MAX_BLACKOUTS]]

    def corrupt(self, now: datetime) -> list[CorruptBlackout]:
        """Those of all tenants that cannot be read, or evaluated at `now`."""
        return [each for each in self._all(now) if isinstance(each, CorruptBlackout)]

    def everybodys(self, now: datetime) -> Blackouts:
        """All that can be read, and evaluated at `now`. The others are reported, once each."""
        found = self._all(now)
        for each in found:
            if isinstance(each, CorruptBlackout):
                self._reports.report(each.id, each.reason)
        return Blackouts(tuple(each for each in found if isinstance(each, Blackout)))

    def _all(self, now: datetime) -> list[Blackout | CorruptBlackout]:
        return [_read(each, row, now) for each, row in _by_id(self._blackouts).items()]


def _by_id(blackouts: Documents) -> dict[WholeId, Document]:
    """All documents. One that an older release stored as `<tenant>/<name>` has its whole id here, unless the
    document of that id is there, too: a process died before it removed the older one."""
    found, older = dict[WholeId, Document](), dict[WholeId, Document]()
    for row in blackouts.find({}, hint=BY_ID).limit(_MAX_READ):
        tenant, slash, name = str(row["_id"]).partition("/")
        if slash:
            older[WholeId(name if tenant == TENANT else f"{tenant}{SEPARATOR}{name}")] = row
        else:
            found[WholeId(str(row["_id"]))] = row
    return older | found


def _document(blackout: Blackout) -> Document:
    document = {
        "_id": blackout.id,
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


def _read(blackout_id: WholeId, row: Mapping[str, Any], now: datetime) -> Blackout | CorruptBlackout:
    try:
        found = _decoded(blackout_id, row)
    except Corrupt as error:
        return CorruptBlackout(blackout_id, str(error))
    fault = found.fault(now)
    return found if fault is None else CorruptBlackout(blackout_id, fault)


def _decoded(blackout_id: WholeId, row: Mapping[str, Any]) -> Blackout:
    version(row.get("v"), DOCUMENT_VERSION)
    target, owner = Target.of(text(row.get("target"), "target")), tenant_of(blackout_id)
    if target is None or target.tenant != owner or row.get("tenant") != owner:
        raise Corrupt("target, tenant and id do not fit together")
    return Blackout(
        name=name_of(blackout_id),
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

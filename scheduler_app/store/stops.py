"""Kill switches and blackouts: few documents, which every process reads again each second or more often."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, cast

from pymongo import ReplaceOne

from scheduler_app.domain.blackout import (
    MAX_BLACKOUTS,
    MAX_DURATION,
    POLICIES,
    Blackout,
    BlackoutPolicy,
    Blackouts,
)
from scheduler_app.domain.http_action import destination_key
from scheduler_app.domain.ids import SEPARATOR, TENANT, WholeId, name_of, tenant_of, whole_id
from scheduler_app.domain.kill_switch import KillSwitch, KillSwitches, Scope, Target
from scheduler_app.domain.schedule import ScheduleState
from scheduler_app.domain.states import UNCLAIMED
from scheduler_app.domain.stored_fields import Corrupt, instant, number, one_of, optional, text, version
from scheduler_app.domain.tenant import TenantState
from scheduler_app.store.audit import AuditedDocuments, audited
from scheduler_app.store.bulk_writes import insert_new
from scheduler_app.store.indexes import BY_ACTION, BY_DUE, BY_TAG, OF_DESTINATION, PENDING
from scheduler_app.store.mongo import BY_ID, CorruptReports, Document, Documents, Mongo
from scheduler_app.store.schedules.trigger_documents import read_trigger, trigger_document

DOCUMENT_VERSION = 1
#: For each tenant, beside the one that stops everything.
MAX_SWITCHES: Final = 100
#: What a process reads at most.
_MAX_READ: Final = 10_000
#: Schedules, and events, that are looked at to say how many one stops.
MOST_COUNTED: Final = 10_000
#: Schedules with a tag whose events are counted.
SCHEDULES_COUNTED: Final = 1_000
#: Tags that are looked at to find one that comes near.
MOST_TAGS: Final = 500


@dataclass(frozen=True, slots=True)
class BoundedCount:
    """How many there are; with `at_least`, there may be more."""

    count: int
    at_least: bool


@dataclass(frozen=True, slots=True)
class CorruptKillSwitch:
    """A kill switch of which no more can be read than what it stops. It stops that all the same."""

    target: Target
    reason: str


class KillSwitchDocuments:
    def __init__(self, mongo: Mongo) -> None:
        self._switches = mongo.collection("kill_switches")
        self._majority = mongo.majority("kill_switches")
        self._schedules = mongo.collection("schedules")
        self._events = mongo.collection("events")
        self._tenants = mongo.collection("tenants")
        self.audited = AuditedDocuments(
            mongo,
            self._switches,
            "kill switch",
            row_ids=lambda key: target.keys if (target := Target.of(key)) else (key,),
        )
        self._reports = CorruptReports(
            "kill_switch.corrupt", "The id of a kill switch names nothing that it could stop", "kill_switch"
        )

    @audited("turned on", of=lambda switch: switch.target.key)
    def insert(self, switch: KillSwitch) -> bool:
        """Turns it on; False where it is on already."""
        if self._switches.find_one(_stored_as(switch.target), {"_id": 1}) is not None:
            return False
        row: Document = {
            "_id": switch.target.key,
            "v": DOCUMENT_VERSION,
            "tenant": switch.target.tenant,
            "since": switch.since,
        }
        given = {"note": switch.note, "by": switch.by}
        return not insert_new(self._switches, [row | {name: text for name, text in given.items() if text}])

    @audited(of=lambda target: target.key)
    def note(self, target: Target, note: str) -> None:
        """Sets what is said of one that is on."""
        self._switches.update_many(_stored_as(target), {"$set": {"note": note}})

    @audited("turned off", of=lambda target: target.key)
    def delete(self, target: Target) -> bool:
        """Turns it off; False where it was not on."""
        return sum(self._switches.delete_one({"_id": key}).deleted_count for key in target.keys) > 0

    def of(self, tenant: str) -> list[KillSwitch | CorruptKillSwitch]:
        """A tenant's that are on, by their names."""
        found = map(read_kill_switch, self._majority.find({}, hint=BY_ID).limit(_MAX_READ))
        own = {each.target.key: each for each in found if each is not None and each.target.tenant == tenant}
        return [own[key] for key in sorted(own)]

    def everybodys(self) -> KillSwitches:
        """All that are on. What a document stops stands in its id: one whose other fields somebody bent, or
        a newer release wrote, is obeyed all the same. One whose id names nothing is reported, once.
        A tenant that is not active is stopped as a whole. The slots of tenants are read with them."""
        stopped: Document = {"_id": {"$ne": TENANT}, "state": {"$ne": TenantState.ACTIVE.value}}
        limited: Document = {"limits.delivery_slots": {"$gte": 1}}
        shown = {"state": 1, "limits.delivery_slots": 1}
        rows = list(self._tenants.find({"$or": [stopped, limited]}, shown, hint=BY_ID).limit(_MAX_READ))
        targets = {
            Target(str(row["_id"]), Scope.ALL)
            for row in rows
            if row["_id"] != TENANT and row.get("state") != TenantState.ACTIVE.value
        }
        slots = {str(row["_id"]): int(row["limits"]["delivery_slots"]) for row in rows if _has_slots(row)}
        for key in self._keys():
            target = Target.of(key)
            if target is None:
                self._reports.report(key, "its id is not that of a kill switch of this release")
            else:
                targets.add(target)
        return KillSwitches(frozenset(targets), slots)

    def corrupt(self) -> list[str]:
        """The ids of all tenants that name nothing that a switch could stop, by name."""
        return sorted(key for key in self._keys() if Target.of(key) is None)

    def _keys(self) -> list[str]:
        rows = self._switches.find({}, {"_id": 1}, hint=BY_ID).limit(_MAX_READ)
        return [str(row["_id"]) for row in rows]

    def judged_by(self, schedule_ids: Iterable[str]) -> dict[str, tuple[tuple[str, ...], str | None]]:
        """The tags of these schedules, and the ids of the destinations that they name. It asks nothing where
        no id is given; an empty one, as a message has, is none."""
        found: dict[str, tuple[tuple[str, ...], str | None]] = {}
        fields, ids = {"tags": 1, "action.destination": 1}, [each for each in schedule_ids if each]
        for row in self._schedules.find({"_id": {"$in": ids}}, fields) if ids else ():
            tags, action = row.get("tags"), row.get("action")
            named = action.get("destination") if isinstance(action, dict) else None
            found[row["_id"]] = (
                tuple(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else (),
                named if isinstance(named, str) else None,
            )
        return found

    def stopped_schedules(self, target: Target) -> BoundedCount:
        """How many active schedules it stops; `MOST_COUNTED` schedules are looked at."""
        which, hint = self._schedules_of(target)
        rows = self._schedules.find(which, {"state": 1, "_id": 0}, hint=hint).limit(MOST_COUNTED)
        states = [row.get("state") for row in rows.batch_size(MOST_COUNTED)]
        return BoundedCount(states.count(ScheduleState.ACTIVE.value), len(states) == MOST_COUNTED)

    def stopped_events(self, target: Target) -> BoundedCount:
        """How many events that wait it stops, `MOST_COUNTED` at most; of a tag, those of the first
        `SCHEDULES_COUNTED` schedules."""
        which: Document = {"due_at": {"$exists": True}, "state": {"$in": sorted(UNCLAIMED)}}
        more = False
        if target.scope is Scope.TAG:
            tagged, hint = self._schedules_of(target)
            rows = self._schedules.find(tagged, {"_id": 1}, hint=hint).limit(SCHEDULES_COUNTED)
            ids = [row["_id"] for row in rows.batch_size(SCHEDULES_COUNTED)]
            which["schedule_id"], hint, more = {"$in": ids}, PENDING, len(ids) == SCHEDULES_COUNTED
        elif target.scope is Scope.DESTINATION:
            own_id = whole_id(target.tenant, target.name)
            which["origin"], hint = destination_key(own_id), OF_DESTINATION
        else:
            which["tenant"], hint = target.tenant, BY_DUE
        count = self._events.count_documents(which, hint=hint, limit=MOST_COUNTED)
        return BoundedCount(count, more or count == MOST_COUNTED)

    def _schedules_of(self, target: Target) -> tuple[Document, str]:
        """The schedules that a target is about, active or not, and the index for them."""
        which: Document = {"tenant": target.tenant}
        hint = "list_state_v1"
        if target.scope is Scope.ALL:
            which["state"] = ScheduleState.ACTIVE.value
        elif target.scope is Scope.TAG:
            which["tags"], hint = target.name, BY_TAG
        else:
            which["action.destination"] = whole_id(target.tenant, target.name)
            hint = BY_ACTION
        return which, hint


def _has_slots(tenant: Document) -> bool:
    """Whether it has such a limit; one that somebody bent is none."""
    limits = tenant.get("limits")
    slots = limits.get("delivery_slots") if isinstance(limits, dict) else None
    return isinstance(slots, int) and not isinstance(slots, bool) and slots >= 1


def _stored_as(target: Target) -> Document:
    """Its document, also one that an older release wrote."""
    return {"_id": {"$in": list(target.keys)}}


def read_kill_switch(row: Document) -> KillSwitch | CorruptKillSwitch | None:
    target = Target.of(str(row["_id"]))
    if target is None:
        return None
    try:
        version(row.get("v"), DOCUMENT_VERSION)
        if row.get("tenant") != target.tenant:
            raise Corrupt("tenant does not fit the id")
        return KillSwitch(
            target,
            instant(row.get("since"), "since"),
            optional(text, row.get("note"), "note"),
            optional(text, row.get("by"), "by"),
        )
    except Corrupt as error:
        return CorruptKillSwitch(target, str(error))


_MAX_BLACKOUTS_READ = 10_000


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
        self.audited = AuditedDocuments(
            mongo, self._blackouts, "blackout", row_ids=lambda own_id: (own_id, _older_id(own_id))
        )
        self._reports = CorruptReports(
            "blackout.corrupt", "A blackout cannot be read and stops nothing; set it again", "blackout"
        )

    @audited()
    def put(self, blackout: Blackout) -> bool:
        """Stores it under its id; whether there was none."""
        row = _document(blackout)
        if insert_new(self._blackouts, [row]):
            self._blackouts.bulk_write([ReplaceOne({"_id": row["_id"]}, row)])
            return False
        return not self._delete_older(blackout.id)

    @audited()
    def delete(self, blackout_id: WholeId) -> bool:
        """False where there is none of that id."""
        older = self._delete_older(blackout_id)
        return self._blackouts.delete_one({"_id": blackout_id}).deleted_count == 1 or older

    def _delete_older(self, blackout_id: WholeId) -> bool:
        """Removes what an older release stored under `<tenant>/<name>`; whether there was any."""
        return self._blackouts.delete_one({"_id": _older_id(blackout_id)}).deleted_count == 1

    def of(self, tenant: str, now: datetime) -> list[Blackout | CorruptBlackout]:
        """A tenant's, by name."""
        own = {each: row for each, row in _by_id(self._majority).items() if tenant_of(each) == tenant}
        return [read_blackout(each, own[each], now) for each in sorted(own)[:MAX_BLACKOUTS]]

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
        return [read_blackout(each, row, now) for each, row in _by_id(self._blackouts).items()]


def _older_id(blackout_id: WholeId) -> str:
    return f"{tenant_of(blackout_id)}/{name_of(blackout_id)}"


def _by_id(blackouts: Documents) -> dict[WholeId, Document]:
    """All documents. One that an older release stored as `<tenant>/<name>` has its whole id here, unless the
    document of that id is there, too: a process died before it removed the older one."""
    found, older = dict[WholeId, Document](), dict[WholeId, Document]()
    for row in blackouts.find({}, hint=BY_ID).limit(_MAX_BLACKOUTS_READ):
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


def read_blackout(blackout_id: WholeId, row: Mapping[str, Any], now: datetime) -> Blackout | CorruptBlackout:
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

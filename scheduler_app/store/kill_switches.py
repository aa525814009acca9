"""Kill switches that are on: a document for each, which every process reads several times a second."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pymongo.errors import BulkWriteError

from scheduler_app.domain.http_action import destination_key
from scheduler_app.domain.ids import whole_id
from scheduler_app.domain.kill_switch import KillSwitch, KillSwitches, Scope, Target
from scheduler_app.domain.schedule import ScheduleState
from scheduler_app.domain.states import UNCLAIMED
from scheduler_app.domain.stored_fields import Corrupt, instant, optional, text, version
from scheduler_app.store.decoded_cache import CorruptReports
from scheduler_app.store.faults import only_duplicates
from scheduler_app.store.mongo import BY_ID, Document, Mongo

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
BY_TAG: Final = "list_tag_v1"
DUE: Final = "due_v2"
OF_DESTINATION: Final = "destination_v1"
PENDING: Final = "pending_v1"


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
        self._reports = CorruptReports(
            "kill_switch.corrupt", "The id of a kill switch names nothing that it could stop", "kill_switch"
        )

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
        try:
            given = {"note": switch.note, "by": switch.by}
            self._switches.insert_many([row | {name: text for name, text in given.items() if text}])
        except BulkWriteError as error:
            if not only_duplicates(error):
                raise
            return False
        return True

    def note(self, target: Target, note: str) -> None:
        """Sets what is said of one that is on."""
        self._switches.update_many(_stored_as(target), {"$set": {"note": note}})

    def delete(self, target: Target) -> bool:
        """Turns it off; False where it was not on."""
        return sum(self._switches.delete_one({"_id": key}).deleted_count for key in target.keys) > 0

    def of(self, tenant: str) -> list[KillSwitch | CorruptKillSwitch]:
        """A tenant's that are on, by their names."""
        found = map(_read_kill_switch, self._majority.find({}, hint=BY_ID).limit(_MAX_READ))
        own = {each.target.key: each for each in found if each is not None and each.target.tenant == tenant}
        return [own[key] for key in sorted(own)]

    def everybodys(self) -> KillSwitches:
        """All that are on. What a document stops stands in its id: one whose other fields somebody bent, or
        a newer release wrote, is obeyed all the same. One whose id names nothing is reported, once."""
        targets = set()
        for key in self._keys():
            target = Target.of(key)
            if target is None:
                self._reports.report(key, "its id is not that of a kill switch of this release")
            else:
                targets.add(target)
        return KillSwitches(frozenset(targets))

    def corrupt(self) -> list[str]:
        """The ids of all tenants that name nothing that a switch could stop, by name."""
        return sorted(key for key in self._keys() if Target.of(key) is None)

    def _keys(self) -> list[str]:
        rows = self._switches.find({}, {"_id": 1}, hint=BY_ID).limit(_MAX_READ)
        return [str(row["_id"]) for row in rows]

    def judged_by(self, schedule_ids: Sequence[str]) -> dict[str, tuple[tuple[str, ...], str | None]]:
        """The tags of these schedules, and the ids of the destinations that they name."""
        found = {}
        fields = {"tags": 1, "action.destination": 1}
        for row in self._schedules.find({"_id": {"$in": list(schedule_ids)}}, fields):
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
            which["tenant"], hint = target.tenant, DUE
        count = self._events.count_documents(which, hint=hint, limit=MOST_COUNTED)
        return BoundedCount(count, more or count == MOST_COUNTED)

    def tags(self, tenant: str) -> list[str]:
        """Tags that schedules have, `MOST_TAGS` at most, in their order."""
        found: list[str] = []
        last = ""
        while len(found) < MOST_TAGS:
            which = {"tenant": tenant, "tags": {"$gt": last}}
            row = self._schedules.find_one(which, {"tags": 1}, hint=BY_TAG)
            # The index has each tag of a schedule by itself: the row is that of the next one.
            tags = [tag for tag in (row or {}).get("tags", ()) if isinstance(tag, str) and tag > last]
            if not tags:
                break
            last = min(tags)
            found.append(last)
        return found

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
            hint = "destination_v1"
        return which, hint


def _stored_as(target: Target) -> Document:
    """Its document, also one that an older release wrote."""
    return {"_id": {"$in": list(target.keys)}}


def _read_kill_switch(row: Document) -> KillSwitch | CorruptKillSwitch | None:
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

"""Finds documents that no other query returns, because a field that the queries filter by is wrong. Without
this, nothing would ever happen to them, and no log would say so."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from scheduler_app.domain.event import LIVING, State
from scheduler_app.domain.field_types import EARLIEST, LATEST, Corrupt
from scheduler_app.domain.schedule import ScheduleState
from scheduler_app.store.collection import Document
from scheduler_app.store.encryption import SecretBox
from scheduler_app.store.events.set_aside import set_aside
from scheduler_app.store.events.tenants import tenants_with_events
from scheduler_app.store.indexes import BY_NEXT_RUN
from scheduler_app.store.mongo import Mongo
from scheduler_app.store.schedules.corrupt import CorruptSchedule, read
from scheduler_app.store.schedules.cursors import UNREAD, without_request
from scheduler_app.store.schedules.set_aside import set_aside_corrupt

_LIVING = {"$in": sorted(LIVING)}
#: Null is such a value, too.
_NO_DATE = {"$exists": True, "$not": {"$gte": EARLIEST, "$lt": LATEST}}
#: In these states a schedule is over, or its error has been reported already.
_SETTLED = (ScheduleState.DELETED.value, ScheduleState.ERROR.value)


class Inspections:
    def __init__(self, mongo: Mongo, secret_box: SecretBox) -> None:
        self._mongo = mongo
        self._events = mongo.collection("events")
        self._schedules = mongo.collection("schedules")
        self._secret_box = secret_box

    def misplaced_events(self, *, limit: int) -> int:
        """Sets events aside that wait for a time which is no date, or in a state that there is not. By index:
        only such events are read. Returns how many were found."""
        no_date = {"state": _LIVING, "due_at": _NO_DATE}
        no_state = {"state": {"$nin": sorted(State)}, "due_at": {"$exists": True}}
        found = [
            row
            for which in (no_date, no_state)
            for row in self._events.find(which, {"_id": 1}, hint="due_v2").limit(limit)
        ]
        for row in found:
            set_aside(self._events, row["_id"], Corrupt("due_at or state"))
        return len(found)

    def array_fields(self) -> list[str]:
        """Fields of which `due_v2` holds arrays, or once held one. Since then it reads more than it has to,
        until it is rebuilt."""
        find = {"find": "events", "filter": {"state": State.READY_QUEUE, "due_at": {"$exists": True}}}
        asked = find | {"hint": "due_v2", "limit": 1}
        plan = self._mongo.command("explain", asked, verbosity="queryPlanner")
        return sorted(_array_fields(plan["queryPlanner"]["winningPlan"]))

    def events_with_arrays(self, fields: Sequence[str], *, limit: int) -> int:
        """Sets living events aside that have an array in one of these fields. Reads all that wait. Returns
        how many were found."""
        which = {"due_at": {"$exists": True}, "$or": [{field: {"$type": "array"}} for field in fields]}
        found = list(self._events.find(which, {"_id": 1}, hint="due_v2").limit(limit))
        for row in found:
            set_aside(self._events, row["_id"], Corrupt(" or ".join(fields)))
        return len(found)

    def forgotten_events(self, since: datetime, until: datetime, *, limit: int) -> int:
        """Sets living events of these run times aside that have no `due_at`: no index of living events has
        them, and nothing would happen to them. Reads all events of that time. Returns how many were found."""
        found = 0
        for tenant in tenants_with_events(self._events):
            if found < limit:
                found += self._forgotten_events(tenant, since, until, limit=limit - found)
        return found

    def _forgotten_events(self, tenant: str, since: datetime, until: datetime, *, limit: int) -> int:
        which = {
            "tenant": tenant,
            "run_time": {"$gte": since, "$lt": until},
            "state": _LIVING,
            "due_at": {"$exists": False},
        }
        found = list(self._events.find(which, {"_id": 1}, hint="list_v1").limit(limit))
        for row in found:
            set_aside(self._events, row["_id"], Corrupt("due_at"))
        return len(found)

    def misplaced_schedules(self, *, limit: int) -> int:
        """Sets active schedules aside whose next occurrence, or last one, is no date. By index, as above."""
        found = []
        for field, index in (("next_run_at", BY_NEXT_RUN), ("finishes_at", "finish_v1")):
            which = {"state": ScheduleState.ACTIVE.value, field: _NO_DATE}
            found += list(self._schedules.find(which, UNREAD, hint=index).limit(limit))
        return sum(map(self._inspect, found))

    def schedules_after(self, schedule_id: Any, *, limit: int) -> tuple[Any, int]:
        """Reads the next schedules in the order of their ids, and sets those aside that cannot be read, or
        that are active and wait for nothing. Returns where to go on, None at the end, and how many those
        were."""
        which = {} if schedule_id is None else {"_id": {"$gt": schedule_id}}
        rows = list(self._schedules.find(which, UNREAD, hint="_id_").sort("_id", 1).limit(limit))
        found = sum(map(self._inspect, rows))
        return (rows[-1]["_id"] if len(rows) == limit else None), found

    def _inspect(self, row: Document) -> bool:
        if row.get("state") in _SETTLED:
            return False
        found = read(without_request(row), self._secret_box)
        if not isinstance(found, CorruptSchedule):
            waits = found.next_run_at or found.finishes_at or not found.trigger.fires_by_itself
            if found.state is not ScheduleState.ACTIVE or waits:
                return False
            found = CorruptSchedule(
                found.id, "it is active, and next_run_at and finishes_at are both missing"
            )
        set_aside_corrupt(self._schedules, row, found)
        return True


def _array_fields(plan: Any) -> Iterator[str]:
    """What a stage of a plan, or one below it, says of its index."""
    yield from (field for field, paths in plan.get("multiKeyPaths", {}).items() if paths)
    if "inputStage" in plan:
        yield from _array_fields(plan["inputStage"])

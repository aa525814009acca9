"""Repairs: of events that a crash left behind, and of documents that no other query returns, because a field
that the queries filter by is wrong. Without inspection nothing would ever happen to these, and no log
would say so.
"""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from scheduler_app.domain.action import CALLBACKS, FRESH_FOR
from scheduler_app.domain.ids import partition_of
from scheduler_app.domain.notification import Notifying, OwedNotification
from scheduler_app.domain.schedule import ScheduleState
from scheduler_app.domain.states import LIVING, MAX_ISOLATED_LOSSES, SUSPECT_AFTER, State
from scheduler_app.domain.stored_fields import EARLIEST, LATEST, Corrupt, whole
from scheduler_app.store.bulk_writes import value_by_id, write_isolated
from scheduler_app.store.encryption import SecretBox
from scheduler_app.store.events.documents import (
    appended,
    finish_events,
    history_line,
    in_queues,
    set_event_aside,
    source_states,
    update_or_set_aside,
)
from scheduler_app.store.events.events import tenants_with_events
from scheduler_app.store.events.fields import owed_notification_document
from scheduler_app.store.indexes import BY_DUE, BY_NEXT_RUN, ENDS
from scheduler_app.store.mongo import BY_ID, Document, Mongo, lease_over
from scheduler_app.store.partition_owners import in_partitions
from scheduler_app.store.schedules.cursors import WITHOUT_REQUEST, without_request
from scheduler_app.store.schedules.documents import CorruptSchedule, read_schedule, set_aside_corrupt

#: What is overdue for longer, and was dispatched, may have lost its message.
GRACE_SECONDS = 10.0
MAX_GRACE_DOUBLINGS = 6


class Recoveries:
    def __init__(self, mongo: Mongo) -> None:
        self._events = mongo.collection("events")

    def recover_messages(
        self,
        now: datetime,
        *,
        grace_seconds: float,
        limit: int,
        sent_late: bool | None = None,
        queue: str = CALLBACKS,
        partitions: Collection[int] | None = None,
    ) -> list[str]:
        """Requeues events of a queue in these partitions (None: in any) whose message must be lost: they are
        overdue since they were dispatched, beyond a grace that doubles with each dispatch that led to no
        claim. `sent_late`: only those that were, or were not, late when they were dispatched. Returns their
        ids."""
        # A message that led to an attempt, or to a lease, was not lost: a retry's grace begins again. A
        # redrive counts dispatches and leases from 0.
        attempts = {"$subtract": [_number("$attempt", 0), _number("$attempts_before", 0)]}
        heard_of = {"$add": [1, attempts, _number("$lost_leases", 0)]}
        unheard_of = {"$subtract": [_number("$dispatches", 1), heard_of]}
        doublings = {"$min": [{"$max": [unheard_of, 0]}, MAX_GRACE_DOUBLINGS]}
        grace_ms = {"$multiply": [grace_seconds * 1000, {"$pow": [2, doublings]}]}
        # A dispatch in the future is an error; beats' clocks differ by no more than a minute.
        is_past = {"$lt": ["$dispatched_at", now + timedelta(minutes=1)]}
        is_date = {"$eq": [{"$type": "$dispatched_at"}, "date"]}
        dispatched_at = {"$cond": [{"$and": [is_date, is_past]}, "$dispatched_at", "$due_at"]}
        # No expression here may fail: what rejects a query would hold up all that the query is for.
        lost: Document = (
            {
                "state": source_states("recover_message"),
                "due_at": {"$gte": EARLIEST, "$lt": now - timedelta(seconds=grace_seconds)},
                "$expr": {"$lt": [{"$max": ["$due_at", dispatched_at]}, {"$subtract": [now, grace_ms]}]},
            }
            | in_queues((queue,))
            | in_partitions(partitions)
        )
        if sent_late is not None:
            lost["$and"] = [{"$expr": {"$eq": [_was_sent_late(), sent_late]}}]
        found = [row["_id"] for row in self._events.find(lost, {"_id": 1}).sort("due_at", 1).limit(limit)]
        if found:
            update_or_set_aside(
                self._events,
                {**lost, "_id": {"$in": found}},
                [
                    {
                        "$set": {
                            "state": State.READY_QUEUE,
                            "status": appended(
                                "status",
                                history_line(now, State.READY_QUEUE, "Recovered: its message was lost"),
                            ),
                        }
                    }
                ],
            )
        return found

    def recover_workers(
        self,
        now: datetime,
        *,
        delay_seconds: float,
        limit: int,
        jumped_ahead_seconds: float = 0.0,
        partitions: Collection[int] | None = None,
    ) -> tuple[list[str], list[str]]:
        """Ends leases in these partitions (None: in any) that ran out. Returns the ids of the events that are
        tried again, and of those that are set aside. `owner` stays, so that a worker that was only slow can
        still record; a lost lease is no attempt. `jumped_ahead_seconds` is added to the leases after a jump
        of mongod's clock."""
        dead = lost_claims({"$exists": True}, jumped_ahead_seconds) | in_partitions(partitions)
        # The event's own request was being made, and no other suspect event's: `isolated` holds the claim
        # that said so.
        alone = {"$and": [{"$gt": ["$isolated", None]}, {"$eq": ["$isolated", "$owner"]}]}
        isolated_losses = _number("$isolated_losses", 0)
        spent_now = {"$and": [alone, {"$gte": [isolated_losses, MAX_ISOLATED_LOSSES - 1]}]}
        spent: list[str] = []
        again: list[str] = []
        for row in self._events.find(dead, {"lost_leases": 1, "spent": spent_now}).limit(limit):
            try:
                whole(row.get("lost_leases") or 0, "lost_leases")
            except Corrupt as error:
                set_event_aside(self._events, row["_id"], error)
                continue
            (spent if row["spent"] else again).append(row["_id"])
        losses = {
            "lost_leases": {"$add": [{"$ifNull": ["$lost_leases", 0]}, 1]},
            "isolated_losses": {"$add": [isolated_losses, {"$cond": [alone, 1, 0]}]},
        }
        if again:
            message = "Recovered: its worker did not report before the lease was over"
            # Another beat may have ended this lease, and a worker have lost the next one, since it was read.
            update_or_set_aside(
                self._events,
                {"$and": [dead, {"$expr": {"$not": [spent_now]}}], "_id": {"$in": again}},
                [
                    {
                        "$set": {
                            "state": State.RETRYING,
                            "due_at": now + timedelta(seconds=delay_seconds),
                            # Blackouts judge it by the time at which it fell due.
                            "postponed_from": {"$ifNull": ["$postponed_from", _readable_date("$due_at")]},
                            "status": appended("status", history_line(now, State.RETRYING, message)),
                        }
                        | losses
                    },
                    {"$unset": ["lease_until", "isolated"]},
                ],
            )
        if spent:
            finish_events(
                self._events,
                {"$and": [dead, {"$expr": spent_now}], "_id": {"$in": spent}},
                State.ERROR,
                now,
                f"Set aside: {MAX_ISOLATED_LOSSES} workers were lost while its own request was being made",
                # The duty that makes notifications asks the schedule or the message whom to notify.
                losses | {"notify": owed_notification_document(OwedNotification(Notifying.ON_FAILURE, now))},
            )
        return again, spent


def _readable_date(path: str) -> Document:
    """The date at `path`; nothing for one that cannot be read, and for what is not a date."""
    is_readable = {"$and": [{"$gte": [path, EARLIEST]}, {"$lt": [path, LATEST]}]}
    return {"$cond": [is_readable, path, "$$REMOVE"]}


def _number(path: str, otherwise: int) -> Document:
    return {"$cond": [{"$isNumber": path}, path, otherwise]}


def lost_claims(due_at: Document, jumped_ahead_seconds: float = 0.0) -> Document:
    """The condition of events, due then, whose worker's lease is over (see `lease_over`)."""
    # What waits for its receiver's word has no lease: its time is `due_at`.
    running: Document = {
        "state": source_states("recover_worker"),
        "due_at": due_at,
        "completion.awaiting": {"$ne": True},
    }
    return running | lease_over("lease_until", jumped_ahead_seconds)


def _was_sent_late() -> Document:
    """Whether an event's message went by the late lane, as `dispatch.batches.lane_of` judged it then."""
    became_late = {"$add": ["$due_at", FRESH_FOR // timedelta(milliseconds=1)]}
    return {"$or": [{"$lte": [became_late, "$dispatched_at"]}, {"$gte": ["$lost_leases", SUSPECT_AFTER]}]}


_LIVING = {"$in": sorted(LIVING)}
#: The values that are not dates of ours, as conditions that an index answers by ranges. An `$exists` with a
#: `$not` is one range, of all values: each event that waits was examined for it.
_NO_DATES: tuple[Document, ...] = (
    {"$lt": EARLIEST},
    {"$gte": LATEST},
    {
        "$type": [
            *("double", "string", "object", "binData", "undefined", "objectId", "bool", "null", "regex"),
            *("dbPointer", "javascript", "symbol", "javascriptWithScope", "int", "timestamp", "long"),
            *("decimal", "minKey", "maxKey"),
        ]
    },
)
#: In these states a schedule is over, or its error has been reported already.
_SETTLED = (ScheduleState.DELETED.value, ScheduleState.ERROR.value)


class Inspections:
    def __init__(self, mongo: Mongo, secret_box: SecretBox) -> None:
        self._mongo = mongo
        self._events = mongo.collection("events")
        self._schedules = mongo.collection("schedules")
        self._secret_box = secret_box

    def misplaced_events(self, *, limit: int) -> int:
        """Sets events aside that wait for a time that is not a date, or are in an unknown state. By index:
        only such events are read. Returns how many were found."""
        no_dates: list[Document] = [{"state": _LIVING, "due_at": each} for each in _NO_DATES]
        no_state: Document = {"state": {"$nin": sorted(State)}, "due_at": {"$exists": True}}
        found = [
            row
            for which in (*no_dates, no_state)
            for row in self._events.find(which, {"_id": 1}, hint=BY_DUE).limit(limit)
        ]
        for row in found:
            set_event_aside(self._events, row["_id"], Corrupt("due_at or state"))
        return len(found)

    def array_fields(self) -> list[str]:
        """Fields of which `BY_DUE` holds arrays, or once held one. Since then it reads more than it has to,
        until it is rebuilt."""
        find = {"find": "events", "filter": {"state": State.READY_QUEUE, "due_at": {"$exists": True}}}
        asked = find | {"hint": BY_DUE, "limit": 1}
        plan = self._mongo.command("explain", asked, verbosity="queryPlanner")
        return sorted(_array_fields(plan["queryPlanner"]["winningPlan"]))

    def events_with_arrays(self, fields: Sequence[str], *, limit: int) -> int:
        """Sets living events aside that have an array in one of these fields. Reads all that wait. Returns
        how many were found."""
        which = {"due_at": {"$exists": True}, "$or": [{field: {"$type": "array"}} for field in fields]}
        found = list(self._events.find(which, {"_id": 1}, hint=BY_DUE).limit(limit))
        for row in found:
            set_event_aside(self._events, row["_id"], Corrupt(" or ".join(fields)))
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
            set_event_aside(self._events, row["_id"], Corrupt("due_at"))
        return len(found)

    def misplaced_schedules(self, *, limit: int) -> int:
        """Sets active schedules aside whose next or last occurrence is not a date. By index, as above."""
        found = []
        for field, index in (("next_run_at", BY_NEXT_RUN), ("finishes_at", ENDS)):
            for no_date in _NO_DATES:
                which = {"state": ScheduleState.ACTIVE.value, field: no_date}
                found += list(self._schedules.find(which, WITHOUT_REQUEST, hint=index).limit(limit))
        return sum(map(self._inspect, found))

    def schedules_after(self, schedule_id: Any, *, limit: int) -> tuple[list[Any], int]:
        """Reads the next schedules in the order of their ids, and sets those aside that cannot be read, or
        that are active and wait for nothing. Gives a partition to those that an older release has made.
        Returns the ids, and how many were set aside."""
        which = {} if schedule_id is None else {"_id": {"$gt": schedule_id}}
        rows = list(self._schedules.find(which, WITHOUT_REQUEST, hint="_id_").sort("_id", 1).limit(limit))
        found = sum(map(self._inspect, rows))
        self._partition(
            [row["_id"] for row in rows if "partition" not in row and isinstance(row["_id"], str)]
        )
        return [row["_id"] for row in rows], found

    def _partition(self, ids: Sequence[str]) -> None:
        def fill(part: Sequence[str]) -> None:
            partition = value_by_id(part, list(map(partition_of, part)))
            which: Document = {"_id": {"$in": list(part)}, "partition": {"$exists": False}}
            self._schedules.update_many(which, [{"$set": {"partition": partition}}], hint=BY_ID)

        if ids:  # one that MongoDB rejects stays in the partition of those that have none
            write_isolated(ids, fill, lambda schedule_id, error: True)

    def _inspect(self, row: Document) -> bool:
        if row.get("state") in _SETTLED:
            return False
        found = read_schedule(without_request(row), self._secret_box)
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

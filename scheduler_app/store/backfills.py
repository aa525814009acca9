"""Backfills: one document for each schedule that has or had one, claimed by beats."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from random import sample
from typing import Any

from scheduler_app.domain.action import CALLBACKS, UNKNOWN_ORIGIN, is_queue
from scheduler_app.domain.backfill import MAX_RATE, Backfill, BackfillOverlap, BackfillState
from scheduler_app.domain.states import LIVING, Kind, State
from scheduler_app.domain.stored_fields import (
    Corrupt,
    fields,
    flag,
    instant,
    number,
    one_of,
    optional,
    tenant,
    text,
    version,
    whole,
)
from scheduler_app.store.audit import AuditedDocuments, audited
from scheduler_app.store.calendars import Calendars
from scheduler_app.store.events.documents import finish_events, source_states
from scheduler_app.store.mongo import BY_ID, Document, Mongo, lease, new_token, unclaimed, written_by_token
from scheduler_app.store.schedules.trigger_documents import from_owed_document, to_owed_document

DOCUMENT_VERSION = 1
#: Beats choose among so many.
CHOSEN_AMONG = 1_000
#: Of an occurrence that one of these events stands for, nothing is missing.
_EXISTING_STATES = sorted(LIVING | {State.COMPLETED, State.ERROR})


class Backfills:
    def __init__(self, mongo: Mongo, calendars: Calendars) -> None:
        self._backfills = mongo.collection("backfills")
        self._majority = mongo.majority("backfills")
        self._events = mongo.collection("events")
        self._calendars = calendars
        self.audited = AuditedDocuments(mongo, self._backfills, "backfill")

    @audited("started", of=lambda backfill: backfill.schedule_id)
    def start(self, backfill: Backfill) -> bool:
        """Stores a new one in the place of one that is over. False while the schedule has one at work."""
        own = {"_id": backfill.schedule_id}
        if self._backfills.find_one(own | {"active": {"$exists": True}}, {"_id": 1}) is not None:
            return False
        self._backfills.replace_one(own, _to_document(backfill), upsert=True)
        return True

    def running(self, tenant: str, *, most: int) -> int:
        """How many of the tenant's are at work; no more than `most` are counted."""
        which = {"active": True, "tenant": tenant}
        return self._backfills.count_documents(which, hint="active_v1", limit=most)

    def get(self, schedule_id: str) -> Backfill | None:
        """The newest of the schedule. Raises Corrupt."""
        row = self._majority.find_one({"_id": schedule_id})
        return None if row is None else _from_document(row)

    def claim(self, *, limit: int, lease_seconds: float) -> tuple[str, list[Backfill | tuple[str, str]]]:
        """Claims some of those with something to do, any of them: the first ones do not keep back the others.
        Returns the token and the backfills; the id and the reason of each that cannot be read."""
        free: Document = {"active": True} | unclaimed("owner", "lease_until")
        rows = self._backfills.find(free, {"_id": 1}, hint="active_v1").limit(CHOSEN_AMONG)
        ids = [row["_id"] for row in rows]
        if not ids:
            return "", []
        ids = sample(ids, min(limit, len(ids)))
        token = new_token()
        # Claimed backfills are read back by the token.
        written_by_token(
            lambda: self._backfills.update_many(
                free | {"_id": {"$in": ids}},
                [{"$set": {"owner": token, "lease_until": lease(lease_seconds)}}],
                hint=BY_ID,
            )
        )
        rows = self._majority.find({"_id": {"$in": ids}, "owner": token})
        return token, [self._read(row) for row in rows]

    def advance(self, backfill: Backfill, token: str) -> bool:
        """Writes how far it has come, and releases it; events first, this second. False where the claim was
        lost, or it was cancelled."""
        which = {"_id": backfill.schedule_id, "owner": token}
        return self._backfills.replace_one(which, _to_document(backfill)).matched_count == 1

    def set_aside(self, schedule_id: Any, token: str, reason: str, now: datetime) -> bool:
        """Ends one that cannot continue, with the reason."""
        said = {"state": BackfillState.ERROR.value, "reason": {"$literal": reason[:1000]}, "ended_at": now}
        result = self._backfills.update_one(
            {"_id": schedule_id, "owner": token},
            [{"$set": said}, {"$unset": ["active", "owner", "lease_until", "sweeping"]}],
        )
        return result.matched_count == 1

    @audited("cancelled")
    def cancel(self, schedule_id: str, now: datetime) -> bool:
        """Ends it, and revokes a beat's claim: no more events are made. False where none is at work."""
        over = [BackfillState.CANCELLED.value, BackfillState.ERROR.value]
        result = self._backfills.update_one(
            {"_id": schedule_id, "state": {"$nin": over}},
            [
                {
                    "$set": {
                        "state": BackfillState.CANCELLED.value,
                        "ended_at": now,
                        "sweeping": True,
                        "active": True,
                    }
                },
                {"$unset": ["owner", "lease_until"]},
            ],
        )
        return result.matched_count == 1

    def sweep(self, backfill: Backfill, now: datetime, message: str) -> int:
        """Cancels its events that no worker has claimed. Returns how many."""
        which = _events_of(backfill) | {"state": source_states("cancel")}
        return finish_events(self._events, which, State.CANCELLED, now, message)

    def waiting(self, backfill: Backfill, *, most: int) -> int:
        """How many of its events are not finished; no more than `most` are counted."""
        which = _events_of(backfill) | {"due_at": {"$exists": True}}
        return self._events.count_documents(which, hint="pending_v1", limit=most)

    def overdue(self, backfill: Backfill, now: datetime, *, most: int) -> int:
        """How many of its events were due and no worker has begun; no more than `most` are counted."""
        states = {"$in": [State.READY_QUEUE.value, State.WORKER_QUEUE.value]}
        which = _events_of(backfill) | {"due_at": {"$lt": now}, "state": states}
        return self._events.count_documents(which, hint="pending_v1", limit=most)

    def ended(self, backfill: Backfill, state: State, *, most: int) -> int:
        """How many of its events are in a final state; no more than `most` are counted."""
        which = _events_of(backfill) | {"state": state.value}
        return self._events.count_documents(which, hint="schedule_v1", limit=most)

    def there(
        self, schedule_id: str, since: datetime, until: datetime, number: str, *, limit: int
    ) -> set[datetime]:
        """The occurrences from `since` to `until`, both inclusive, of which nothing is missing, because an
        event of theirs waits, succeeded or failed; events of the backfill `number` do not count."""
        which = {
            "schedule_id": schedule_id,
            "run_time": {"$gte": since, "$lte": until},
            "state": {"$in": _EXISTING_STATES},
            "kind": {"$in": [Kind.SCHEDULED.value, Kind.BACKFILL.value]},
        }
        own = f"{schedule_id}-backfill{number}-"
        rows = self._events.find(which, {"run_time": 1}, hint="schedule_v1").limit(limit)
        return {row["run_time"] for row in rows if not str(row["_id"]).startswith(own)}

    def remove(self, schedule_id: str) -> None:
        """Forgets the backfill of a schedule that is removed."""
        self._backfills.delete_one({"_id": schedule_id})

    def _read(self, row: Document) -> Backfill | tuple[str, str]:
        try:
            found = _from_document(row)
        except Exception as error:  # a document edited by hand may cause any error
            return row["_id"], f"{type(error).__name__}: {error}"
        if found.rest is not None and found.rest.calendar is not None:
            use = self._calendars.attached_use(found.rest.calendar, found.tenant)
            found = replace(found, rest=replace(found.rest, calendar=use))
        return found


def _events_of(backfill: Backfill) -> Document:
    """Its events: by the times of its occurrences, which an index has."""
    first = f"{backfill.schedule_id}-backfill{backfill.number}-"
    return {
        "schedule_id": backfill.schedule_id,
        "run_time": {"$gte": backfill.since, "$lte": backfill.until},
        "_id": {"$gte": first, "$lt": first + "~"},
    }


def _to_document(backfill: Backfill) -> Document:
    document = {
        "_id": backfill.schedule_id,
        "v": DOCUMENT_VERSION,
        "tenant": backfill.tenant,
        "number": backfill.number,
        "since": backfill.since,
        "until": backfill.until,
        "rest": to_owed_document(backfill.rest) if backfill.rest else None,
        "schedule_created_at": backfill.schedule_created_at,
        "rate_per_second": backfill.rate_per_second,
        "overlap": backfill.overlap.value,
        "only_missing": backfill.only_missing,
        "occurrences": backfill.occurrences,
        "origin": backfill.origin,
        "queue": backfill.queue,
        "state": backfill.state.value,
        "reason": backfill.reason,
        "made": backfill.made,
        "left_out": backfill.left_out,
        "next_due_at": backfill.next_due_at,
        "started_at": backfill.started_at,
        "ended_at": backfill.ended_at,
        "sweeping": backfill.sweeping or None,
        "active": backfill.state is BackfillState.RUNNING or backfill.sweeping or None,
    }
    return {key: value for key, value in document.items() if value is not None}


def _from_document(row: Mapping[str, Any]) -> Backfill:
    """Raises Corrupt."""
    get = row.get
    version(get("v"), DOCUMENT_VERSION)
    schedule_id = text(row["_id"], "_id")
    tenant(get("tenant"), "tenant", schedule_id)
    if not is_queue(get("queue")):
        raise Corrupt("queue is no name that a queue may have")
    rest = optional(fields, get("rest"), "rest")
    state = BackfillState(one_of(get("state"), "state", _values(BackfillState)))
    if rest is None and state is BackfillState.RUNNING:
        raise Corrupt("rest is missing: what is left to make")
    return Backfill(
        schedule_id=schedule_id,
        number=text(get("number"), "number"),
        since=instant(get("since"), "since"),
        until=instant(get("until"), "until"),
        rest=None if rest is None else from_owed_document(rest),
        schedule_created_at=instant(get("schedule_created_at"), "schedule_created_at"),
        rate_per_second=_rate(get("rate_per_second")),
        overlap=BackfillOverlap(one_of(get("overlap"), "overlap", _values(BackfillOverlap))),
        only_missing=flag(get("only_missing"), "only_missing"),
        occurrences=whole(get("occurrences"), "occurrences"),
        origin=text(get("origin") or UNKNOWN_ORIGIN, "origin"),
        queue=str(get("queue") or CALLBACKS),
        state=state,
        reason=optional(text, get("reason"), "reason"),
        made=whole(get("made"), "made"),
        left_out=whole(get("left_out"), "left_out"),
        next_due_at=instant(get("next_due_at"), "next_due_at"),
        started_at=instant(get("started_at"), "started_at"),
        ended_at=optional(instant, get("ended_at"), "ended_at"),
        sweeping=bool(optional(flag, get("sweeping"), "sweeping")),
    )


def _rate(value: Any) -> float:
    found = number(value, "rate_per_second", most=MAX_RATE)
    if found <= 0:
        raise Corrupt("rate_per_second is not more than 0")
    return found


def _values(choices: type[BackfillState] | type[BackfillOverlap]) -> Collection[str]:
    found: Sequence[str] = [each.value for each in choices]
    return found

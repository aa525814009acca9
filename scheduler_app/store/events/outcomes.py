"""How events ended: the outcomes of attempts, written in bulk under the tokens of their claims; and events
that are over already, as the history of a demonstration and of tests.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from pymongo import UpdateOne
from pymongo.errors import BulkWriteError

from scheduler_app.domain.action import UNKNOWN_ORIGIN
from scheduler_app.domain.cause import CauseKey
from scheduler_app.domain.event import Event
from scheduler_app.domain.notification import OwedNotification
from scheduler_app.domain.states import TRANSITIONS, State
from scheduler_app.store.bulk_writes import or_unset, value_by_id, write_isolated
from scheduler_app.store.events.documents import (
    WHILE_CLAIMED,
    appended,
    history_line,
    set_event_aside,
    to_event_document,
)
from scheduler_app.store.events.fields import owed_notification_document
from scheduler_app.store.faults import rejected_positions
from scheduler_app.store.mongo import BY_ID, Document, Mongo
from scheduler_app.store.schedules.last_runs import RunResult, run_document

#: Characters of outputs in one write, which may not exceed 16 MiB.
MAX_OUTPUT = 2**20


class OutcomeRecord(NamedTuple):
    """How an attempt ended, to be written under the token of its claim."""

    event_id: str
    token: str
    state: State
    message: str
    due_at: datetime | None
    """The next attempt; None when `state` is final."""
    attempt: Mapping[str, Any]
    """The entry of the event's `attempts`, without its `claim`."""
    ended_at: datetime
    event: Event | None = None
    """What was attempted, for reports; None without reports."""
    origin: str = UNKNOWN_ORIGIN
    attempts_allowed: int = 0
    """How many attempts the event has in all before it is a dead letter."""
    pauses_on_failure: bool = False
    """Whether its schedule may have to be paused where it ends in error."""
    owed: OwedNotification | None = None
    """The notification of the event's end; None if none was asked for."""
    cause: CauseKey | None = None
    """Why the attempt failed; None if it did not."""
    tags: Sequence[str] = ()
    """Those of its schedule."""


class Outcomes:
    def __init__(self, mongo: Mongo) -> None:
        self._events = mongo.collection("events")
        self._majority = mongo.majority("events")

    def record(self, records: Sequence[OutcomeRecord]) -> list[OutcomeRecord]:
        """Writes how attempts ended. Returns those that were refused: their claim was lost meanwhile.

        A call may be repeated with the same records after any fault: each attempt carries its claim's
        token, and is written once.
        """
        refused: list[OutcomeRecord] = []
        while records:
            # One write has each event once. A second claim's record of the same event follows in the next
            # write.
            first: dict[str, OutcomeRecord] = {}
            printed = 0
            for record in records:
                printed += len(record.attempt.get("output", ""))
                if first and printed > MAX_OUTPUT:
                    break
                first.setdefault(record.event_id, record)
            refused += self._record(list(first.values()))
            records = [record for record in records if first.get(record.event_id) is not record]
        return refused

    def record_late(self, records: Sequence[OutcomeRecord]) -> None:
        """Stores attempts that ended after their claim was lost: they are shown, and change no state. An
        event whose document does not allow even that is set aside."""
        try:
            self._events.bulk_write(
                [
                    UpdateOne(
                        {"_id": record.event_id, "attempts.claim": {"$ne": record.token}},
                        [{"$set": {"attempts": appended("attempts", _late_line(record))}}],
                    )
                    for record in records
                ],
                ordered=False,
            )
        except BulkWriteError as error:
            for position in rejected_positions(error):
                record = records[position]
                if not set_event_aside(self._events, record.event_id, error, attempt=_late_line(record)):
                    raise

    def _record(self, records: Sequence[OutcomeRecord]) -> list[OutcomeRecord]:
        def write(part: Sequence[OutcomeRecord]) -> int:
            which, pipeline = _written_at_once(part)
            return self._events.update_many(which, pipeline, hint=BY_ID).matched_count

        def condemn(record: OutcomeRecord, error: Exception) -> bool:
            return set_event_aside(self._events, record.event_id, error, attempt=_attempt(record))

        matched, at_once = write_isolated(records, write, condemn)
        if at_once and matched == [len(records)]:
            return []
        ids = [record.event_id for record in records]
        written = {
            (row["_id"], attempt["claim"])
            for row in self._majority.find({"_id": {"$in": ids}}, {"attempts.claim": 1})
            for attempt in _lines(row.get("attempts"))
            if isinstance(attempt.get("claim"), str)
        }
        return [record for record in records if (record.event_id, record.token) not in written]


def _written_at_once(records: Sequence[OutcomeRecord]) -> tuple[Document, list[Document]]:
    """One update for all of them; an event is matched by the token of its own claim only."""
    ids = [record.event_id for record in records]
    which = {
        "_id": {"$in": ids},
        "state": {"$in": sorted(TRANSITIONS["record"].sources)},
        "$expr": {"$eq": ["$owner", value_by_id(ids, [record.token for record in records])]},
    }
    # A mark that an earlier end has left, before a redrive, stays until there is another one.
    owed = {"notify": {"$ifNull": ["$row.notify", "$notify"]}} if any(each.owed for each in records) else {}
    pipeline: list[Document] = [
        {"$set": {"row": value_by_id(ids, list(map(_outcome_row, records)))}},
        {
            "$set": {
                "state": "$row.state",
                "due_at": or_unset("$row.due_at"),
                "archived_at": or_unset("$row.archived_at"),
                "attempt": {"$add": ["$attempt", 1]},
                "attempts": appended("attempts", "$row.attempt"),
                "status": appended("status", "$row.line"),
                "cause": or_unset("$row.cause"),
                **owed,
            }
        },
        {"$unset": ["row", "owner", "lease_until", "dispatcher", *WHILE_CLAIMED]},
    ]
    if any(record.state is State.RUNNING for record in records):
        # Of an event whose receiver is to say how it went; the recovery of workers leaves it alone then.
        marked = {"$mergeObjects": ["$completion", {"awaiting": True}]}
        is_awaited = {"$eq": ["$state", State.RUNNING]}
        pipeline.append({"$set": {"completion": {"$cond": [is_awaited, marked, "$completion"]}}})
    return which, pipeline


def _outcome_row(record: OutcomeRecord) -> Document:
    said = history_line(record.ended_at, record.state, record.message)
    row: Document = {"state": said["status"], "attempt": _attempt(record), "line": said}
    if record.owed is not None:
        row["notify"] = owed_notification_document(record.owed)
    if record.cause is not None:
        row["cause"] = record.cause.id
    return row | ({"archived_at": record.ended_at} if record.due_at is None else {"due_at": record.due_at})


def _lines(attempts: Any) -> list[Document]:
    return [each for each in attempts if isinstance(each, dict)] if isinstance(attempts, list) else []


def _late_line(record: OutcomeRecord) -> Document:
    return _attempt(record) | {"late": True}


def _attempt(record: OutcomeRecord) -> Document:
    return {**record.attempt, "claim": record.token}


AT_ONCE = 2_000


@dataclass(frozen=True, slots=True)
class PastEvent:
    """An event as it ended."""

    event: Event
    state: State
    ended_at: datetime
    message: str
    """Of the last line of its history."""
    attempts: Sequence[dict[str, Any]]
    """As `AttemptLine`, the oldest first."""


class PastEvents:
    def __init__(self, mongo: Mongo) -> None:
        self._events = mongo.collection("events")
        self._schedules = mongo.collection("schedules")

    def insert(self, past: Sequence[PastEvent]) -> None:
        """Stores finished events that are new. Raises BulkWriteError where one exists already."""
        for start in range(0, len(past), AT_ONCE):
            self._events.insert_many(list(map(_past_document, past[start : start + AT_ONCE])), ordered=False)

    def note_last(self, run: RunResult) -> None:
        """Notes a schedule's last run, also one from before the schedule was made, which `LastRuns` takes for
        that of an earlier schedule."""
        self._schedules.update_one({"_id": run.schedule_id}, {"$set": {"last_run": run_document(run)}})


def _past_document(past: PastEvent) -> Document:
    event = past.event
    document = to_event_document(event, event.run_time, "Expanded")
    del document["due_at"]
    retries = [
        history_line(attempt["started_at"], State.RETRYING, f"Attempt {attempt['number']} failed")
        for attempt in past.attempts[:-1]
    ]
    return document | {
        "state": past.state.value,
        "attempt": len(past.attempts),
        "attempts": list(past.attempts),
        "status": [*document["status"], *retries, history_line(past.ended_at, past.state, past.message)],
        "archived_at": past.ended_at,
    }

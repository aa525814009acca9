"""How attempts ended, written in bulk under the tokens of their claims."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from pymongo import UpdateOne
from pymongo.errors import BulkWriteError

from scheduler_app.domain.event import TRANSITIONS, Event, State
from scheduler_app.domain.notification import OwedNotification
from scheduler_app.domain.origin import UNKNOWN_ORIGIN
from scheduler_app.store.documents.isolation import isolated
from scheduler_app.store.documents.per_document_update import or_unset, own_value
from scheduler_app.store.events.documents import WHILE_CLAIMED
from scheduler_app.store.events.fields import owed_document
from scheduler_app.store.events.history import appended, line
from scheduler_app.store.events.set_aside import set_aside
from scheduler_app.store.faults import rejected_positions
from scheduler_app.store.mongo import BY_ID, Document, Mongo

#: Characters of outputs in one write, which may not exceed 16 MiB.
MAX_OUTPUT = 2**20


class Record(NamedTuple):
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


class Outcomes:
    def __init__(self, mongo: Mongo) -> None:
        self._events = mongo.collection("events")
        self._majority = mongo.majority("events")

    def record(self, records: Sequence[Record]) -> list[Record]:
        """Writes how attempts ended. Returns those that were refused: their claim was lost meanwhile.

        A call may be repeated with the same records after any fault: each attempt carries its claim's
        token, and is written once.
        """
        refused: list[Record] = []
        while records:
            # One write has each event once. A second claim's record of the same event follows in the next
            # write.
            first: dict[str, Record] = {}
            printed = 0
            for record in records:
                printed += len(record.attempt.get("output", ""))
                if first and printed > MAX_OUTPUT:
                    break
                first.setdefault(record.event_id, record)
            refused += self._record(list(first.values()))
            records = [record for record in records if first.get(record.event_id) is not record]
        return refused

    def record_late(self, records: Sequence[Record]) -> None:
        """Stores attempts that ended after their claim was lost: they are shown, and change no state. An
        event whose document does not allow even that is set aside."""
        try:
            self._events.bulk_write(
                [
                    UpdateOne(
                        {"_id": record.event_id, "attempts.claim": {"$ne": record.token}},
                        [{"$set": {"attempts": appended("attempts", _late(record))}}],
                    )
                    for record in records
                ],
                ordered=False,
            )
        except BulkWriteError as error:
            for position in rejected_positions(error):
                record = records[position]
                if not set_aside(self._events, record.event_id, error, attempt=_late(record)):
                    raise

    def _record(self, records: Sequence[Record]) -> list[Record]:
        def write(part: Sequence[Record]) -> int:
            which, pipeline = _written_at_once(part)
            return self._events.update_many(which, pipeline, hint=BY_ID).matched_count

        def condemn(record: Record, error: Exception) -> bool:
            return set_aside(self._events, record.event_id, error, attempt=_attempt(record))

        matched, at_once = isolated(records, write, condemn)
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


def _written_at_once(records: Sequence[Record]) -> tuple[Document, list[Document]]:
    """One update for all of them; an event is matched by the token of its own claim only."""
    ids = [record.event_id for record in records]
    which = {
        "_id": {"$in": ids},
        "state": {"$in": sorted(TRANSITIONS["record"].sources)},
        "$expr": {"$eq": ["$owner", own_value(ids, [record.token for record in records])]},
    }
    # A mark that an earlier end has left, before a redrive, stays until there is another one.
    owed = {"notify": {"$ifNull": ["$row.notify", "$notify"]}} if any(each.owed for each in records) else {}
    pipeline: list[Document] = [
        {"$set": {"row": own_value(ids, list(map(_row, records)))}},
        {
            "$set": {
                "state": "$row.state",
                "due_at": or_unset("$row.due_at"),
                "archived_at": or_unset("$row.archived_at"),
                "attempt": {"$add": ["$attempt", 1]},
                "attempts": appended("attempts", "$row.attempt"),
                "status": appended("status", "$row.line"),
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


def _row(record: Record) -> Document:
    said = line(record.ended_at, record.state, record.message)
    row: Document = {"state": said["status"], "attempt": _attempt(record), "line": said}
    if record.owed is not None:
        row["notify"] = owed_document(record.owed)
    return row | ({"archived_at": record.ended_at} if record.due_at is None else {"due_at": record.due_at})


def _lines(attempts: Any) -> list[Document]:
    return [each for each in attempts if isinstance(each, dict)] if isinstance(attempts, list) else []


def _late(record: Record) -> Document:
    return _attempt(record) | {"late": True}


def _attempt(record: Record) -> Document:
    return {**record.attempt, "claim": record.token}

"""Missed occurrences, written together with the cursor that passes them: all of a step, or nothing of it.

Other occurrences become events first, and the cursor follows: a crash in between expands once more, onto the
same ids. What is counted in a record has no id of its own, and a beat that starts again would count it twice.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from pymongo import DESCENDING, ReplaceOne
from pymongo.client_session import ClientSession
from pymongo.errors import BulkWriteError

from scheduler_app.domain.ids import partition_of, tenant_of
from scheduler_app.domain.missed import Missed, MissedStep, missed_id
from scheduler_app.domain.states import Kind, State
from scheduler_app.store.events.documents import history_line, to_expired_event_document
from scheduler_app.store.events.fields import DOCUMENT_VERSION, read_missed
from scheduler_app.store.faults import STORE_FAULTS, only_duplicates
from scheduler_app.store.mongo import Document, Mongo
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

#: Moves the cursor within the session's transaction; False when the claim was lost.
MoveCursor = Callable[[ClientSession], bool]


class _ClaimLost(Exception):
    """The claim was lost: the transaction is undone."""


class MissedOccurrences:
    def __init__(self, mongo: Mongo) -> None:
        self._mongo = mongo
        self._events = mongo.collection("events")

    def settle(self, step: MissedStep, move: MoveCursor, now: datetime) -> int | None:
        """Writes a step and moves its cursor by `move`, in one transaction.

        Returns how many occurrences expired by it: those that are events already are left to their workers.
        None when another beat was quicker, or MongoDB broke the transaction off: nothing is written then, and
        the next beat that claims it begins again.
        """
        try:
            with self._mongo.transaction() as session:
                # The cursor first: of two beats, the second one is refused before it has written anything.
                if not move(session):
                    raise _ClaimLost
                return self._write(step, now, session)
        except _ClaimLost:
            return None
        except STORE_FAULTS as error:
            log.warning(
                "missed.broken_off",
                message="MongoDB broke off the write of missed occurrences; the next page of a beat makes it",
                schedule_id=step.schedule_id,
                error=str(error)[:300],
            )
            return None
        except BulkWriteError as error:
            if not only_duplicates(error):
                raise
            return None  # an older beat's insert came in between

    def at(self, schedule_id: str, instant: datetime) -> tuple[int, str] | None:
        """The revision and the sentence of the record that tells of an instant; None if there is none."""
        row = self._events.find_one(
            {"schedule_id": schedule_id, "run_time": {"$gte": instant}, "missed.first": {"$lte": instant}},
            {"revision": 1, "status": 1},
            sort=[("run_time", 1)],
            hint="missed_v1",
        )
        if row is None:
            return None
        lines = row.get("status") or [{}]
        return int(row["revision"]), str(lines[-1].get("message", ""))

    def _write(self, step: MissedStep, now: datetime, session: ClientSession) -> int:
        if step.record is not None:
            return self._count(step, step.record, now, session)
        ids = [event.id for event, _ in step.expired]
        there = {row["_id"] for row in self._events.find({"_id": {"$in": ids}}, {"_id": 1}, session=session)}
        documents = [
            to_expired_event_document(event, now, expiry.message)
            for event, expiry in step.expired
            if event.id not in there
        ]
        if documents:
            self._events.insert_many(documents, session=session)
        return len(documents)

    def _count(self, step: MissedStep, counted: Missed, now: datetime, session: ClientSession) -> int:
        # A beat that was killed after its insert left events past its cursor.
        there = self._events.count_documents(
            {
                "schedule_id": step.schedule_id,
                "revision": step.revision,
                "kind": Kind.SCHEDULED.value,
                "run_time": {"$gte": counted.first, "$lte": counted.last},
            },
            hint="schedule_v1",
            session=session,
        )
        fresh = counted.count - there
        if fresh == 0:
            return 0
        older = self._just_before(step, counted, session)
        record = Missed(
            older.first if older else counted.first, counted.last, fresh + (older.count if older else 0)
        )
        # By a bulk, which a dry run knows, too.
        which = {"_id": missed_id(step.schedule_id, record.first)}
        written = ReplaceOne(which, _document(step, record, now), upsert=True)
        self._events.bulk_write([written], session=session)
        return fresh

    def _just_before(self, step: MissedStep, counted: Missed, session: ClientSession) -> Missed | None:
        """The record of the step before, which ends where this one begins: nothing lies between the two. A
        record of an earlier outage has the singles of that one after it."""
        before = self._events.find_one(
            {
                "schedule_id": step.schedule_id,
                "run_time": {"$lt": counted.first},
                "kind": Kind.SCHEDULED.value,
            },
            {"missed": 1, "revision": 1},
            sort=[("run_time", DESCENDING), ("_id", DESCENDING)],
            hint="schedule_v1",
            session=session,
        )
        if before is None or before.get("missed") is None or before.get("revision") != step.revision:
            return None
        return read_missed(before["missed"], "missed")


def _document(step: MissedStep, record: Missed, now: datetime) -> Document:
    sentence = record.sentence(step.expiry) if step.expiry else ""
    document: dict[str, Any] = {
        "_id": missed_id(step.schedule_id, record.first),
        "v": DOCUMENT_VERSION,
        "tenant": tenant_of(step.schedule_id),
        "partition": partition_of(step.schedule_id),
        "schedule_id": step.schedule_id,
        "revision": step.revision,
        "kind": Kind.SCHEDULED.value,
        "run_time": record.last,
        "state": State.EXPIRED.value,
        "attempt": 0,
        "dispatches": 0,
        "lost_leases": 0,
        "status": [history_line(now, State.EXPIRED, sentence)],
        "attempts": [],
        "created_at": now,
        "archived_at": now,
        "missed": {"first": record.first, "last": record.last, "count": record.count},
    }
    return document

"""The mark that an event carries while its last attempt has failed: its cause, by which it is found.

It is written with the outcome itself, so that a worker that dies before it has told of a failure loses none.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from pymongo import ASCENDING, UpdateMany

from scheduler_app.domain.action import UNKNOWN_ORIGIN
from scheduler_app.domain.cause import CauseKey, failing_key
from scheduler_app.domain.states import State
from scheduler_app.domain.stored_fields import EARLIEST
from scheduler_app.store.indexes import DEAD_OF_CAUSE, WAITING_OF_CAUSE
from scheduler_app.store.mongo import BY_ID, Document, Mongo

#: Events of a mark that are looked at where those of some schedules are counted.
MOST_READ: Final = 10_000
_FAILED = {
    **dict.fromkeys(("schedule_id", "origin", "state", "archived_at", "attempts_before", "cause"), 1),
    "attempts": {"$slice": -1},
    "status": {"$slice": -1},
}


class FailedEvent(NamedTuple):
    """What an event says of its last attempt, which failed."""

    event_id: str
    schedule_id: str
    """Empty for a message."""
    key: CauseKey
    at: datetime
    error: str
    is_dead: bool
    mark: str | None
    """The cause that it carries."""


class MarkCounts(NamedTuple):
    """How many events carry a mark, and when the next of them is tried again."""

    waiting: int = 0
    dead: int = 0
    next_try: datetime | None = None


class CauseMarks:
    def __init__(self, mongo: Mongo) -> None:
        self._events = mongo.collection("events")

    def keys(self) -> tuple[frozenset[str], frozenset[str]]:
        """The marks of events that wait for another attempt, and those of dead letters: one step in an index
        for each. Raises a STORE_FAULT."""
        return (
            self._distinct({"cause": {"$gt": ""}, "due_at": {"$gt": EARLIEST}}, WAITING_OF_CAUSE),
            self._distinct({"state": State.ERROR.value, "cause": {"$gt": ""}}, DEAD_OF_CAUSE),
        )

    def count(self, key: str, *, most: int) -> MarkCounts:
        """Of one mark, as `counts`; also in a dry run."""
        waiting, dead = _waiting(key), _dead(key)
        first = self._events.find_one(
            waiting, {"due_at": 1}, sort=[("due_at", ASCENDING)], hint=WAITING_OF_CAUSE
        )
        return MarkCounts(
            self._events.count_documents(waiting, hint=WAITING_OF_CAUSE, limit=most),
            self._events.count_documents(dead, hint=DEAD_OF_CAUSE, limit=most),
            first["due_at"] if first and isinstance(first["due_at"], datetime) else None,
        )

    def counts(
        self, keys: Collection[str], *, most: int, among: Mapping[str, Sequence[str]] | None = None
    ) -> dict[str, MarkCounts]:
        """Of each of these marks; no more than `most` of each are counted. `among`: of events of these
        schedules alone, by the mark; `MOST_READ` of each mark are looked at. Raises a STORE_FAULT."""
        looks = [
            look
            for key in keys
            for look in (
                _look(key, _waiting(key), most, "waiting", among),
                _look(key, _dead(key), most, "dead", among),
            )
        ]
        if not looks:
            return {}
        pipeline = looks[0] + [{"$unionWith": {"coll": "events", "pipeline": each}} for each in looks[1:]]
        found = dict.fromkeys(keys, MarkCounts())
        for row in self._events.aggregate(pipeline):
            at = row["next"] if row["of"] == "waiting" and isinstance(row["next"], datetime) else None
            before = found[row["key"]]
            found[row["key"]] = before._replace(**{row["of"]: row["n"]}, next_try=at or before.next_try)
        return found

    def unmarked(self, *, limit: int) -> list[FailedEvent]:
        """Dead letters that carry no mark: an older release, a recovery or a report wrote them."""
        which = {"state": State.ERROR.value, "cause": None}
        return _read(self._events.find(which, _FAILED, hint=DEAD_OF_CAUSE).limit(limit))

    def marked(self, key: str, *, limit: int) -> list[FailedEvent]:
        """Some of the events that carry a mark."""
        dead = self._events.find(_dead(key), _FAILED, hint=DEAD_OF_CAUSE)
        waits = self._events.find(_waiting(key), _FAILED, hint=WAITING_OF_CAUSE)
        return _read([*waits.limit(limit), *dead.limit(limit)])

    def mark(self, events: Collection[FailedEvent]) -> None:
        """Gives events the mark of their cause, where no other one has come meanwhile."""
        by_key: dict[tuple[str | None, str], list[str]] = {}
        for each in events:
            if each.mark != each.key.id:
                by_key.setdefault((each.mark, each.key.id), []).append(each.event_id)
        if by_key:
            self._events.bulk_write(
                [
                    UpdateMany({"_id": {"$in": ids}, "cause": old}, {"$set": {"cause": new}}, hint=BY_ID)
                    for (old, new), ids in by_key.items()
                ],
                ordered=False,
            )

    def _distinct(self, which: Document, hint: str) -> frozenset[str]:
        rows = self._events.aggregate([{"$match": which}, {"$group": {"_id": "$cause"}}], hint=hint)
        return frozenset(row["_id"] for row in rows if isinstance(row["_id"], str))


def _waiting(key: str) -> Document:
    return {"cause": key, "due_at": {"$gt": EARLIEST}}


def _dead(key: str) -> Document:
    return {"state": State.ERROR.value, "cause": key}


def _look(
    key: str, which: Document, most: int, name: str, among: Mapping[str, Sequence[str]] | None
) -> list[Document]:
    own: list[Document] = []
    if among is not None:
        own = [{"$limit": MOST_READ}, {"$match": {"schedule_id": {"$in": list(among[key])}}}]
    return [
        {"$match": which},
        *own,
        {"$limit": most},
        {"$group": {"_id": None, "n": {"$sum": 1}, "next": {"$min": "$due_at"}}},
        {"$set": {"key": {"$literal": key}, "of": name}},
    ]


def _read(rows: Iterable[Document]) -> list[FailedEvent]:
    """Those that can be read; what is corrupt has no attempt, and the history says why."""
    found = []
    for row in rows:
        last, line = _last(row.get("attempts")), _last(row.get("status"))
        event_id, at = row["_id"], line.get("time")
        if not isinstance(event_id, str) or not isinstance(at, datetime):
            continue
        status, error = last.get("status_code"), last.get("error")
        status = status if isinstance(status, int) else None
        said = error if isinstance(error, str) else str(line.get("message") or "")
        receiver, schedule_id = row.get("origin"), row.get("schedule_id")
        mark = row.get("cause")
        found.append(
            FailedEvent(
                event_id,
                schedule_id if isinstance(schedule_id, str) else "",
                failing_key(event_id, str(receiver or UNKNOWN_ORIGIN), status, said),
                at,
                said if error or status is None else f"status {status}",
                row.get("state") == State.ERROR,
                mark if isinstance(mark, str) else None,
            )
        )
    return found


def _last(lines: Any) -> Document:
    last = lines[-1] if isinstance(lines, list) and lines else None
    return last if isinstance(last, dict) else {}

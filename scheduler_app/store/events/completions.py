"""Events whose receivers say how their work went: what a request's token stands for, and what was said."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from scheduler_app.domain.action import UNKNOWN_ORIGIN
from scheduler_app.domain.cause import CauseKey
from scheduler_app.domain.event import KEPT_TOKENS, AwaitedEvent, CompletionReport
from scheduler_app.domain.notification import Notifying, OwedNotification
from scheduler_app.domain.states import State
from scheduler_app.domain.stored_fields import (
    EARLIEST,
    Corrupt,
    instant,
    items,
    one_of,
    optional,
    text,
    whole,
)
from scheduler_app.store.bulk_writes import or_unset, value_by_id
from scheduler_app.store.events.documents import (
    WHILE_CLAIMED,
    appended,
    line_of_act,
    set_event_aside,
    update_or_set_aside,
)
from scheduler_app.store.events.fields import (
    check_completion,
    owed_notification_document,
    read_completion_report,
)
from scheduler_app.store.mongo import BY_ID, Document, Mongo

_READ = dict.fromkeys(
    (
        *("schedule_id", "run_time", "state", "owner", "attempt", "completion", "status", "origin"),
        "attempts_before",
    ),
    1,
)


class ExpectedCompletion(NamedTuple):
    """An attempt whose request carries a token."""

    event_id: str
    claim: str
    """The token of the claim that makes the request."""
    digest: str
    """What is stored of the completion's token."""
    number: int
    seconds: float
    retry_in: timedelta | None
    """What follows its failure; None: it is the last attempt."""


class CompletionOutcome(NamedTuple):
    """What follows for an event from what was said of it, and why, for its history."""

    report: CompletionReport
    state: State
    message: str
    due_at: datetime | None = None
    """The next attempt; None when `state` is final."""
    cause: CauseKey | None = None
    """Why the attempt failed; None if it did not."""
    worker: str = ""
    """Who is named as the maker of an attempt that no worker has recorded."""


class Completions:
    def __init__(self, mongo: Mongo) -> None:
        self._events = mongo.collection("events")
        self._majority = mongo.majority("events")

    def expect(self, expected: Sequence[ExpectedCompletion]) -> set[str]:
        """Stores what the requests' tokens stand for, before they are made: a receiver may be quicker than
        the record of its answer. Returns the events whose claims still hold."""
        ids = [each.event_id for each in expected]
        held = {
            "_id": {"$in": ids},
            "state": State.RUNNING,
            "$expr": {"$eq": ["$owner", value_by_id(ids, [each.claim for each in expected])]},
        }
        known = {"$cond": [{"$isArray": "$completion.tokens"}, "$completion.tokens", []]}
        update_or_set_aside(
            self._events,
            held,
            [
                {"$set": {"row": value_by_id(ids, [_row(each) for each in expected])}},
                {
                    "$set": {
                        "completion": {
                            "tokens": {"$slice": [{"$concatArrays": [known, ["$row.digest"]]}, -KEPT_TOKENS]},
                            "attempt": "$row.attempt",
                            "seconds": "$row.seconds",
                            "retry_in_ms": or_unset("$row.retry_in_ms"),
                            "awaiting": "$$REMOVE",
                        }
                    }
                },
                {"$unset": ["row"]},
            ],
            hint=BY_ID,
        )
        return {row["_id"] for row in self._majority.find(held, {"_id": 1})}

    def find(self, event_id: str) -> AwaitedEvent | None:
        """What is known of the event; None if there is none, or none whose receiver is to say how
        it went. One that cannot be read is set aside."""
        row = self._majority.find_one({"_id": event_id, "completion": {"$exists": True}}, _READ)
        return self._read(row) if row else None

    def overdue(self, now: datetime, *, limit: int) -> list[AwaitedEvent]:
        """Events that have waited for longer than their time."""
        which = {
            "state": State.RUNNING,
            "completion.awaiting": True,
            "due_at": {"$gte": EARLIEST, "$lt": now},
        }
        rows = self._events.find(which, _READ).sort("due_at", 1).limit(limit)
        return [found for row in rows if (found := self._read(row)) is not None]

    def _read(self, row: Document) -> AwaitedEvent | None:
        try:
            return _awaited(row)
        except Corrupt as error:
            set_event_aside(self._events, row["_id"], error)
            return None

    def tell(self, awaited: AwaitedEvent, ended: CompletionOutcome) -> bool:
        """Writes what was said of an event; False where it has changed since it was read."""
        now = ended.report.at
        which: Document = {
            "_id": awaited.event_id,
            "state": awaited.state,
            "attempt": awaited.attempt,
            "owner": awaited.owner if awaited.owner is not None else {"$exists": False},
        }
        said = {"how": ended.report.how, "attempt": ended.report.attempt, "at": now}
        put: Document = {
            "state": ended.state,
            "status": appended("status", line_of_act(now, ended.state, ended.message)),
            "completion": {"told": {"$literal": said}},
        }
        if not awaited.awaiting:
            # No worker has recorded this attempt: one that comes now finds it recorded.
            entry = {"number": awaited.attempt + 1, "started_at": now, "worker": ended.worker}
            claim = {"claim": awaited.owner} if awaited.owner is not None else {}
            put |= {
                "attempt": {"$add": ["$attempt", 1]},
                "attempts": appended("attempts", entry | claim),
            }
        removed = ["owner", "lease_until", "dispatcher", "completion.awaiting", *WHILE_CLAIMED]
        if ended.cause is None:
            removed.append("cause")
        else:
            put["cause"] = ended.cause.id
        if ended.due_at is None:
            put["archived_at"] = now
            when = Notifying.ON_SUCCESS if ended.state is State.COMPLETED else Notifying.ON_FAILURE
            # The duty that makes notifications asks the schedule which destinations to notify.
            put["notify"] = owed_notification_document(OwedNotification(when, now)) | {
                "hops": {"$ifNull": ["$hops", 0]}
            }
            removed.append("due_at")
        else:
            put["due_at"] = ended.due_at
        return update_or_set_aside(self._events, which, [{"$set": put}, {"$unset": removed}]).modified == 1


def _awaited(row: Mapping[str, Any]) -> AwaitedEvent:
    """Raises Corrupt."""
    check_completion(row.get("completion"), "completion")
    kept = row["completion"]
    lines = items(row.get("status"), "status")
    last = lines[-1] if lines and isinstance(lines[-1], dict) else {}
    retry_in = kept.get("retry_in_ms")
    return AwaitedEvent(
        event_id=text(row["_id"], "_id"),
        schedule_id=text(row.get("schedule_id"), "schedule_id"),
        run_time=instant(row.get("run_time"), "run_time"),
        state=State(one_of(row.get("state"), "state", tuple(State))),
        owner=optional(text, row.get("owner"), "owner"),
        attempt=whole(row.get("attempt"), "attempt"),
        number=int(kept["attempt"]),
        digests=tuple(kept["tokens"]),
        seconds=float(kept["seconds"]),
        retry_in=None if retry_in is None else timedelta(milliseconds=int(retry_in)),
        awaiting=kept.get("awaiting") is True,
        report=None if kept.get("told") is None else read_completion_report(kept["told"], "completion.told"),
        last_message=str(last.get("message", "")),
        receiver=str(row.get("origin") or UNKNOWN_ORIGIN),
        attempts_before=optional(whole, row.get("attempts_before"), "attempts_before") or 0,
    )


def _row(each: ExpectedCompletion) -> Document:
    row: Document = {"digest": each.digest, "attempt": each.number, "seconds": each.seconds}
    if each.retry_in is not None:
        row["retry_in_ms"] = each.retry_in // timedelta(milliseconds=1)
    return row

"""What a hand, a restore or a newer release may leave in a field: for each field of each kind of document."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from bson import ObjectId, Regex, Timestamp
from bson.datetime_ms import DatetimeMS

from scheduler_app.domain.destination import Destination
from scheduler_app.domain.ids import WholeId
from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.store.mongo import Document
from scheduler_app.store.recoveries import GRACE_SECONDS, MAX_GRACE_DOUBLINGS
from tests.builders import event, message, schedule

MISSING = object()
NAN = float("nan")
HUGE = 2**62
#: The year 142 million, and one before all years.
HUGE_DATE, TINY_DATE = DatetimeMS(2**62), DatetimeMS(-(2**60))
FAR_DATE = datetime(9990, 1, 1, tzinfo=UTC)
PAST_DATE = datetime(2026, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
#: Longer ago than the grace of a lost message, doubled as often as it may be.
LONG_AGO = 2 ** (MAX_GRACE_DOUBLINGS + 1) * GRACE_SECONDS * SECOND
#: Five occurrences, all of them due when the schedule is made.
OVERDUE = "FREQ=SECONDLY;COUNT=5"
YEARLY = "DTSTART:20400101T000000Z\nRRULE:FREQ=YEARLY"


class Corruption(NamedTuple):
    """A field, by its path, and a value that it must not have; MISSING takes it away."""

    path: str
    value: Any

    def update(self) -> dict[str, Any]:
        if self.value is MISSING:
            return {"$unset": {self.path: ""}}
        return {"$set": {self.path: self.value}}

    @property
    def field(self) -> str:
        """What a reason names at least: the last part of the path."""
        return self.path.rpartition(".")[2]

    def __str__(self) -> str:
        value = "missing" if self.value is MISSING else repr(self.value)
        return f"{self.path}={value[:40]}"


NO_TEXT = (5, NAN, None, ["x"], {"x": 1}, MISSING, True)
NO_WHOLE = ("x", NAN, None, [1], {"x": 1}, MISSING, HUGE, -1, True, 0.5)
NO_DATE = ("soon", 5, NAN, None, ["x"], {"x": 1}, MISSING, HUGE_DATE, TINY_DATE, True)
NO_LIST = ("x", 5, NAN, {"x": 1}, True)
NO_OBJECT = ("x", 5, NAN, ["x"], True)

NO_NOTIFIES = (
    ["x"],
    [{"when": "on_sunday", "destination": "d"}],
    [{"when": "on_failure"}],
    [{"when": "on_failure", "destination": 5}],
    [{"when": "on_failure", "destination": "acme:d"}],
)

SCHEDULES: dict[str, tuple[Any, ...]] = {
    "v": ("x", NAN, None, [1], {"x": 1}, MISSING, 0, -1, True),
    # No lists: beside the list of tags MongoDB refuses to index them.
    "tenant": (5, NAN, None, {"x": 1}, MISSING, True),
    "name": NO_TEXT,
    "rrule": (5, NAN, [1], {"x": 1}, True),
    "pinned": (5, NAN, None, [1], {"x": 1}, MISSING, "no rule", True),
    "run_at": ("soon", 5, NAN, [1], {"x": 1}, HUGE_DATE, True),
    "timezone": (*NO_TEXT, "Nowhere/At all"),
    "gap": (*NO_TEXT, "leap"),
    "overlap": (*NO_TEXT, "both"),
    "action": ("x", 5, NAN, None, ["x"], MISSING, {}),
    "action.url": NO_TEXT,
    "action.method": (*NO_TEXT, "BREW"),
    "action.headers": (*NO_LIST, None, MISSING, ["x"], [["x"]], [[1, 2]], [["x", 5]], [["x", {"enc": 1}]]),
    "action.body": (*NO_OBJECT, {}, {"kind": "body", "data": "text"}, {"kind": "song", "data": b"x"}),
    "retry": (*NO_OBJECT, None, MISSING, {}),
    "retry.max_retries": NO_WHOLE,
    "retry.backoff_seconds": ("soon", NAN, None, [1], {"x": 1}, MISSING, HUGE, -1, float("inf"), True),
    "retry.backoff_max_seconds": ("soon", NAN, None, [1], {"x": 1}, MISSING, HUGE, -1, True),
    "retry.codes": (*NO_LIST, None, MISSING, [None], [{"x": 1}], ["9xx"], [NAN]),
    "timeout_seconds": ("10", NAN, None, [1], {"x": 1}, MISSING, HUGE, 0, -1, float("inf"), True),
    "success": (*NO_LIST, None, MISSING, [[1]], ["?"], [True]),
    "tags": (*NO_LIST, [5], [None]),
    "purpose": (5, NAN, ["x"], {"x": 1}, True),
    "state": (5, NAN, None, ["x"], {"x": 1}, MISSING, "asleep", ["active"]),
    "version": NO_WHOLE,
    "first_revision": ("x", NAN, [1], {"x": 1}, HUGE, -1, True, 0.5, 2),
    "revision": (*NO_WHOLE, 0),
    "revised_at": NO_DATE,
    "cuts": (*NO_LIST, ["x"], [[1]], [["x", "y"]], [[NAN, FAR_DATE]], [[1, 5]]),
    "next_run_at": (*NO_DATE, [PAST_DATE]),
    "finishes_at": ("soon", 5, NAN, ["x"], {"x": 1}, HUGE_DATE, True),
    "pause": (*NO_OBJECT, {}, {"reason": 5}, {"reason": "x", "note": 5}, {"reason": "x", "until": "soon"}),
    "pause_after_failures": ("x", NAN, [1], {"x": 1}, HUGE, -1, 0, True, 0.5, 101),
    "failures_since": ("soon", 5, NAN, ["x"], {"x": 1}, HUGE_DATE, True),
    "cut_pending": ("x", 5, NAN, [1], {"x": 1}),
    "checkpoint": (*NO_OBJECT, {"v": 1, "rule": "x", "second": "x", "done": 5}),
    "run_overlap": (5, NAN, ["x"], {"x": 1}, True, "perhaps"),
    "overlap_scope": (5, NAN, ["x"], {"x": 1}, True, "day"),
    "queue_limit": ("x", NAN, [1], {"x": 1}, HUGE, -1, 0, True, 0.5, 1_001),
    "completion": (5, NAN, ["x"], {"x": 1}, True, "perhaps"),
    "completion_timeout_seconds": ("10", NAN, [1], {"x": 1}, HUGE, 0, -1, float("inf"), True),
    "zone_data": (5, NAN, [1], {"x": 1}, True),
    "lateness": (*NO_OBJECT, {}, {"catch_up": "some", "window_seconds": 1, "late_after_seconds": 1}),
    "jitter_seconds": ("x", NAN, [1], {"x": 1}, HUGE, -1, float("inf"), True),
    "expect": (*NO_OBJECT, {"max_runtime_seconds": "long"}, {"success_within_seconds": 0}),
    "signing": (*NO_OBJECT, {}, {"secret": "x"}, {"secret": {"enc": 0, "value": "x"}, "since": 5}),
    "notifies": (*NO_LIST, *NO_NOTIFIES),
    "created_at": ("soon", 5, NAN, None, {"x": 1}, MISSING, HUGE_DATE, TINY_DATE, True),
    "updated_at": NO_DATE,
    "owner": (5, NAN, None, ["x"], {"x": 1}),
    "lease_until": (*NO_DATE, Timestamp(2**31, 1), Regex("x"), FAR_DATE),
}

EVENTS: dict[str, tuple[Any, ...]] = {
    "v": ("x", NAN, None, [1], {"x": 1}, MISSING, 0, True),
    "tenant": NO_TEXT,
    "schedule_id": NO_TEXT,
    "revision": (*NO_WHOLE, 0),
    "kind": (*NO_TEXT, "wedding"),
    "run_time": NO_DATE,
    "state": (5, NAN, None, ["x"], {"x": 1}, MISSING, "asleep", ["ready_queue"], ["completed"]),
    "due_at": (*NO_DATE, [PAST_DATE], [FAR_DATE, PAST_DATE]),
    "queue": NO_TEXT,
    "attempt": NO_WHOLE,
    "attempts_before": NO_WHOLE,
    "dispatches": NO_WHOLE,
    "dispatched_at": (*NO_DATE, Timestamp(2**31, 1), FAR_DATE),
    "lost_leases": NO_WHOLE,
    "waits_for": (5, NAN, ["x"], {"x": 1}, True),
    "superseded_by": (5, NAN, ["x"], {"x": 1}, True),
    "completion": (*NO_OBJECT, {}, {"tokens": 5}, {"tokens": [5]}, {"tokens": [], "attempt": "x"}),
    "status": (*NO_LIST, None, MISSING, ["x"], [5], [None]),
    "held": (5, NAN, ["x"], {"x": 1}, True),
    "attempts": (*NO_LIST, None, MISSING, ["x"], [{}], [{"claim": {"x": 1}}]),
    "created_at": NO_DATE,
    "owner": (5, NAN, None, ["x"], {"x": 1}),
    "dispatcher": (5, NAN, None, ["x"], {"x": 1}),
    "lease_until": (*NO_DATE, Timestamp(2**31, 1), Regex("x"), FAR_DATE),
    "due_since": ("soon", 5, NAN, ["x"], {"x": 1}, HUGE_DATE, TINY_DATE, True),
    "missed": (*NO_OBJECT, {}, {"first": "soon", "last": PAST_DATE, "count": 5}),
    "archived_at": ("soon", 5, NAN, ["x"], {"x": 1}, HUGE_DATE),
    "corrupt": ("x", 5, NAN, ["x"]),
    "notify": (*NO_OBJECT, {"when": "on_sunday"}, {"when": "on_failure", "since": "x"}),
}

#: Of a message: what it has beside an event's fields, and those that are others than an occurrence's.
MESSAGES: dict[str, tuple[Any, ...]] = {
    "v": ("x", NAN, None, [1], {"x": 1}, MISSING, 0, True),
    "schedule_id": ("s1", 5, NAN, ["x"], {"x": 1}, True),
    "kind": (*NO_TEXT, "wedding", "scheduled"),
    "hops": ("x", NAN, [1], {"x": 1}, HUGE, -1, True),
    "action": ("x", 5, NAN, None, ["x"], MISSING, {}),
    "action.type": NO_TEXT,
    "action.url": NO_TEXT,
    "action.method": (*NO_TEXT, "BREW"),
    "action.headers": (*NO_LIST, None, MISSING, ["x"], [["x"]], [[1, 2]], [["x", 5]]),
    "action.body": (*NO_OBJECT, {}, {"kind": "body", "data": "text"}, {"kind": "song", "data": b"x"}),
    "action.destination": (5, NAN, ["x"], {"x": 1}, True, "acme:d"),
    "event_name": (5, NAN, ["x"], {"x": 1}, True),
    "asked": (*NO_OBJECT, None, MISSING),
    "asked.scheduled_at": ("soon", 5, NAN, ["x"], {"x": 1}, HUGE_DATE, TINY_DATE, True),
    "asked.delay_seconds": ("soon", NAN, [1], {"x": 1}, -1, True),
    "retry": (*NO_OBJECT, None, MISSING, {}),
    "retry.max_retries": NO_WHOLE,
    "retry.backoff_seconds": ("soon", NAN, None, [1], {"x": 1}, MISSING, HUGE, -1, True),
    "retry.backoff_max_seconds": ("soon", NAN, None, [1], {"x": 1}, MISSING, HUGE, -1, True),
    "retry.codes": (*NO_LIST, None, MISSING, [None], ["9xx"]),
    "timeout_seconds": ("10", NAN, None, [1], {"x": 1}, MISSING, HUGE, 0, -1, True),
    "success": (*NO_LIST, None, MISSING, [[1]], ["?"], [True]),
    "signing": (*NO_OBJECT, {}, {"secret": "x"}, {"secret": {"enc": 0, "value": "x"}, "since": 5}),
    "sealed": ("x", 5, ["x"], {"x": 1}),
    "notifies": (*NO_LIST, *NO_NOTIFIES),
}

DESTINATIONS: dict[str, tuple[Any, ...]] = {
    "v": ("x", NAN, None, [1], {"x": 1}, MISSING, 0, True),
    "tenant": (5, NAN, None, {"x": 1}, MISSING, True, "acme"),
    "version": (*NO_WHOLE, 0),
    "action": ("x", 5, NAN, None, ["x"], MISSING, {}),
    "action.url": NO_TEXT,
    "action.method": (5, NAN, None, ["x"], {"x": 1}, MISSING, True, "BREW"),
    "action.destination": (5, NAN, None, ["x"], MISSING, "other"),
    "action.headers": (*NO_LIST, None, MISSING, ["x"], [["x"]], [[1, 2]], [["x", 5]]),
    "auth": (*NO_OBJECT, {}, {"type": "basic"}, {"type": "magic", "username": "", "secret": "x"}),
    "allowed_methods": (*NO_LIST, None, MISSING, [], ["BREW"], [5]),
    "signing": (*NO_OBJECT, {}, {"secret": "x"}, {"secret": {"enc": 0, "value": "x"}, "since": 5}),
    "sealed": ("x", 5, ["x"], {"x": 1}),
    "max_retries": ("x", NAN, [1], {"x": 1}, HUGE, -1, True, 0.5, 51),
    "backoff_seconds": ("soon", NAN, [1], {"x": 1}, HUGE, -1, True),
    "backoff_max_seconds": ("soon", NAN, [1], {"x": 1}, HUGE, -1, True),
    "retry_codes": (*NO_LIST, [None], ["9xx"]),
    "success": (*NO_LIST, [None], ["9xx"]),
    "timeout_seconds": ("10", NAN, [1], {"x": 1}, HUGE, 0, -1, True),
    "rate_per_second": ("x", NAN, [1], {"x": 1}, HUGE, 0, -1, True),
    "burst": (*NO_WHOLE, 0),
    "concurrency": ("x", NAN, [1], {"x": 1}, HUGE, 0, True, 0.5),
    "breaker": (*NO_OBJECT, {}, {"failures": 0, "open_seconds": 5}, {"failures": 1, "open_seconds": 0.1}),
    "paused": ("x", 5, NAN, None, ["x"], MISSING),
    "queue": ("", "a b", "celery", 5, NAN, [1], {"x": 1}, True),
    "deleting": ("x", 5, NAN, [1], {"x": 1}),
    "created_at": ("soon", 5, NAN, None, {"x": 1}, MISSING, HUGE_DATE, TINY_DATE, True),
    "updated_at": NO_DATE,
}

PAGES: dict[str, tuple[Any, ...]] = {
    "v": NO_WHOLE,
    "ids": (*NO_LIST, None, MISSING, [5], [["x"]]),
    "until": (*NO_DATE, Timestamp(2**31, 1), Regex("x"), FAR_DATE),
}

NODES: dict[str, tuple[Any, ...]] = {
    "v": NO_WHOLE,
    "role": NO_TEXT,
    "host": NO_TEXT,
    "name": NO_TEXT,
    "pid": NO_WHOLE,
    "version": NO_TEXT,
    "seen_at": (*NO_DATE, Timestamp(2**31, 1), Regex("x")),
    "clock_offset_seconds": ("x", NAN, None, [1], {"x": 1}, MISSING, True),
    "clock_jump_seconds": ("x", NAN, None, [1], {"x": 1}, MISSING, True),
    "settings": NO_OBJECT,
    "last_tick_at": NO_DATE,
    "consuming": ("x", 5, NAN, None, [1], {"x": 1}, MISSING),
}

IDEMPOTENCY: dict[str, tuple[Any, ...]] = {
    "v": NO_WHOLE,
    "request": NO_TEXT,
    "seed": NO_TEXT,
    "token": NO_TEXT,
    "created_at": NO_DATE,
    "lease_until": (*NO_DATE, Timestamp(2**31, 1), Regex("x"), FAR_DATE),
    "answer": (*NO_OBJECT, {}, {"status": "x"}),
    "answer.status": NO_WHOLE,
    "answer.headers": (*NO_OBJECT, None, MISSING, {"ETag": 5}),
    "answer.body": (*NO_TEXT, "text"),
}


BACKFILLS: dict[str, tuple[Any, ...]] = {
    "v": NO_WHOLE,
    "tenant": NO_TEXT,
    "number": NO_TEXT,
    "since": NO_DATE,
    "until": NO_DATE,
    "rest": (*NO_OBJECT, None, MISSING, {}),
    "rest.revision": (*NO_WHOLE, 0),
    "rest.pinned": (5, NAN, None, [1], {"x": 1}, MISSING, "no rule", True),
    "rest.next_run_at": NO_DATE,
    "rest.until": NO_DATE,
    "schedule_created_at": NO_DATE,
    "rate_per_second": ("x", NAN, None, [1], {"x": 1}, MISSING, HUGE, 0, -1, float("inf"), True),
    "overlap": (*NO_TEXT, "both"),
    "only_missing": ("x", 5, NAN, None, [1], {"x": 1}, MISSING),
    "occurrences": NO_WHOLE,
    "origin": (5, NAN, ["x"], {"x": 1}, True),
    "queue": (*NO_TEXT, "no queue"),
    "state": (*NO_TEXT, "asleep"),
    "reason": (5, NAN, ["x"], {"x": 1}, True),
    "made": NO_WHOLE,
    "left_out": NO_WHOLE,
    "next_due_at": NO_DATE,
    "started_at": NO_DATE,
    "ended_at": ("soon", 5, NAN, ["x"], {"x": 1}, HUGE_DATE),
    "sweeping": ("x", 5, NAN, [1], {"x": 1}),
}


def corruptions(table: dict[str, tuple[Any, ...]], *, whole: bool = True) -> Iterator[Corruption]:
    """The whole table, or two values for each field, which are others from field to field."""
    for number, (path, values) in enumerate(table.items()):
        few = {number % len(values), (number + len(values) // 2) % len(values)}
        for index, value in enumerate(values):
            if whole or index in few:
                yield Corruption(path, value)


# -- Planting the tables. `sound` plants the same documents without a fault. ------------------------------


def plant_schedules(
    store: Store, now: datetime, url: str, *, prefix: str = "bad", sound: bool = False, whole: bool = True
) -> dict[str, Corruption]:
    """Schedules with overdue occurrences, one for each row, by id."""
    documents, planted = store.mongo.collection("schedules"), {}
    for number, corruption in enumerate(corruptions(SCHEDULES, whole=whole)):
        made = schedule(now - 10 * SECOND, f"{prefix}-{number}", url=url, rrule=OVERDUE)
        planted[made.id] = corruption
        store.schedules.insert(made)
        if not sound:
            documents.update_one({"_id": made.id}, corruption.update())
    return planted


def plant_events(
    store: Store,
    now: datetime,
    url: str,
    *,
    schedule_id: str = "bad",
    sound: bool = False,
    whole: bool = True,
) -> dict[str, tuple[State, Corruption]]:
    """Events of one sound schedule, all of them overdue, one for each row and each living state, by id."""
    store.schedules.insert(schedule(now - 10 * SECOND, schedule_id, url=url, rrule=YEARLY))
    token = str(ObjectId())
    living: dict[State, Document] = {
        State.READY_QUEUE: {},
        State.WORKER_QUEUE: {"dispatcher": token, "dispatches": 1, "dispatched_at": now - LONG_AGO},
        State.RUNNING: {"owner": token, "lease_until": now - LONG_AGO},
        State.RETRYING: {"attempt": 1, "attempts": [{"number": 1}], "dispatches": 1},
    }
    due, planted = now - LONG_AGO, {}
    documents = store.mongo.collection("events")
    for state, fields in living.items():
        for corruption in corruptions(EVENTS, whole=whole):
            due -= timedelta(milliseconds=1)
            made = event(due, schedule_id)
            planted[made.id] = state, corruption
            store.events.insert([made], now, "made")
            documents.update_one({"_id": made.id}, {"$set": {"state": state.value} | fields})
            if not sound:
                documents.update_one({"_id": made.id}, corruption.update())
    return planted


def plant_messages(store: Store, now: datetime, url: str, *, whole: bool = True) -> dict[str, Corruption]:
    """Overdue messages, one for each row, by their events' ids."""
    documents, planted = store.mongo.collection("events"), {}
    for number, corruption in enumerate(corruptions(MESSAGES, whole=whole)):
        made = message(now - 10 * SECOND, f"bad-{number}", url=url)
        planted[made.id] = corruption
        store.messages.insert(made, now)
        documents.update_one({"_id": made.id}, corruption.update())
    return planted


def plant_destinations(store: Store, now: datetime, url: str, *, whole: bool = True) -> dict[str, Corruption]:
    """Destinations, one for each row, by name."""
    documents, planted = store.mongo.collection("destinations"), dict[str, Corruption]()
    for number, corruption in enumerate(corruptions(DESTINATIONS, whole=whole)):
        made = Destination(id=WholeId(f"bad-{number}"), url=url, created_at=now, updated_at=now)
        planted[made.id] = corruption
        store.destinations.insert(made)
        documents.update_one({"_id": made.id}, corruption.update())
    return planted


def plant_pages(store: Store, now: datetime, schedule_id: str, *, sound: bool = False) -> list[str]:
    """Abandoned pages of the outbox, one for each row, of an overdue event each; returns their ids."""
    pages, ids = store.mongo.collection("outbox"), []
    for number, corruption in enumerate(corruptions(PAGES)):
        made = event(now - LONG_AGO - number * SECOND, schedule_id)
        ids.append(made.id)
        store.events.insert([made], now, "made")
        due = store.outbox.due(now - LONG_AGO, limit=1)
        token, _ = store.outbox.take(due, now, now - LONG_AGO, lease_seconds=-5)
        if not sound:
            pages.update_one({"_id": token}, corruption.update())
    return ids


def plant_nodes(store: Store, *, sound: bool = False) -> Document:
    """Processes' reports, one for each row, and a sound one, which is returned."""
    store.processes.report("beat", name="healthy")
    nodes = store.mongo.collection("nodes")
    healthy = nodes.find_one({"name": "healthy"})
    assert healthy is not None
    for number, corruption in enumerate(corruptions(NODES)):
        nodes.insert_one(healthy | {"_id": f"{'sound' if sound else 'bad'}-{number}"})
        if not sound:
            nodes.update_one({"_id": f"bad-{number}"}, corruption.update())
    return healthy

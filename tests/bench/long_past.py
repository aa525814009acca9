"""A deployment with a long past: schedules of everyday rules, and millions of events of which some failed.

Everything is made from numbers, so that the same sizes make the same data.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from pymongo.write_concern import WriteConcern

from scheduler_app.clock import clock, monotonic
from scheduler_app.config import Settings
from scheduler_app.domain.destination import Destination
from scheduler_app.domain.event import scheduled
from scheduler_app.domain.ids import WholeId, event_id
from scheduler_app.domain.resource_fields import NOT_GIVEN
from scheduler_app.domain.schedule import Schedule
from scheduler_app.domain.states import State
from scheduler_app.store import STORE_FAULTS, Store
from scheduler_app.store.events.outcomes import PastEvent, PastEvents
from scheduler_app.store.index_builds import ensure_indexes
from scheduler_app.store.mongo import Document
from scheduler_app.store.schedules.last_runs import RunResult
from tests.builders import message, schedule

SECOND = timedelta(seconds=1)
#: Each schedule has a past event an hour, but this one, which has one each second.
BUSY = "s0"
BUSY_SHARE = 100
RULES = 500
RECEIVERS = 20
DESTINATIONS = 25
MESSAGES = 2_000
#: Nothing falls due while pages are measured.
SOONEST, SPREAD_HOURS = timedelta(hours=3), 20
FRESH = timedelta(hours=2)
A_BATCH = 10_000
INDEXES_SECONDS = 1_800
THREADS = 2
NAMES = ("Invoice run", "Dunning letters", "Stock levels", "Price feed", "Search index", "Certificate expiry")
TAGS = ("billing", "mail", "shop", "ops", "finance")
#: Why events failed for good: the answer, or the error without one.
FAILURES: tuple[tuple[int | None, str | None], ...] = (
    (500, None),
    (503, None),
    (404, None),
    (None, "timed out: no answer within 10 s"),
    (None, "could not connect: Connection refused"),
)

_ENDS = {State.COMPLETED: "succeeded", State.ERROR: "failed: attempts are spent"}


def plant(store: Store, settings: Settings, *, schedules: int, events: int) -> None:
    """Fills an empty database. The indexes of the events are made at the end, in a third of the time."""
    now = clock.now()
    _plant_destinations(store, now)
    made = _plant_schedules(store, now, schedules)
    templates = _templates(store, made[1], now)
    collection = store.mongo.collection("events")
    collection.drop_indexes()
    unsafe = collection.with_options(write_concern=WriteConcern(w=1, j=False))
    latest = now.replace(microsecond=0) - SECOND

    def write(start: int) -> None:
        numbers = range(start, min(start + A_BATCH, events))
        unsafe.insert_many(_documents(templates, numbers, latest, schedules), ordered=False)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(write, range(0, events, A_BATCH)))
    _make_indexes(store, settings)
    made_messages = [
        message(now + SOONEST + number * SECOND, f"m{number}", event_name=f"order.{number % 7}")
        for number in range(MESSAGES)
    ]
    store.messages.insert_many(made_messages, now)


def is_planted(store: Store, *, schedules: int, events: int) -> bool:
    """Whether the database has this already, and nothing of it falls due for a while."""
    one = store.mongo.collection("schedules").find_one({"_id": BUSY}, {"updated_at": 1})
    counts = [store.mongo.collection(each).estimated_document_count() for each in ("schedules", "events")]
    if one is None or counts != [schedules, events + MESSAGES]:
        return False
    return bool(clock.now() - one["updated_at"] < FRESH)


def _make_indexes(store: Store, settings: Settings) -> None:
    """mongod goes on when a client no longer waits for it, and the next request joins in."""
    until = monotonic() + INDEXES_SECONDS
    while True:
        try:
            ensure_indexes(
                store.mongo,
                retention_days=settings.retention_days,
                message_retention_days=settings.message_retention_days,
            )
            return
        except STORE_FAULTS:
            if monotonic() > until:
                raise


def _plant_destinations(store: Store, now: datetime) -> None:
    for number in range(DESTINATIONS):
        url = f"http://127.0.0.1:9/{number}"
        made = Destination(id=WholeId(f"d{number}"), url=url, concurrency=5, created_at=now, updated_at=now)
        store.destinations.insert(made)


def _plant_schedules(store: Store, now: datetime, count: int) -> list[Schedule]:
    """The same few hundred rules again and again: to read a rule costs more than to store a schedule."""
    of_rules = [schedule(now, f"r{number}", **_fields(number, now)) for number in range(RULES)]
    made = [
        replace(
            of_rules[number % RULES],
            id=f"s{number}",
            name=f"{NAMES[number % len(NAMES)]} {number}",
            created_at=now - timedelta(seconds=count - number),
        )
        for number in range(count)
    ]
    for start in range(0, count, 1_000):
        store.schedules.insert_many(made[start : start + 1_000])
    runs = [
        RunResult(each.id, now - SECOND, State.ERROR if number % 40 == 7 else State.COMPLETED, "", now)
        for number, each in enumerate(made)
    ]
    for start in range(0, count, 1_000):
        store.last_runs.write(runs[start : start + 1_000])
    return made


def _fields(number: int, now: datetime) -> dict[str, Any]:
    at = now + SOONEST + timedelta(hours=SPREAD_HOURS) * (number / RULES)
    fields: dict[str, Any] = {
        "cron": f"{at.minute} {at.hour} * * *",
        "tags": (TAGS[number % len(TAGS)], "all"),
    }
    if number % 10 == 0:
        return fields | {"url": NOT_GIVEN, "destination": f"d{number // 10 % DESTINATIONS}"}
    return fields | {"url": f"http://receiver{number % RECEIVERS}.example/hook"}


def _templates(store: Store, owner: Schedule, now: datetime) -> list[Document]:
    """Events as the product stores them: one that succeeded, one that was tried again, some dead letters."""
    fine = _attempt(1, now, 200, None)
    ended = [
        (State.COMPLETED, [fine]),
        (State.COMPLETED, [_attempt(1, now, 503, None), _attempt(2, now, 200, None)]),
    ]
    ended += [(State.ERROR, [_attempt(each, now, *why) for each in range(1, 5)]) for why in FAILURES]
    past = [
        PastEvent(
            scheduled(owner.id, 1, now - (number + 1) * timedelta(days=400)),
            state,
            now,
            f"Attempt {len(attempts)} {_ENDS[state]}",
            attempts,
        )
        for number, (state, attempts) in enumerate(ended)
    ]
    PastEvents(store.mongo).insert(past)
    events = store.mongo.collection("events")
    found = [events.find_one_and_delete({"_id": each.event.id}) for each in past]
    return [each for each in found if each is not None]


def _attempt(number: int, at: datetime, status: int | None, error: str | None) -> dict[str, Any]:
    made: dict[str, Any] = {
        "number": number,
        "started_at": at,
        "duration_ms": 40.0 + number,
        "lag_ms": 3.0 + number,
        "worker": "worker1@host",
        "status_code": status,
    }
    return made | ({"snippet": '{"ok": true}'} if error is None else {"error": error})


def _documents(
    templates: Sequence[Document], numbers: range, latest: datetime, schedules: int
) -> Iterator[Document]:
    for number in numbers:
        if number % BUSY_SHARE == 0:
            owner, run_time = BUSY, latest - number // BUSY_SHARE * SECOND
        else:
            turn, place = divmod(number, schedules)
            owner = f"s{place}" if place else "s1"
            milliseconds = 3_600_000 * turn + 3_600_000 * place // schedules
            run_time = latest - timedelta(milliseconds=milliseconds + 500)
        chosen = templates[0]
        if number % 50 == 7:
            chosen = templates[2 + number // 50 % len(FAILURES)]
        elif number % 20 == 3:
            chosen = templates[1]
        yield {
            **chosen,
            "_id": event_id(owner, 1, run_time),
            "schedule_id": owner,
            "origin": f"http://receiver{number // 50 % RECEIVERS}.example:80",
            "run_time": run_time,
            "created_at": run_time,
            "archived_at": run_time + SECOND,
        }

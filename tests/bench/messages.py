"""Messages beside schedules, in one run: what they cost from creation to record, and what waiting ones cost
everybody else.

`once`: schedules with a `run_at`, and as many messages, created in bulk through the API for one instant.
`occurrences`: the next occurrence of each of as many hourly schedules, from its expansion by a beat to its
record; and as many messages, from their creation to their record.
`delivery`: events of occurrences put into the store, so that beats have nothing to expand.
`waiting`: a tick, a creation, a page of the list and a cancellation, with 1,000 and with `--waiting` of them.
"""

import argparse
import json
import statistics
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import requests

from scheduler_app.assembly import assemble
from scheduler_app.beat.duties import duties
from scheduler_app.beat.scheduler import Tick
from scheduler_app.broker.app import make_app
from scheduler_app.clock import clock, monotonic
from scheduler_app.domain.http_action import RequestBody
from scheduler_app.domain.schedule import Schedule
from scheduler_app.store.events.messages import to_message_document
from scheduler_app.store.schedules.documents import to_schedule_document
from tests.bench.arrivals import judged
from tests.bench.ground import CORES, Ground, ground, sleep_until, wait_for
from tests.bench.load import Asked, drive
from tests.bench.planted import EVENTS_AT_ONCE, events_at, insert, make_schedules, soon
from tests.bench.report import Report, Row
from tests.builders import message, schedule

A_REQUEST = 1_000
CLIENTS = 2
REPEATS = 200
TIMEFRAME_MINUTES = 1
PAYLOAD = {"order": 4711, "customer": "c-1", "lines": [1, 2, 3]}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--waiting", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=3, help="0: what waits alone")
    parser.add_argument("--workers", type=int, default=CORES)


def run(options: argparse.Namespace) -> Report:
    rows: list[Row] = []
    with ground(
        apis=1, beats=1, workers=options.workers, PREQUEUER_EVENT_TIMEFRAME_MINUTES=str(TIMEFRAME_MINUTES)
    ) as made:
        schedules = make_schedules(made, body=RequestBody.from_json(PAYLOAD))
        for number in range(options.runs):
            rows.append(
                {
                    "occurrences": _occurrences(made, options.events, number),
                    "delivery": _delivery(made, schedules, options.events),
                    "messages": _messages(made, options.events, number),
                    "once_messages": _once(made, "messages", options.events, number),
                    "once": _once(made, "schedules", options.events, number),
                }
            )
        waiting = {count: _waiting(made, count) for count in sorted({1_000, options.waiting})}
    first, last = waiting[min(waiting)], waiting[max(waiting)]

    def ratio(of: str, to: str, path: Callable[[Row], float]) -> float:
        return round(statistics.median(path(row[of]) / path(row[to]) for row in rows), 2)

    def mongod(row: Row) -> float:
        return float(row["cpu_us_per_event"]["mongod"])

    ratios = {
        "throughput_ratio": ("messages", "delivery", lambda row: row["throughput_per_s"]),
        "mongod_ratio_to_occurrences": ("messages", "occurrences", mongod),
        "mongod_ratio_to_delivery": ("messages", "delivery", mongod),
        "mongod_ratio_to_once": ("once_messages", "once", mongod),
        "creation_ratio": ("once_messages", "once", lambda row: row["created_per_s"]),
    }
    summary = {
        **({name: ratio(*what) for name, what in ratios.items()} if rows else {}),
        "waiting_ratios": {name: round(last[name] / first[name], 2) for name in first},
        "waiting": {str(count): row for count, row in waiting.items()},
    }
    parts = [part for row in rows for part in row.values()]
    good = all(part["arrived"] == part["events"] and not part["twice"] for part in parts)
    return Report(rows, summary, good)


def _occurrences(made: Ground, count: int, run: int) -> Row:
    """Hourly schedules are there before anything is measured: making them is no cost of an occurrence."""
    due = soon(TIMEFRAME_MINUTES * 60 + 10, count)
    hourly = schedule(
        *(clock.now(), "h"),
        url=made.url,
        method="POST",
        body=RequestBody.from_json(PAYLOAD),
        rrule=f"DTSTART:{due:%Y%m%dT%H%M%SZ}\nRRULE:FREQ=HOURLY",
    )
    template = to_schedule_document(hourly, made.store.secret_box)
    for start in range(0, count, EVENTS_AT_ONCE):
        numbers = range(start, min(count, start + EVENTS_AT_ONCE))
        made.store.mongo.collection("schedules").insert_many(
            [{**template, "_id": f"h{run}-{number}", "name": f"hourly {run}-{number}"} for number in numbers],
            ordered=False,
        )
    made.arrivals()
    made.costs.start()
    sleep_until(due)
    wait_for(made.idle, 180, "all to complete")
    return {**judged(made.arrivals(), count), **made.costs.since_start(count)}


def _delivery(made: Ground, schedules: list[Schedule], count: int) -> Row:
    due = soon(8, count)
    return _from_creation(made, lambda: insert(made, events_at(schedules, count, lambda _: due)), count)


def _messages(made: Ground, count: int, run: int) -> Row:
    due, body = soon(8, count), RequestBody.from_json(PAYLOAD)

    def plant() -> None:
        for start in range(0, count, EVENTS_AT_ONCE):
            numbers = range(start, min(count, start + EVENTS_AT_ONCE))
            some = [
                message(due, f"b{run}-{each}", url=made.url, event_name="bench", body=body)
                for each in numbers
            ]
            made.store.messages.insert_many(some, clock.now())

    return _from_creation(made, plant, count)


def _from_creation(made: Ground, create: Callable[[], None], count: int) -> Row:
    made.arrivals()
    made.costs.start()
    create()
    wait_for(made.idle, 180, "all to complete")
    return {**judged(made.arrivals(), count), **made.costs.since_start(count)}


def _once(made: Ground, kind: str, count: int, run: int) -> Row:
    """`count` deliveries at one instant, asked for in bulk."""
    due = soon(10 + count / 1_000, count)
    at = due.isoformat()
    common = {"callback_url": made.url, "method": "POST"}

    def item(number: int) -> Row:
        if kind == "messages":
            return {**common, "event_name": "bench", "payload": PAYLOAD, "scheduled_at": at}
        return {**common, "name": f"once {run}-{number}", "json": PAYLOAD, "run_at": at}

    bodies = [
        json.dumps({kind: [item(first + n) for n in range(A_REQUEST)]})
        for first in range(0, count, A_REQUEST)
    ]
    made.arrivals()
    made.costs.start()
    driven = drive([Asked("POST", f"{made.stack.url}/api/{kind}/bulk", body) for body in bodies], CLIENTS)
    sleep_until(due)
    wait_for(lambda: made.expanded(due) and made.idle(), 180, "all to complete")
    return {
        "created_per_s": round(count / driven.seconds),
        **judged(made.arrivals(), count),
        **made.costs.since_start(count),
    }


def _waiting(made: Ground, count: int) -> Row:
    """How many milliseconds each step takes while `count` messages wait."""
    plant_waiting(made, count)
    url, session = f"{made.stack.url}/api/messages", requests.Session()
    item: dict[str, Any] = {"callback_url": made.url, "scheduled_at": "2080-01-01T00:00:00Z"}
    tick = _ticker(made)
    made_ids: list[str] = []

    def create() -> None:
        made_ids.append(session.post(url, json=item, timeout=20).json()["id"])

    def cancel() -> None:
        assert session.post(f"{url}/{made_ids.pop()}/cancel", timeout=20).ok

    def list_page() -> None:
        assert session.get(f"{url}?event_name=waiting&limit=50", timeout=20).ok

    steps = {"tick_ms": tick, "create_ms": create, "list_ms": list_page, "cancel_ms": cancel}
    return {name: _middle_ms(step) for name, step in steps.items()}


def plant_waiting(made: Ground, count: int) -> None:
    """Puts messages into the store until `count` of them wait. They are due in ten years."""
    events = made.store.mongo.collection("events")
    there = events.count_documents({"event_name": "waiting", "kind": "message"}, hint="message_names_v1")
    far, box = clock.now() + timedelta(days=3_650), made.store.secret_box
    body = RequestBody.from_json(PAYLOAD)
    for start in range(there, count, EVENTS_AT_ONCE):
        numbers = range(start, min(count, start + EVENTS_AT_ONCE))
        template = to_message_document(
            message(far, "w", url=made.url, event_name="waiting", body=body), clock.now(), "made", box
        )
        events.insert_many(
            [
                template
                | {
                    "_id": f"msg_w{number}",
                    "run_time": far + timedelta(seconds=number),
                    "due_at": far + timedelta(seconds=number),
                }
                for number in numbers
            ],
            ordered=False,
        )

    # What the filling left to write is no cost of what is measured then.
    made.store.mongo.client.admin.command("fsync")


def _ticker(made: Ground) -> Callable[[], object]:
    each_tick = [duty for duty in duties(assemble(made.settings, make_app(made.settings))) if not duty.period]
    return Tick(each_tick, now=clock.now, stopping=lambda: False, unavailable=()).run


def _middle_ms(step: Callable[[], object]) -> float:
    for _ in range(5):
        step()
    took = []
    for _ in range(REPEATS):
        began = monotonic()
        step()
        took.append((monotonic() - began) * 1_000)
    return round(statistics.median(took), 2)

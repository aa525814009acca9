"""N occurrences of one second become events: how long that takes."""

import argparse

from scheduler_app.clock import clock, monotonic
from scheduler_app.expansion import Expansion
from scheduler_app.store.schedule_documents import to_document
from tests.bench.ground import Ground, ground
from tests.bench.report import Report, Row, repeated
from tests.builders import schedule

BATCH = 5_000


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=3)


def run(options: argparse.Namespace) -> Report:
    with ground() as made:
        return repeated(
            options.runs,
            lambda: one(made, options.events),
            "seconds",
            lambda row: row["made"] == row["events"],
        )


def one(made: Ground, count: int) -> Row:
    """As many minutely schedules as events, all with the same next instant, expanded by one beat's pages."""
    collection = made.store.mongo.collection("schedules")
    collection.delete_many({})
    made.store.mongo.collection("events").delete_many({})
    now = clock.now()
    template = to_document(schedule(now, rrule="FREQ=HOURLY"), made.store.envelope)
    for first in range(0, count, BATCH):
        numbers = range(first, min(first + BATCH, count))
        collection.insert_many([{**template, "_id": f"e{number}"} for number in numbers], ordered=False)
    expansion = Expansion(made.store, timeframe_seconds=made.settings.timeframe_seconds)
    began = monotonic()
    events = 0
    while True:
        page = expansion.expand_page(now)
        events += len(page.events)
        if not page.full:
            break
    took = monotonic() - began
    return {
        "events": count,
        "made": events,
        "seconds": round(took, 2),
        "throughput_per_s": round(count / took),
    }

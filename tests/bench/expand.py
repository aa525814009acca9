"""N occurrences of one second become events: how long that takes."""

import argparse
import json
from typing import Any

from scheduler_app.clock import clock, monotonic
from scheduler_app.expansion import Expansion
from scheduler_app.store.schedule_documents import to_document
from tests.bench.burst import show
from tests.bench.ground import Ground, ground
from tests.builders import schedule

BATCH = 5_000


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="expand", description=__doc__)
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args(argv)
    with ground(workers=0, beats=0) as made:
        runs = [one(made, options.events) for _ in range(options.runs)]
    show("expand", runs)
    middle = sorted(runs, key=lambda run: run["seconds"])[len(runs) // 2]
    print(json.dumps({"bench": "expand", **middle, "runs": len(runs)}))
    return 0 if all(run["made"] == run["events"] for run in runs) else 1


def one(made: Ground, count: int) -> dict[str, Any]:
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

"""S schedules exist and nothing is due: what a tick of beat costs, and what memory beat and a worker take."""

import argparse
import statistics
from datetime import timedelta

from scheduler_app.celery_app import make_app
from scheduler_app.clock import clock, monotonic
from scheduler_app.dispatch import Dispatch
from scheduler_app.expansion import Expansion
from scheduler_app.recovery import Recovery
from scheduler_app.store.schedule_documents import to_document
from scheduler_app.tasks import CeleryPublisher, deliver
from tests.bench.ground import Ground, ground
from tests.bench.report import Report, Row
from tests.builders import schedule

BATCH = 10_000
WARM_UP = 20


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--schedules", type=int, default=100_000)
    parser.add_argument("--ticks", type=int, default=200)


def run(options: argparse.Namespace) -> Report:
    rows: list[Row] = []
    with ground() as made:
        for count in sorted({1_000, options.schedules}):
            fill(made, count)
            rows.append({"schedules": count, **measure(made, options.ticks)})
        started = {kind: round(made.add(kind), 1) for kind in ("beat", "worker")}
        rows[-1] |= {"ready_after_s": started, "memory_mib": made.costs.memory()}
    ratio = round(rows[-1]["p50_ms"] / rows[0]["p50_ms"], 2)
    return Report(rows, {**rows[-1], "ratio_to_1000": ratio}, heads=[f"{row['schedules']:,}" for row in rows])


def fill(made: Ground, count: int) -> None:
    """Daily schedules whose next occurrence is hours away, up to `count` of them."""
    schedules = made.store.mongo.collection("schedules")
    now = clock.now()
    start = (now + timedelta(hours=6)).strftime("%Y%m%dT%H%M%SZ")
    template = to_document(schedule(now, rrule=f"DTSTART:{start}\nRRULE:FREQ=DAILY"), made.store.envelope)
    there = schedules.estimated_document_count()
    for first in range(there, count, BATCH):
        numbers = range(first, min(first + BATCH, count))
        schedules.insert_many([{**template, "_id": f"t{number}"} for number in numbers], ordered=False)


def measure(made: Ground, ticks: int) -> Row:
    """Milliseconds of a whole tick's duties, as beat runs them one after the other."""
    app = make_app(made.settings)
    publisher = CeleryPublisher(app, app.task(deliver.run, name=deliver.name))
    expansion = Expansion(made.store, timeframe_seconds=made.settings.timeframe_seconds)
    dispatch = Dispatch(made.store, publisher, horizon_seconds=made.settings.horizon_seconds)
    recovery = Recovery(made.store)

    def tick() -> float:
        began = monotonic()
        expansion.finish_ended(clock.now())
        expansion.expand_page(clock.now())
        dispatch.dispatch_page(clock.now())
        recovery.recover_workers(clock.now())
        recovery.recover_messages(clock.now(), queue_length=publisher.queue_length())
        return (monotonic() - began) * 1000

    for _ in range(WARM_UP):
        tick()
    took = sorted(tick() for _ in range(ticks))
    return {"p50_ms": round(statistics.median(took), 2), "p99_ms": round(took[int(ticks * 0.99)], 2)}

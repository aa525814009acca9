"""S schedules exist: what a tick of beat costs when nothing is due, and when some are.

At the end a beat and a worker are started, for the time until they are ready and the memory they take.
"""

import argparse
import statistics
from collections.abc import Callable
from datetime import timedelta

from scheduler_app.assembly import assemble
from scheduler_app.beat.duties import duties
from scheduler_app.beat.scheduler import Tick
from scheduler_app.broker.app import make_app
from scheduler_app.clock import clock, monotonic
from scheduler_app.store.schedules.documents import to_schedule_document
from tests.bench.ground import Ground, ground
from tests.bench.report import Report, Row
from tests.builders import schedule

BATCH = 10_000
WARM_UP = 20
BUSY_TICKS = 5


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--schedules", type=int, default=100_000)
    parser.add_argument("--ticks", type=int, default=200)
    parser.add_argument("--due", type=float, default=0.01, help="the share that is due in the busy ticks")


def run(options: argparse.Namespace) -> Report:
    rows: list[Row] = []
    with ground() as made:
        for count in sorted({1_000, options.schedules}):
            fill(made, count)
            rows.append({"schedules": count, **measure(made, options.ticks)})
        due = round(options.schedules * options.due)
        if due:
            rows[-1]["busy"] = {"due": due, "seconds": _busy(made, due)}
        started = {kind: round(made.add(kind), 1) for kind in ("beat", "worker")}
        rows[-1] |= {"ready_after_s": started, "memory_mib": made.costs.memory()}
    ratio = round(rows[-1]["p50_ms"] / rows[0]["p50_ms"], 2)
    heads = [f"{row['schedules']:,}" for row in rows]
    return Report(rows, {**rows[-1], "ratio_to_1000": ratio}, heads=heads)


def fill(made: Ground, count: int) -> None:
    """Daily schedules whose next occurrence is hours away, up to `count` of them."""
    start = (clock.now() + timedelta(hours=6)).strftime("%Y%m%dT%H%M%SZ")
    there = made.store.mongo.collection("schedules").estimated_document_count()
    _insert(made, f"DTSTART:{start}\nRRULE:FREQ=DAILY", "t", range(there, count))


def measure(made: Ground, ticks: int) -> Row:
    """Milliseconds of a whole tick."""
    tick = _ticker(made)
    for _ in range(WARM_UP):
        tick()
    took = sorted(tick() * 1000 for _ in range(ticks))
    return {"p50_ms": round(statistics.median(took), 2), "p99_ms": round(took[int(ticks * 0.99)], 2)}


def _busy(made: Ground, due: int) -> float:
    """Median seconds of a tick in which so many schedules are expanded and dispatched."""
    tick, took = _ticker(made), []
    for number in range(BUSY_TICKS):
        start = (clock.now() + timedelta(seconds=3)).strftime("%Y%m%dT%H%M%SZ")
        _insert(made, f"DTSTART:{start}\nRRULE:FREQ=DAILY", f"due{number}-", range(due))
        took.append(tick())
    return round(statistics.median(took), 3)


def _insert(made: Ground, rule: str, prefix: str, numbers: range) -> None:
    schedules = made.store.mongo.collection("schedules")
    template = to_schedule_document(schedule(clock.now(), rrule=rule), made.store.secret_box)
    for first in range(0, len(numbers), BATCH):
        some = numbers[first : first + BATCH]
        schedules.insert_many([{**template, "_id": f"{prefix}{number}"} for number in some], ordered=False)


def _ticker(made: Ground) -> Callable[[], float]:
    """Does the duties of every tick, one after the other; returns the seconds that they took."""
    each_tick = [duty for duty in duties(assemble(made.settings, make_app(made.settings))) if not duty.period]
    tick = Tick(each_tick, now=clock.now, stopping=lambda: False, unavailable=())

    def measured() -> float:
        began = monotonic()
        tick.run()
        return monotonic() - began

    return measured

"""Schedules of one instant each (`run_at`), at different milliseconds of some seconds: nothing is shared.

Each is expanded, dispatched, claimed, sent and recorded. The second pass has them within fewer seconds than
it can keep up with: its throughput is what singles can do, the first one's lag is how late they come.
"""

import argparse
from datetime import timedelta

from tests.bench import plot
from tests.bench.arrivals import Arrival, complete, judged
from tests.bench.ground import CORES, Ground, ground, sleep_until, wait_for
from tests.bench.planted import soon
from tests.bench.report import Report, Row
from tests.builders import schedule

SCHEDULES_AT_ONCE = 5_000
#: For inserting the schedules and expanding them.
LEAD_SECONDS = 12


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, nargs="+", default=[10, 1], help="one pass for each")
    parser.add_argument("--workers", type=int, default=CORES)
    parser.add_argument("--plot", metavar="FILE.svg", help="lag over time of the first pass")


def run(options: argparse.Namespace) -> Report:
    with ground(workers=options.workers, beats=1) as made:
        passes = [
            one(made, number, options.events, seconds) for number, seconds in enumerate(options.seconds)
        ]
    rows = [row for row, _ in passes]
    if options.plot:
        plot.lag_over_time(options.plot, passes[0][1])
    best = max(row["throughput_per_s"] for row in rows)
    heads = [f"within {seconds:g} s" for seconds in options.seconds]
    return Report(rows, {**rows[0], "throughput_per_s": best}, all(map(complete, rows)), heads)


def one(made: Ground, number: int, count: int, seconds: float) -> tuple[Row, list[Arrival]]:
    before = made.completed()
    # Twice: they are schedules first, and then events.
    first = soon(LEAD_SECONDS, count * 2)
    made.costs.start()
    for start in range(0, count, SCHEDULES_AT_ONCE):
        made.store.schedules.insert_many(
            [
                schedule(
                    first - timedelta(minutes=1),
                    f"single{number}-{each}",
                    url=made.url,
                    method="POST",
                    run_at=first + timedelta(milliseconds=int(each * seconds * 1000 / count)),
                )
                for each in range(start, min(start + SCHEDULES_AT_ONCE, count))
            ]
        )
    made.arrivals()
    last = first + timedelta(seconds=seconds)
    sleep_until(last)
    wait_for(lambda: made.expanded(last) and made.idle(), 120, "all to complete")
    costs = made.costs.since_start(count)
    arrivals = made.arrivals()
    return {**judged(arrivals, count), "completed": made.completed() - before, **costs}, arrivals

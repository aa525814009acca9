"""Receivers that take 200 ms, due at one instant with others that answer at once: who holds up whom?"""

import argparse

from tests.bench import plot
from tests.bench.arrivals import complete
from tests.bench.ground import CORES, ground
from tests.bench.planted import delivered, events_at, make_schedules, soon
from tests.bench.report import Report, percentiles

LEAD_SECONDS = 8


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--events", type=int, default=4_000)
    parser.add_argument("--slow", type=float, default=0.5, help="the share of slow receivers, 0 to 1")
    parser.add_argument("--wait-ms", type=int, default=200, help="how long they take")
    parser.add_argument("--workers", type=int, default=CORES)
    parser.add_argument("--plot", metavar="FILE.svg", help="lag over time")


def run(options: argparse.Namespace) -> Report:
    with ground(workers=options.workers, beats=1) as made:
        slow = make_schedules(made, prefix="slow", path=f"wait/{options.wait_ms}")
        quick = make_schedules(made, prefix="quick")
        due = soon(LEAD_SECONDS, options.events)
        many = round(options.events * options.slow)
        events = events_at(slow, many, lambda number: due) + events_at(
            quick, options.events - many, lambda number: due
        )
        row, arrivals = delivered(made, events, 180)
    if options.plot:
        plot.lag_over_time(options.plot, arrivals)
    for kind in ("slow", "quick"):
        lags = [arrival.lag_ms for arrival in arrivals if arrival.key.startswith(kind)]
        if lags:
            row[f"{kind}_lag_ms"] = percentiles(lags)
    return Report([row], row, complete(row))

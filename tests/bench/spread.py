"""A steady rate of single callbacks, each due at its own millisecond: how late they arrive.

With `--knee` the rate is raised until p99 passes 100 ms; the knee is the last rate that kept below it. With
`--pages` it is measured twice, without and with so many pages open in browsers.
"""

import argparse
from datetime import timedelta

from scheduler_app.domain.schedule import Schedule
from tests.bench import plot
from tests.bench.arrivals import Arrival, complete
from tests.bench.ground import CORES, Ground, ground
from tests.bench.open_pages import OpenPages
from tests.bench.planted import delivered, events_at, make_schedules, soon
from tests.bench.report import Report, Row

LEAD_SECONDS = 8
LIMIT_MS = 100
STEP = 1.5


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rate", type=float, default=100, help="callbacks a second; of --knee the first")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--workers", type=int, default=CORES)
    parser.add_argument("--knee", action="store_true")
    parser.add_argument("--pages", type=int, default=0, help="open pages, compared with none")
    parser.add_argument("--plot", metavar="FILE.svg", help="lag over time")


def run(options: argparse.Namespace) -> Report:
    with ground(workers=options.workers, beats=1, apis=1 if options.pages else 0) as made:
        schedules = make_schedules(made)
        if options.pages:
            return _beside_pages(made, schedules, options)
        if options.knee:
            return _knee(made, schedules, options.rate, options.seconds)
        row, arrivals = one(made, schedules, options.rate, options.seconds)
    if options.plot:
        plot.lag_over_time(options.plot, arrivals)
    return Report([row], row, complete(row))


def _beside_pages(made: Ground, schedules: list[Schedule], options: argparse.Namespace) -> Report:
    """Of both, and how many times as much it is with the pages."""
    alone, _ = one(made, schedules, options.rate, options.seconds)
    pages = OpenPages(made.stack.url, options.pages)
    with pages:
        beside, _ = one(made, schedules, options.rate, options.seconds)
    ratios = {
        f"{name}_ratio": round(beside[of][key] / alone[of][key], 2)
        for name, of, key in (
            ("p50", "lag_ms", "p50"),
            ("p99", "lag_ms", "p99"),
            ("worker", "cpu_us_per_event", "worker"),
            ("mongod", "cpu_us_per_event", "mongod"),
        )
    }
    beside |= {"pages": options.pages, "of_pages": pages.figures(), **ratios}
    return Report([alone, beside], beside, complete(alone) and complete(beside), ["alone", "with pages"])


def _knee(made: Ground, schedules: list[Schedule], rate: float, seconds: float) -> Report:
    """Rising steps, then the rate halfway between the last that was kept and the first that was not; at the
    end half the knee's rate."""
    kept: Row | None = None
    rows: list[Row] = []
    while not rows or rows[-1]["lag_ms"]["p99"] <= LIMIT_MS:
        kept = rows[-1] if rows else None
        rows.append(one(made, schedules, rate * STEP ** len(rows), seconds)[0])
    if kept is None:
        return Report(rows, {**rows[-1], "knee_per_s": 0}, all(map(complete, rows)))
    between, _ = one(made, schedules, (kept["rate_per_s"] + rows[-1]["rate_per_s"]) / 2, seconds)
    knee = between if between["lag_ms"]["p99"] <= LIMIT_MS else kept
    half, _ = one(made, schedules, knee["rate_per_s"] / 2, seconds)
    rows += [between, half]
    summary = {**knee, "knee_per_s": knee["rate_per_s"], "at_half_the_knee_ms": half["lag_ms"]}
    return Report(rows, summary, all(map(complete, rows)))


def one(made: Ground, schedules: list[Schedule], rate: float, seconds: float) -> tuple[Row, list[Arrival]]:
    count = int(rate * seconds)
    first = soon(LEAD_SECONDS, count)
    events = events_at(
        schedules, count, lambda number: first + timedelta(milliseconds=int(number * 1000 / rate))
    )
    row, arrivals = delivered(made, events, 90)
    return {"rate_per_s": round(rate), **row}, arrivals

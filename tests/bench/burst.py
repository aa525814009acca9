"""N callbacks due at one instant: how fast they leave, and how late the last one is.

They are expanded before. With `--beats 2` or `--workers 1` it tells what sharing costs: an event is written
four times (taken, marked, claimed, recorded), and what is written, read or claimed beyond that is waste.
`throughput_per_s` is of arrivals, `recorded_per_s` until MongoDB has all outcomes. What is measured is
prepared: it was stored before its time, and claimed in part. `--overdue` adds bursts that are not: they are
due when the benchmark begins to store them, which counts, too.
`--broker both` makes bursts over Redis and over RabbitMQ in turn, and tells the ratio of each pair;
`--witness` those beside a witness that judges without an end, and without one.
"""

import argparse
import statistics
from collections.abc import Callable

from scheduler_app.clock import clock
from scheduler_app.domain.schedule import Schedule
from tests.bench import ceiling, plot
from tests.bench.arrivals import complete
from tests.bench.ground import CORES, Ground, broker, ground
from tests.bench.planted import delivered, events_at, make_schedules, soon, whole_ms
from tests.bench.report import Report, Row, middle

LEAD_SECONDS = 8


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--workers", type=int, default=CORES)
    parser.add_argument("--beats", type=int, default=1)
    parser.add_argument(
        "--horizon", type=float, default=0, metavar="SECONDS", help="DISPATCH_HORIZON_SECONDS"
    )
    parser.add_argument("--concurrency", type=int, default=100, help="WORKER_CONCURRENCY")
    parser.add_argument("--broker", choices=("redis", "rabbitmq", "both"), default="redis")
    parser.add_argument("--overdue", action="store_true", help="also bursts that nothing was prepared of")
    parser.add_argument("--witness", action="store_true", help="pairs beside a witness and without one")
    parser.add_argument("--plot", metavar="FILE.svg", help="lag over time of the last run")


def run(options: argparse.Namespace) -> Report:
    if options.broker == "both":
        with broker("rabbitmq") as url:
            return _in_turn(options, "redis", "rabbitmq", lambda name: url if name == "rabbitmq" else "")
    with broker(options.broker) as broker_url:
        if options.witness:
            return _in_turn(options, "alone", "watched", lambda name: broker_url)
        rows = _bursts(options, broker_url, options.runs)
        overdue = _bursts(options, broker_url, options.runs, prepared=False) if options.overdue else []
    summary = middle(rows, "throughput_per_s")
    if overdue:
        summary["overdue"] = middle(overdue, "throughput_per_s")
    ways = ("prepared", "overdue") if overdue else ("prepared",)
    heads = [f"{name} {number + 1}" for name in ways for number in range(options.runs)]
    return Report([*rows, *overdue], summary, all(map(complete, [*rows, *overdue])), heads)


def _in_turn(options: argparse.Namespace, one_way: str, other: str, url_of: Callable[[str], str]) -> Report:
    """Pairs, so that what else the machine does meanwhile meets both."""
    rows: dict[str, list[Row]] = {one_way: [], other: []}
    for run in range(options.runs):
        for name in (one_way, other) if run % 2 == 0 else (other, one_way):
            rows[name] += _bursts(options, url_of(name), 1, watched=name == "watched")
    pairs = list(zip(rows[one_way], rows[other], strict=True))
    ratios = [there["throughput_per_s"] / here["throughput_per_s"] for here, there in pairs]
    summary = {
        **{name: middle(found, "throughput_per_s") for name, found in rows.items()},
        f"{other}_to_{one_way}": round(statistics.median(ratios), 2),
        f"{other}_to_{one_way}_each": [round(ratio, 2) for ratio in ratios],
    }
    found = [row for pair in pairs for row in pair]
    return Report(found, summary, all(map(complete, found)), [one_way, other] * options.runs)


def _bursts(
    options: argparse.Namespace, broker_url: str, runs: int, *, prepared: bool = True, watched: bool = False
) -> list[Row]:
    with ground(
        workers=options.workers,
        beats=options.beats,
        broker_url=broker_url,
        DISPATCH_HORIZON_SECONDS=str(options.horizon),
        WORKER_CONCURRENCY=str(options.concurrency),
    ) as made:
        if watched:
            made.processes["witness"] = made.stack.start("witness", "tests.bench.judging").pid
        sink = ceiling.of_sink(made)
        schedules, lead = make_schedules(made), LEAD_SECONDS + options.horizon if prepared else None
        rows = [one(made, schedules, options.events, options.plot, lead) for _ in range(runs)]
    return [row | {"sink": sink} for row in rows]


def one(
    made: Ground,
    schedules: list[Schedule],
    count: int,
    picture: str | None = None,
    lead_seconds: float | None = LEAD_SECONDS,
) -> Row:
    """One burst. The receiver measures the lag, from the instant at which all events are due. That is
    `lead_seconds` after they were stored; with None it is the instant before they are stored."""
    due = whole_ms(clock.now()) if lead_seconds is None else soon(lead_seconds, count)
    row, arrivals = delivered(made, events_at(schedules, count, lambda number: due), 180)
    if picture:
        plot.lag_over_time(picture, arrivals)
    return row

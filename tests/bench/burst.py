"""N callbacks due at one instant: how fast they leave, and how late the last one is.

They are expanded before. With `--beats 2` or `--workers 1` it tells what sharing costs: an event is written
four times (taken, marked, claimed, recorded), and what is written, read or claimed beyond that is waste.
"""

import argparse

from scheduler_app.domain.schedule import Schedule
from tests.bench import ceiling, plot
from tests.bench.arrivals import complete
from tests.bench.ground import CORES, Ground, broker, ground
from tests.bench.planted import delivered, events_at, make_schedules, soon
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
    parser.add_argument("--broker", choices=("redis", "rabbitmq"), default="redis")
    parser.add_argument("--plot", metavar="FILE.svg", help="lag over time of the last run")


def run(options: argparse.Namespace) -> Report:
    lead = LEAD_SECONDS + options.horizon
    with (
        broker(options.broker) as broker_url,
        ground(
            workers=options.workers,
            beats=options.beats,
            broker_url=broker_url,
            DISPATCH_HORIZON_SECONDS=str(options.horizon),
            WORKER_CONCURRENCY=str(options.concurrency),
        ) as made,
    ):
        sink = ceiling.of_sink(made)
        schedules = make_schedules(made)
        rows = [one(made, schedules, options.events, options.plot, lead) for _ in range(options.runs)]
    summary = {**middle(rows, "throughput_per_s"), "sink": sink}
    return Report([row | {"sink": sink} for row in rows], summary, all(map(complete, rows)))


def one(
    made: Ground,
    schedules: list[Schedule],
    count: int,
    picture: str | None = None,
    lead_seconds: float = LEAD_SECONDS,
) -> Row:
    """One burst; lag is taken where the requests arrive, from the second in which all are due."""
    due = soon(lead_seconds, count)
    row, arrivals = delivered(made, events_at(schedules, count, lambda number: due), 180)
    if picture:
        plot.lag_over_time(picture, arrivals)
    return row

"""N callbacks due in one second: how fast they leave, and how late the last one is.

They are spread over the milliseconds of that second's first instant (all due at once), expanded before.
"""

import argparse
import json
import statistics
from collections.abc import Callable
from datetime import datetime, timedelta

from rich.console import Console
from rich.table import Table

from scheduler_app.clock import clock
from scheduler_app.domain.event import Event, scheduled
from scheduler_app.domain.schedule import Schedule
from tests.bench.ground import CORES, Ground, ground, percentiles, wait_for
from tests.builders import schedule

SCHEDULES = 100


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="burst", description=__doc__)
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--workers", type=int, default=CORES)
    options = parser.parse_args(argv)
    with ground(workers=options.workers) as made:
        schedules = make_schedules(made)
        runs = [one(made, schedules, options.events) for _ in range(options.runs)]
    show("burst", runs)
    middle = sorted(runs, key=lambda run: float(str(run["throughput_per_s"])))[len(runs) // 2]
    print(json.dumps({"bench": "burst", **middle, "runs": len(runs)}))
    return 0 if all(run["completed"] == run["events"] and not run["twice"] for run in runs) else 1


def make_schedules(made: Ground) -> list[Schedule]:
    """Schedules that never fire by themselves; the events are made beside them."""
    now = clock.now()
    schedules = [
        schedule(
            now,
            f"bench{number}",
            url=made.url,
            method="POST",
            rrule="DTSTART:20900101T000000Z\nRRULE:FREQ=YEARLY",
        )
        for number in range(SCHEDULES)
    ]
    for each in schedules:
        made.store.schedules.insert(each)
    return schedules


def one(made: Ground, schedules: list[Schedule], count: int) -> dict[str, object]:
    """One burst; lag is taken where the requests arrive, from the second in which all are due."""
    lead = 8 + count / 10_000
    due = (clock.now() + timedelta(seconds=lead)).replace(microsecond=0)
    insert(made, events_at(schedules, count, lambda number: due))
    made.arrivals()
    made.start_counting_cpu()
    wait_for(lambda: made.living() == 0, lead + 120, "all to complete")
    cpu = made.cpu_seconds()
    arrivals = made.arrivals()
    lags = [(arrival.at - due.timestamp()) * 1000 for arrival in arrivals]
    span = max(lags) / 1000
    keys = {arrival.key for arrival in arrivals}
    return {
        "events": count,
        "completed": len(keys),
        "twice": len(arrivals) - len(keys),
        "throughput_per_s": round(count / span),
        "last_ms": round(max(lags)),
        "lag_ms": percentiles(lags),
        "early": sum(lag < 0 for lag in lags),
        "cpu_s": cpu,
    }


def events_at(schedules: list[Schedule], count: int, due: Callable[[int], datetime]) -> list[Event]:
    """Events with ids of their own: revisions stand for what else would tell them apart."""
    return [
        scheduled(schedules[number % len(schedules)].id, 1 + number // len(schedules), due(number))
        for number in range(count)
    ]


def insert(made: Ground, events: list[Event]) -> None:
    for start in range(0, len(events), 5_000):
        made.store.events.insert(events[start : start + 5_000], clock.now(), "made by the benchmark")


def show(name: str, runs: list[dict[str, object]]) -> None:
    table = Table(title=name)
    for column in runs[0]:
        table.add_column(column, overflow="fold")
    for run in runs:
        table.add_row(*(json.dumps(value) for value in run.values()))
    Console(width=200).print(table)


def median(values: list[float]) -> float:
    return statistics.median(values)

"""Schedules and messages that wait: what each process costs in a second in which nothing is due."""

import argparse
import time

from tests.bench.ground import CORES, Ground, ground
from tests.bench.messages import plant_waiting
from tests.bench.planted import EVENTS_AT_ONCE, make_schedules
from tests.bench.report import Report, Row

#: Processes that have just started do more than later ones.
SETTLE_SECONDS = 10


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--schedules", type=int, default=1_000)
    parser.add_argument("--messages", type=int, default=0)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--workers", type=int, default=CORES)


def run(options: argparse.Namespace) -> Report:
    with ground(workers=options.workers, beats=1, apis=1) as made:
        for start in range(0, options.schedules, EVENTS_AT_ONCE):
            count = min(EVENTS_AT_ONCE, options.schedules - start)
            make_schedules(made, prefix=f"idle{start}-", count=count)
        if options.messages:
            plant_waiting(made, options.messages)
        time.sleep(SETTLE_SECONDS)
        row = measured(made, options.seconds)
    return Report([row], row)


def measured(made: Ground, seconds: int) -> Row:
    before = _commands(made)
    made.costs.start()
    time.sleep(seconds)
    spent: dict[str, float] = made.costs.since_start(seconds)["cpu_s"]
    now = _commands(made)
    a_second = {name: round((count - before.get(name, 0)) / seconds, 2) for name, count in now.items()}
    cpu = {name: round(each * 1000 / seconds, 1) for name, each in spent.items() if name != "sink"}
    return {
        "cpu_ms_a_second": {**cpu, "all": round(sum(cpu.values()), 1)},
        "commands_a_second": {name: count for name, count in sorted(a_second.items()) if count >= 0.1},
    }


def _commands(made: Ground) -> dict[str, int]:
    found = made.store.mongo.client.admin.command("serverStatus")["metrics"]["commands"]
    return {name: each["total"] for name, each in found.items() if isinstance(each, dict) and "total" in each}

"""A steady rate of single callbacks, each due at its own millisecond: how late they arrive."""

import argparse
import json
from datetime import timedelta

from scheduler_app.clock import clock
from tests.bench.burst import events_at, insert, make_schedules, show
from tests.bench.ground import CORES, ground, percentiles, wait_for


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="spread", description=__doc__)
    parser.add_argument("--rate", type=float, default=100, help="callbacks a second")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--workers", type=int, default=CORES)
    options = parser.parse_args(argv)
    count = int(options.rate * options.seconds)
    with ground(workers=options.workers) as made:
        schedules = make_schedules(made)
        first = (clock.now() + timedelta(seconds=10)).replace(microsecond=0)
        step_ms = 1000 / options.rate
        insert(
            made,
            events_at(schedules, count, lambda number: first + timedelta(milliseconds=int(number * step_ms))),
        )
        made.start_counting_cpu()
        wait_for(lambda: made.living() == 0, options.seconds + 60, "all to complete")
        cpu = made.cpu_seconds()
        arrivals = made.arrivals()
    lags = [(arrival.at - arrival.run_time) * 1000 for arrival in arrivals]
    keys = {arrival.key for arrival in arrivals}
    result: dict[str, object] = {
        "events": count,
        "completed": len(keys),
        "twice": len(arrivals) - len(keys),
        "rate_per_s": options.rate,
        "lag_ms": percentiles(lags),
        "early": sum(lag < 0 for lag in lags),
        "cpu_s": cpu,
    }
    show("spread", [result])
    print(json.dumps({"bench": "spread", **result}))
    return 0 if len(keys) == count == len(arrivals) else 1

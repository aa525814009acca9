"""A steady rate with everything included: secondly rules are expanded, dispatched, claimed, sent, recorded.

A short timeframe makes expansion part of any measurement longer than it: schedules are filled up whenever
less than half of it is left. The rules begin and end together, so that what was due and what came can be
compared.
"""

import argparse
import statistics
import time
from datetime import datetime, timedelta

from scheduler_app.clock import clock
from tests.bench import plot
from tests.bench.arrivals import complete, judged
from tests.bench.ground import CORES, Ground, ground
from tests.bench.report import Report, Row
from tests.builders import schedule

INSERT_SECONDS = 10
#: What is filled before the rules begin, events a second.
FILL_RATE = 2_500
SAMPLE_SECONDS = 1.0
#: Late by more than this, a callback is backlog.
LATE = timedelta(seconds=1)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rate", type=int, default=2_500, help="schedules that fire once a second")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--timeframe-minutes", type=int, default=1)
    parser.add_argument("--workers", type=int, default=CORES)
    parser.add_argument("--beats", type=int, default=1)
    parser.add_argument("--plot", metavar="FILE.svg", help="lag over time")


def run(options: argparse.Namespace) -> Report:
    minutes = str(options.timeframe_minutes)
    with ground(
        workers=options.workers, beats=options.beats, PREQUEUER_EVENT_TIMEFRAME_MINUTES=minutes
    ) as made:
        count = options.rate * options.seconds
        filled = options.rate * min(options.seconds, options.timeframe_minutes * 60)
        lead = timedelta(seconds=INSERT_SECONDS + filled / FILL_RATE)
        first = (clock.now() + lead).replace(microsecond=0)
        _schedules(made, options.rate, first, options.seconds)
        made.costs.start()
        before = made.costs.memory()
        backlog = _watch(made, first, options.seconds)
        costs = made.costs.since_start(count)
        arrivals = made.arrivals()
        completed = made.completed()
    judgement = judged(arrivals, count)
    if options.plot:
        plot.lag_over_time(options.plot, arrivals)
    row: Row = {
        "rate_per_s": options.rate,
        "seconds": options.seconds,
        **judgement,
        # The last second's events are due at its beginning: what is faster than the rate is not speed.
        "throughput_per_s": min(options.rate, judgement["throughput_per_s"]),
        "completed": completed,
        "backlog": backlog,
        "memory_at_start_mib": before,
        **costs,
    }
    return Report([row], row, complete(row))


def _schedules(made: Ground, rate: int, first: datetime, seconds: int) -> None:
    start, end = (f"{at:%Y%m%dT%H%M%SZ}" for at in (first, first + timedelta(seconds=seconds - 1)))
    rule = f"DTSTART:{start}\nRRULE:FREQ=SECONDLY;UNTIL={end}"
    now = clock.now()
    made.store.schedules.insert_many(
        [schedule(now, f"sustained{each}", url=made.url, method="POST", rrule=rule) for each in range(rate)]
    )


def _watch(made: Ground, first: datetime, seconds: int) -> Row:
    """Looks at what is late once a second until all is done: in each third of the time, the median number of
    events that were due over a second ago and are not finished."""
    last = first + timedelta(seconds=seconds)
    deadline = last + timedelta(seconds=max(120, seconds))
    thirds: list[list[int]] = [[], [], []]
    while True:
        now = clock.now()
        if now > last and made.expanded(last) and made.idle():
            break
        if now > deadline:
            raise TimeoutError("what is due is not done long after the last was due")
        if first <= now < last:
            thirds[int((now - first) / (last - first) * 3)].append(made.late(now - LATE))
        time.sleep(SAMPLE_SECONDS)
    medians = [round(statistics.median(third)) if third else 0 for third in thirds]
    most = max(map(max, filter(None, thirds)), default=0)
    return {"by_third": medians, "last": medians[2], "max": most, "grew": medians[2] > medians[0]}

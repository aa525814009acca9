"""What a look-up of the next occurrence costs, beside the same look-up by plain dateutil.

For each rule, and for a trigger of each other kind: the median time of `after(now)`, the same for the one
begun yesterday (or as late as its text allows), their ratio, and dateutil's time for one look-up, cut off
where it takes too long. At the end the evaluations a second of an ordinary daily and weekly rule.
"""

import argparse
import signal
import time
from collections.abc import Callable
from datetime import timedelta
from statistics import median
from types import FrameType
from typing import Any

from dateutil.rrule import rrulestr

from scheduler_app.domain.recurrence import AnyRecurrence, Recurrence
from tests.bench.recurrence_cases import CASES, NOW, ORDINARY, TRIGGERS, YESTERDAY, Case, TriggerCase
from tests.bench.report import Report

#: What is shown of each rule, and its heading.
COLUMNS = {"median_us": "µs", "yesterday_us": "begun yesterday, µs", "ratio": "ratio", "dateutil": "dateutil"}


class _TooLong(Exception):
    """dateutil was cut off."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repeat", type=int, default=400, help="look-ups for each median")
    parser.add_argument(
        "--dateutil-seconds", type=int, default=3, help="where dateutil is cut off; 0: leave it out"
    )


def run(options: argparse.Namespace) -> Report:
    cases: list[Case | TriggerCase] = [*CASES, *TRIGGERS]
    rows = [_measure(case, options.repeat, options.dateutil_seconds) for case in cases]
    rates = {case.name: _rate(case) for case in ORDINARY}
    summary = {
        "rules": rows,
        "median_ms_max": max(row["median_us"] for row in rows) / 1000,
        "ratio_max": max(row["ratio"] for row in rows),
        "evaluations_per_s": min(rates.values()),
    }
    columns = [{row["rule"]: row[key] for row in rows} for key in COLUMNS]
    columns[0] |= {f"{name}: evaluations/s": round(rate) for name, rate in rates.items()}
    return Report(columns, summary, heads=tuple(COLUMNS.values()))


def _recurrence(case: Case | TriggerCase, start: str) -> AnyRecurrence:
    """The recurrence as a schedule holds it: with the checkpoint of its last look-up, if it counts."""
    recurrence = case.recurrence(start)
    checkpoint = recurrence.checkpoint(NOW - timedelta(minutes=10))
    if checkpoint is None or not isinstance(recurrence, Recurrence):
        return recurrence
    return Recurrence.parse(recurrence.text, created_at=NOW, checkpoint=checkpoint)


def _measure(case: Case | TriggerCase, repeat: int, dateutil_seconds: int) -> dict[str, Any]:
    old, young = _recurrence(case, case.oldest), _recurrence(case, YESTERDAY)
    # By turns, so that what else the machine does falls on both alike.
    pairs = [(_time(lambda: old.after(NOW)), _time(lambda: young.after(NOW))) for _ in range(repeat)]
    oldest, yesterday = (median(column) * 1e6 for column in zip(*pairs, strict=True))
    return {
        "rule": case.name,
        "median_us": round(oldest, 2),
        "yesterday_us": round(yesterday, 2),
        "ratio": round(oldest / yesterday, 3),
        "dateutil": _dateutil(case, dateutil_seconds),
    }


def _time(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def _dateutil(case: Case | TriggerCase, seconds: int) -> str:
    """dateutil's time for the same look-up, parsing left out; it knows rules only."""
    if seconds == 0 or isinstance(case, TriggerCase):
        return "-"
    rules = rrulestr(case.text.format(start=case.oldest), forceset=True)

    def stop(signum: int, frame: FrameType | None) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        return f"{_time(lambda: rules.after(NOW)) * 1e6:,.0f} us"
    except _TooLong:
        return f"> {seconds} s"
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _rate(case: Case) -> float:
    """Evaluations a second: each from where the one before ended, as a schedule is expanded."""
    recurrence = _recurrence(case, case.oldest)
    best = 0.0
    for _ in range(5):
        instant = NOW
        begin = time.perf_counter()
        for _ in range(4000):
            instant = recurrence.after(instant) or NOW
        best = max(best, 4000 / (time.perf_counter() - begin))
    return best

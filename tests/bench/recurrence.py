"""What a look-up of the next occurrence costs, beside the same look-up by plain dateutil.

For each rule: the median time of `after(now)`, the same for the rule begun yesterday (or as late as its text
allows), their ratio, and dateutil's time for one look-up, cut off where it takes too long. At the end
the evaluations a second of an ordinary daily and weekly rule.
"""

import argparse
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from statistics import median
from types import FrameType
from typing import Any, NamedTuple

from dateutil.rrule import rrulestr

from scheduler_app.domain.recurrence import Recurrence
from tests.bench.report import Report

NOW = datetime(2026, 11, 20, 12, 34, 56, tzinfo=UTC)
YESTERDAY = "20261119"


class Case(NamedTuple):
    """A rule under a name; `{start}` in the text is where the date of DTSTART goes."""

    name: str
    text: str
    oldest: str


CASES = [
    Case("MINUTELY since 2016", "DTSTART:{start}T000000Z\nRRULE:FREQ=MINUTELY", "20160101"),
    Case("SECONDLY since 1970", "DTSTART:{start}T000000Z\nRRULE:FREQ=SECONDLY", "19700101"),
    Case(
        "HOURLY;INTERVAL=7 on weekdays, New York, since 1990",
        "DTSTART;TZID=America/New_York:{start}T000000\nRRULE:FREQ=HOURLY;INTERVAL=7;BYDAY=MO,TU,WE,TH,FR",
        "19900101",
    ),
    Case(
        "DAILY since 1950 with 300 EXDATEs",
        "DTSTART;TZID=Europe/Zurich:{start}T083000\nRRULE:FREQ=DAILY\nEXDATE;TZID=Europe/Zurich:"
        + ",".join(f"2026{month:02d}{day:02d}T083000" for month in range(1, 13) for day in range(1, 26)),
        "19500101",
    ),
    Case("YEARLY;BYDAY=20MO since 1900", "DTSTART:{start}T090000Z\nRRULE:FREQ=YEARLY;BYDAY=20MO", "19000101"),
    Case(
        "three RRULEs since 1980",
        "DTSTART:{start}T090000Z\nRRULE:FREQ=DAILY;BYHOUR=8\nRRULE:FREQ=WEEKLY;BYDAY=SA,SU"
        "\nRRULE:FREQ=MONTHLY;BYMONTHDAY=-1",
        "19800101",
    ),
    Case(
        "MINUTELY;BYHOUR=8,9;COUNT=100000 since 2025, checkpoint",
        "DTSTART:{start}T080000Z\nRRULE:FREQ=MINUTELY;BYHOUR=8,9;COUNT=100000",
        "20250101",
    ),
    Case(
        "DAILY since 1970, New York",
        "DTSTART;TZID=America/New_York:{start}T083000\nRRULE:FREQ=DAILY",
        "19700101",
    ),
    Case(
        "WEEKLY;BYDAY=MO,WE,FR since 1970, New York",
        "DTSTART;TZID=America/New_York:{start}T083000\nRRULE:FREQ=WEEKLY;BYDAY=MO,WE,FR",
        "19700101",
    ),
]
ORDINARY = CASES[-2:]
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
    rows = [_measure(case, options.repeat, options.dateutil_seconds) for case in CASES]
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


def _recurrence(case: Case, start: str) -> Recurrence:
    """The recurrence as a schedule holds it: with the checkpoint of its last look-up, if it counts."""
    recurrence = Recurrence.parse(case.text.format(start=start), created_at=NOW)
    checkpoint = recurrence.checkpoint(NOW - timedelta(minutes=10))
    if checkpoint is None:
        return recurrence
    return Recurrence.parse(recurrence.text, created_at=NOW, checkpoint=checkpoint)


def _measure(case: Case, repeat: int, dateutil_seconds: int) -> dict[str, Any]:
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


def _dateutil(case: Case, seconds: int) -> str:
    """dateutil's time for the same look-up, parsing left out."""
    if seconds == 0:
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

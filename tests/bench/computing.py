"""Small requests of one key beside a flood of previews of another, against them alone, in one run."""

import argparse
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import requests

from tests.bench.ground import ground
from tests.bench.report import Report, Row, percentiles

KEY, GREEDY_KEY = "a-key-of-the-bench-1", "a-key-of-the-bench-2:read"
#: How much longer the small requests may take beside the flood.
MOST_RATIO = 3
#: A preview that takes a good part of a second.
PREVIEW = {"rrule": "DTSTART:20200229T000000Z\nRRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", "limit": 1_000}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--flood", type=int, default=32, help="connections that ask for previews")


def run(options: argparse.Namespace) -> Report:
    with ground(apis=1, API_KEYS=f"{KEY},greedy:{GREEDY_KEY}") as made:
        url = made.stack.url
        _ask(url, 20)  # warm
        rows: dict[str, Row] = {"alone": percentiles(_ask(url, options.questions))}
        with _flood(url, options.flood) as statuses:
            rows["beside"] = percentiles(_ask(url, options.questions))
        rows["beside"]["previews"] = {str(status): count for status, count in statuses.items()}
    ratio = round(rows["beside"]["p50"] / rows["alone"]["p50"], 1)
    summary: Row = {"kinds": rows, "ratio": ratio}
    return Report(list(rows.values()), summary, ratio <= MOST_RATIO, heads=list(rows))


def _ask(url: str, count: int) -> list[float]:
    """How long each of some small requests takes, in milliseconds."""
    taken = []
    with requests.Session() as session:
        session.headers["X-API-Key"] = KEY
        for _ in range(count):
            began = time.monotonic()
            session.get(f"{url}/api/schedules?limit=1", timeout=60).raise_for_status()
            taken.append((time.monotonic() - began) * 1000)
    return taken


@contextmanager
def _flood(url: str, connections: int) -> Iterator[Counter[int]]:
    """Asks for previews without a pause, until it ends."""
    statuses: Counter[int] = Counter()
    over = threading.Event()

    def ask() -> None:
        with requests.Session() as session:
            session.headers["X-API-Key"] = GREEDY_KEY.partition(":")[0]
            while not over.is_set():
                answer = session.post(f"{url}/api/schedules/preview", json=PREVIEW, timeout=60)
                statuses[answer.status_code] += 1
                if "Retry-After" in answer.headers:
                    over.wait(float(answer.headers["Retry-After"]))

    threads = [threading.Thread(target=ask) for _ in range(connections)]
    for thread in threads:
        thread.start()
    time.sleep(2)
    try:
        yield statuses
    finally:
        over.set()
        for thread in threads:
            thread.join()

"""A person triggers a schedule through the API: how long until the receiver is called."""

import argparse
import time

import requests

from tests.bench.ground import CORES, ground, wait_for
from tests.bench.report import Report, percentiles


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--events", type=int, default=200)
    parser.add_argument("--workers", type=int, default=CORES)


def run(options: argparse.Namespace) -> Report:
    """One request after the other; the time runs from before the request to the receiver."""
    with ground(apis=1, beats=1, workers=options.workers) as made, requests.Session() as session:
        schedule_id = made.stack.create(made.url, run_at="2090-01-01T00:00:00Z", method="POST")
        asked: dict[str, float] = {}
        for _ in range(options.events):
            at = time.time()
            answer = session.post(f"{made.stack.url}/api/schedules/{schedule_id}/trigger", timeout=20)
            asked[answer.json()["event_id"]] = at
        wait_for(made.idle, 60, "all to complete")
        arrivals = made.arrivals()
        completed = made.completed()
    lags = [(arrival.at - asked[arrival.key]) * 1000 for arrival in arrivals]
    row = {
        "events": options.events,
        "arrived": len({arrival.key for arrival in arrivals}),
        "twice": len(arrivals) - len({arrival.key for arrival in arrivals}),
        "completed": completed,
        "lag_ms": percentiles(lags),
    }
    return Report([row], row, row["arrived"] == row["completed"] == row["events"] and not row["twice"])

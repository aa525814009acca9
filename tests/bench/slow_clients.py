"""Creates beside 200 clients of each kind of slowness, against creates alone, in one run."""

import argparse
import json
import time
from collections.abc import Callable
from contextlib import nullcontext
from socket import socket

import requests

from tests.bench.create import one_by_one, schedule
from tests.bench.ground import Ground, ground
from tests.bench.report import Report, Row, percentiles
from tests.slow_clients import byte_by_byte, crowd, half_body, half_header, slow_reader

HEALTH_QUESTIONS = 20
#: A mebibyte: more than a socket takes of what nobody reads.
LARGE = "/api/schedules?limit=10"

KINDS: dict[str, Callable[[int], socket] | None] = {
    "alone": None,
    "half_header": half_header,
    "half_body": half_body,
    "byte_a_second": byte_by_byte,
    "slow_readers": slow_reader(LARGE),
}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--slow", type=int, default=200, help="slow clients of each kind")
    parser.add_argument("--creates", type=int, default=1_000)
    parser.add_argument("--clients", type=int, default=8, help="keep-alive connections of the creates")


def run(options: argparse.Namespace) -> Report:
    with ground(apis=1) as made:
        one_by_one(f"{made.stack.url}/api/schedules", options.creates, options.clients)  # warm
        _large_answer(made)
        rows = {kind: _beside(made, connect, options) for kind, connect in KINDS.items()}
    alone = rows["alone"]["throughput_per_s"]
    for row in rows.values():
        row["ratio"] = round(row["throughput_per_s"] / alone, 2)
    summary: Row = {"kinds": rows, "ratio": min(row["ratio"] for row in rows.values())}
    summary["healthz_ms_max"] = max(row["healthz_ms"]["max"] for row in rows.values())
    good = summary["ratio"] >= 0.5 and summary["healthz_ms_max"] < 1000
    return Report(list(rows.values()), summary, good, heads=list(rows))


def _beside(made: Ground, connect: Callable[[int], socket] | None, options: argparse.Namespace) -> Row:
    port = int(made.stack.url.rpartition(":")[2])
    with crowd(connect, port, options.slow) if connect else nullcontext():
        health = percentiles([_healthz_ms(made) for _ in range(HEALTH_QUESTIONS)])
        # What the slow readers asked for has been made by then; they read none of it.
        made.costs.start()
        driven = one_by_one(f"{made.stack.url}/api/schedules", options.creates, options.clients)
        costs = made.costs.since_start(options.creates)
    return {
        "throughput_per_s": driven.per_second,
        "lag_ms": percentiles(driven.latency_ms),
        "statuses": driven.statuses,
        "healthz_ms": health,
        "memory_mib": costs["memory_mib"]["api1"],
    }


def _healthz_ms(made: Ground) -> float:
    began = time.monotonic()
    requests.get(f"{made.stack.url}/healthz", timeout=60).raise_for_status()
    return (time.monotonic() - began) * 1000


def _large_answer(made: Ground) -> None:
    """The newest ten schedules have a body of 100 KB each."""
    large = schedule(0) | {"body": "x" * 100_000}
    del large["json"]
    body = json.dumps({"schedules": [large] * 10})
    headers = {"Content-Type": "application/json"}
    requests.post(f"{made.stack.url}/api/schedules/bulk", data=body, headers=headers, timeout=60)

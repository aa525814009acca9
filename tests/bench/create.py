"""Schedules created through the API: one by one over keep-alive connections, and in bulk.

The API is served as deploy/ has it served. The load generator's own ceiling stands beside: as many of the
same requests to a receiver that answers at once.
"""

import argparse
import json

from tests.bench.ground import Ground, ground
from tests.bench.load import Asked, Driven, drive
from tests.bench.report import Report, Row, middle, percentiles

A_REQUEST = 1_000
BULK_CLIENTS = 2


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--creates", type=int, default=2_000, help="one by one")
    parser.add_argument("--bulk", type=int, default=10_000, help=f"in requests of {A_REQUEST}")
    parser.add_argument("--clients", type=int, default=8, help="keep-alive connections, for one by one")
    parser.add_argument("--runs", type=int, default=3)


def run(options: argparse.Namespace) -> Report:
    with ground(apis=1, beats=1, workers=1) as made:
        ceiling = one_by_one(made.url, options.creates, options.clients)
        rows = [one(made, options.creates, options.bulk, options.clients) for _ in range(options.runs)]
    load = {"ceiling_per_s": ceiling.per_second}
    singly = sorted(row["throughput_per_s"] for row in rows)
    summary = {
        **middle(rows, "bulk_per_s"),
        "throughput_per_s": singly[len(singly) // 2],
        "throughput_per_s_spread": [singly[0], singly[-1]],
        "load": load,
    }
    good = all(row["created"] == row["events"] for row in rows)
    return Report([row | {"load": load} for row in rows], summary, good)


def one(made: Ground, creates: int, bulk: int, clients: int) -> Row:
    schedules = made.store.mongo.collection("schedules")
    before = schedules.count_documents({})
    made.costs.start()
    singly = one_by_one(f"{made.stack.url}/api/schedules", creates, clients)
    costs = made.costs.since_start(creates)
    body = json.dumps({"schedules": [schedule(number) for number in range(A_REQUEST)]})
    order = [Asked("POST", f"{made.stack.url}/api/schedules/bulk", body)] * (bulk // A_REQUEST)
    in_bulk = drive(order, BULK_CLIENTS)
    return {
        "events": creates + len(order) * A_REQUEST,
        "created": schedules.count_documents({}) - before,
        "throughput_per_s": singly.per_second,
        "lag_ms": percentiles(singly.latency_ms),
        "bulk_per_s": round(len(order) * A_REQUEST / in_bulk.seconds),
        "bulk_ms": percentiles(in_bulk.latency_ms),
        **costs,
    }


def one_by_one(url: str, count: int, clients: int) -> Driven:
    return drive([Asked("POST", url, json.dumps(schedule(number))) for number in range(count)], clients)


def schedule(number: int) -> Row:
    """What somebody might really ask for; the times of day go round."""
    hour, minute = number // 60 % 24, number % 60
    return {
        "name": f"Reminder {number}",
        "rrule": f"FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR={hour};BYMINUTE={minute};BYSECOND=0",
        "timezone": "Europe/Zurich",
        "callback_url": f"http://127.0.0.1:9/reminders/{number}",
        "method": "POST",
        "headers": {"X-Team": "billing", "Authorization": "Bearer 0123456789abcdef"},
        "json": {"customer": number, "template": "reminder", "channels": ["mail", "push"]},
        "tags": ["bench", f"team{number % 20}"],
    }

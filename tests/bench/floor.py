"""The least that any program must do for the same guarantees, beside what ours does, by turns.

The floor is a bulk claim (token, lease by mongod's clock), a look at the schedules (an edit may have
withdrawn an event), a libcurl multi POST with the same headers, and a bulk record: no Celery, no layers, no
guard, no metrics. Its documents have the same fields and as many lines of history as ours (checked), in a
collection with the same indexes; writes are w=majority, journaled. As with `burst`, dispatch comes before.
`ratio` is of the times until all is recorded: who sends first and writes later has an earlier last arrival.
"""

import argparse
import json
import statistics
import subprocess
import sys
from dataclasses import replace

from scheduler_app.domain.event import Event
from scheduler_app.domain.schedule import Schedule
from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.store.mongo import Document
from tests.bench import burst, ceiling
from tests.bench.arrivals import complete, judged
from tests.bench.ground import CORES, Ground, ground
from tests.bench.planted import events_at, make_schedules, soon
from tests.bench.report import Report, Row, middle

DATABASE = "floor"
LEAD_SECONDS = 6


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--workers", type=int, default=CORES, help="processes, of ours and of the floor's")
    parser.add_argument("--threads", type=int, default=4, help="of each of the floor's processes")
    parser.add_argument("--batch", type=int, default=100, help="events of each of the floor's writes")


def run(options: argparse.Namespace) -> Report:
    ours: list[Row] = []
    floor: list[Row] = []
    with ground(workers=options.workers, beats=1) as made:
        sink = ceiling.of_sink(made)
        schedules = make_schedules(made)
        below = Store(replace(made.settings, mongo_database=DATABASE))
        try:
            below.prepare()
            below.schedules.insert_many(schedules)
            for _ in range(options.runs):
                ours.append(burst.one(made, schedules, options.events))
                floor.append(_one(made, below, schedules, options))
        finally:
            below.close()
    burst_row, floor_row = middle(ours, "throughput_per_s"), middle(floor, "throughput_per_s")
    ratio = {
        "ratio": round(_median(floor, "recorded_ms") / _median(ours, "recorded_ms"), 3),
        "ratio_of_arrivals": round(floor_row["last_ms"] / burst_row["last_ms"], 3),
    }
    heads = [f"{name} {number + 1}" for number in range(options.runs) for name in ("burst", "floor")]
    rows = [row for pair in zip(ours, floor, strict=True) for row in pair]
    summary = {**floor_row, "burst": burst_row, **ratio, "sink": sink}
    return Report(rows, summary, all(map(complete, rows)), heads)


def _median(rows: list[Row], key: str) -> float:
    values: list[float] = [row[key] for row in rows]
    return statistics.median(values)


def _one(made: Ground, below: Store, schedules: list[Schedule], options: argparse.Namespace) -> Row:
    events = below.mongo.collection("events")
    sample = made.store.mongo.collection("events").find_one({"state": "completed"})
    assert sample is not None
    due = soon(LEAD_SECONDS, options.events)
    documents = [
        _dispatched(sample, event) for event in events_at(schedules, options.events, lambda number: due)
    ]
    for start in range(0, len(documents), 5_000):
        events.insert_many(documents[start : start + 5_000], ordered=False)
    made.arrivals()
    made.costs.start()
    workers = [_worker(made, due.timestamp(), options) for _ in range(options.workers)]
    for number, worker in enumerate(workers):
        assert worker.stdin is not None
        worker.stdin.write("\n".join(document["_id"] for document in documents[number :: options.workers]))
        worker.stdin.close()
    ended = [json.loads(_output(worker)) for worker in workers]
    costs = made.costs.since_start(options.events)
    cpu = {kind: costs["cpu_us_per_event"][kind] for kind in ("mongod", "sink")}
    cpu["floor"] = round(sum(each["cpu_s"] for each in ended) / options.events * 1e6)
    arrivals = made.arrivals()
    ids = [document["_id"] for document in documents]
    recorded = events.find_one({"_id": ids[-1]})
    assert recorded is not None
    _same_shape(recorded, sample)
    return {
        **judged(arrivals, options.events),
        "completed": events.count_documents({"_id": {"$in": ids}, "state": "completed"}),
        "recorded_ms": round(max(each["recorded_at"] - due.timestamp() for each in ended) * 1000),
        "cpu_us_per_event": cpu,
        "round_trips_per_event": {"mongod": costs["round_trips_per_event"]["mongod"]},
        "documents_per_event": costs["documents_per_event"],
    }


def _worker(made: Ground, due: float, options: argparse.Namespace) -> subprocess.Popen[str]:
    arguments = (made.settings.mongo_uri, DATABASE, made.url, due, options.threads, options.batch)
    return subprocess.Popen(
        [sys.executable, "-m", "tests.bench.floor_worker", *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _output(worker: subprocess.Popen[str]) -> str:
    assert worker.stdout is not None
    with worker:
        return worker.stdout.read()


def _dispatched(sample: Document, event: Event) -> Document:
    """The event as it stands when its message is out: what ours has by then, under another name."""
    started = [entry["status"] for entry in sample["status"]].index(State.RUNNING)
    finished = {"archived_at", "attempts", "attempt", "status"}
    kept = {key: value for key, value in sample.items() if key not in finished}
    return {
        **kept,
        "_id": event.id,
        "schedule_id": event.schedule_id,
        "revision": event.revision,
        "run_time": event.run_time,
        "due_at": event.due_at,
        "state": State.WORKER_QUEUE.value,
        "attempt": 0,
        "status": sample["status"][:started],
        "attempts": [],
    }


def _same_shape(recorded: Document, sample: Document) -> None:
    """Raises ValueError where the floor wrote less, or more, than ours does."""
    for theirs, ours in ((recorded, sample), (recorded["attempts"][0], sample["attempts"][0])):
        if theirs.keys() != ours.keys():
            raise ValueError(f"the floor's documents differ from ours in {theirs.keys() ^ ours.keys()}")
    lines = [[entry["status"] for entry in each["status"]] for each in (recorded, sample)]
    if lines[0] != lines[1]:
        raise ValueError(f"the floor's history differs from ours: {lines}")

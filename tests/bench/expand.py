"""N occurrences of one second become events: how long that takes one beat, or several at once.

What is written or read for an event beyond what one beat needs is what several of them do in vain.
"""

import argparse
import multiprocessing
from datetime import datetime
from multiprocessing.pool import Pool

from scheduler_app.clock import clock, monotonic
from scheduler_app.config import Settings
from scheduler_app.store import Store
from scheduler_app.store.schedules.documents import to_schedule_document
from scheduler_app.usecases.duties.expansion import Expansion
from tests.bench.ground import Ground, ground
from tests.bench.report import Report, Row, repeated
from tests.builders import schedule

BATCH = 5_000


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--beats", type=int, default=1)


def run(options: argparse.Namespace) -> Report:
    with (
        ground() as made,
        multiprocessing.get_context("spawn").Pool(options.beats, _connect, (made.settings,)) as beats,
    ):
        return repeated(
            options.runs,
            lambda: one(made, beats, options.beats, options.events),
            "seconds",
            lambda row: row["made"] == row["events"],
        )


def one(made: Ground, pool: Pool, beats: int, count: int) -> Row:
    """As many hourly schedules as events, all with the same next instant, expanded page by page."""
    collection = made.store.mongo.collection("schedules")
    collection.delete_many({})
    made.store.mongo.collection("events").delete_many({})
    now = clock.now()
    template = to_schedule_document(schedule(now, rrule="FREQ=HOURLY"), made.store.secret_box)
    for first in range(0, count, BATCH):
        numbers = range(first, min(first + BATCH, count))
        collection.insert_many([{**template, "_id": f"e{number}"} for number in numbers], ordered=False)
    made.costs.start()
    began = monotonic()
    pages = pool.map(_expand, [now] * beats, chunksize=1)
    took = monotonic() - began
    costs = made.costs.since_start(count)
    return {
        "events": count,
        "made": made.store.mongo.collection("events").count_documents({}),
        "seconds": round(took, 2),
        "throughput_per_s": round(count / took),
        "pages": {"all": sum(all_pages for all_pages, _ in pages), "empty": sum(empty for _, empty in pages)},
        "documents_per_event": costs["documents_per_event"],
        "cpu_us_per_event": {"mongod": costs["cpu_us_per_event"]["mongod"]},
    }


_expansion: Expansion


def _connect(settings: Settings) -> None:
    """A process that expands as a beat does, ready before it is measured."""
    global _expansion
    store = Store(settings)
    store.mongo.server_time()
    _expansion = Expansion(store, timeframe_seconds=settings.timeframe_seconds)


def _expand(now: datetime) -> tuple[int, int]:
    """Expands pages until there is nothing left to claim; how many pages, and how many of them were empty."""
    pages = empty = 0
    while True:
        page = _expansion.expand_page(now)
        pages += 1
        empty += not page.claimed
        if not page.full:
            return pages, empty

"""Lists with N finished events in the collection: the first ten pages, and pages behind any cursor.

Beside them what must not depend on N: a tick, creating and deleting a schedule.
"""

import argparse
import random
import time
from datetime import timedelta

import requests

from scheduler_app.api.wire.field_types import Cursor
from scheduler_app.clock import clock
from scheduler_app.store.mongo import Document
from scheduler_app.store.paging import Position
from tests.bench import archive, tick
from tests.bench.ground import Ground, ground
from tests.bench.load import Asked, drive
from tests.bench.planted import events_at, insert
from tests.bench.report import Report, Row, percentiles
from tests.builders import schedule

PAGES = 10
LIMIT = 10
CURSORS = 50
PENDING = 1_000
TICKS = 100


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=20, help="how often each page is asked for")
    parser.add_argument("--clients", type=int, default=1, help="who ask at once")
    parser.add_argument("--edits", type=int, default=100, help="schedules created, and deleted")


def run(options: argparse.Namespace) -> Report:
    with ground(apis=1, beats=1, workers=1) as made:
        template = archive.sample(made)
        began = time.monotonic()
        archive.fill(made, template, options.events)
        filled = time.monotonic() - began
        pending = _pending(made)
        lists = {
            name: _asked(made, paths, options.repeat, options.clients)
            for name, paths in _lists(made, pending).items()
        }
        row: Row = {
            "events": options.events,
            "filled_per_s": round(options.events / filled),
            "page_ms": lists,
            "tick_ms": tick.measure(made, TICKS),
            **_edits(made, options.edits),
            "stored_mib": _stored(made),
            "memory_mib": made.costs.memory(),
        }
    worst = max(each["p99"] for name, each in lists.items() if name != WALK)
    return Report([row], {**row, "p99_ms_max": worst})


#: No index has this filter, and nothing is in it: a call passes over 100,000 rows before it says so.
WALK = "events?state=retrying"


def _lists(made: Ground, pending: str) -> dict[str, list[str]]:
    """Paths by what they are. A list's pages and cursors have the same limit."""
    largest = f"/schedules/{archive.LARGEST}0/events"
    minutely = [f"/schedules/minutely{number}/events" for number in range(0, archive.MINUTELY, 100)]
    return {
        "pending": _pages(f"/schedules/{pending}/events/pending"),
        "history, a minutely schedule's": [path for each in minutely for path in _pages(f"{each}/history")],
        "history, the largest schedule's": _pages(f"{largest}/history"),
        "history, any cursor": _cursors(made, f"{largest}/history", {"schedule_id": f"{archive.LARGEST}0"}),
        "events": _pages("/events"),
        "events, any cursor": _cursors(made, "/events", {}),
        "events?state=error": _pages("/events?state=error"),
        "events?state=error, any cursor": _cursors(made, "/events?state=error", {"state": "error"}),
        "pending, of a schedule that has only history": [f"{largest}/pending"],
        WALK: [f"/{WALK}"],
    }


def _pages(path: str) -> list[str]:
    return [f"{path}{_joint(path)}limit={LIMIT}&page={page}" for page in range(1, PAGES + 1)]


def _cursors(made: Ground, path: str, which: Document) -> list[str]:
    """Pages behind places anywhere in the list, the oldest tenth of it included."""
    events = made.store.mongo.collection("events")
    draw = random.Random(6)  # the same places each time
    times = [
        events.find(which, {"run_time": 1}).sort("run_time", order).limit(1).next()["run_time"]
        for order in (1, -1)
    ]
    wire, found = Cursor(), []
    for _ in range(CURSORS):
        moment = times[0] + draw.random() * (times[1] - times[0])
        position = Position(moment.replace(microsecond=0), "minutely5")
        cursor = wire.serialize("at", {"at": position})
        found.append(f"{path}{_joint(path)}limit={LIMIT}&cursor={cursor}")
    return found


def _joint(path: str) -> str:
    return "&" if "?" in path else "?"


def _asked(made: Ground, paths: list[str], repeat: int, clients: int) -> dict[str, float]:
    """Milliseconds as the client sees them, the first time of each included."""
    urls = [f"{made.stack.url}/api{path}" for path in paths]
    rounds = max(1, repeat * PAGES // len(urls))
    driven = drive([Asked("GET", url) for url in urls * rounds], clients)
    if driven.statuses.keys() != {"200"}:
        raise RuntimeError(f"{paths[0]} was answered by {driven.statuses}")
    return percentiles(driven.latency_ms)


def _pending(made: Ground) -> str:
    """A schedule with events to come."""
    start = clock.now() + timedelta(hours=1)
    made.store.schedules.insert(
        owner := schedule(clock.now(), "tocome", url=made.url, rrule="DTSTART:20900101T000000Z\nFREQ=YEARLY")
    )
    insert(made, events_at([owner], PENDING, lambda number: start + timedelta(seconds=number)))
    return owner.id


def _edits(made: Ground, count: int) -> Row:
    """Milliseconds of creating a schedule with events to come, and of deleting it with them."""
    took: dict[str, list[float]] = {"create_ms": [], "delete_ms": []}
    with requests.Session() as session:
        for number in range(count):
            body = {
                "id": f"edit{number}",
                "name": "bench",
                "rrule": "FREQ=MINUTELY",
                "callback_url": made.url,
            }
            for key, method, path in (
                ("create_ms", "POST", "/schedules"),
                ("delete_ms", "DELETE", f"/schedules/edit{number}"),
            ):
                began = time.monotonic()
                answer = session.request(
                    method, f"{made.stack.url}/api{path}", json=body if method == "POST" else None, timeout=20
                )
                took[key].append((time.monotonic() - began) * 1000)
                answer.raise_for_status()
    return {key: percentiles(values) for key, values in took.items()}


def _stored(made: Ground) -> Row:
    stats = made.store.mongo.db.command("collStats", "events")
    return {
        "documents": round(stats["storageSize"] / 2**20),
        "indexes": round(stats["totalIndexSize"] / 2**20),
        "bytes_a_document": round(stats["avgObjSize"]),
    }

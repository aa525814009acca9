"""The pages over a long past, and the questions that programs ask as pages do: how long the server takes for
each, and how large it is as gzip."""

import argparse
import gzip
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from urllib.parse import quote

import requests

from scheduler_app.clock import clock
from scheduler_app.domain.figures import HOUR, FigurePart, FigureSubject, begin_of_part
from scheduler_app.domain.ids import TENANT, event_id
from scheduler_app.store import Store
from tests.bench.ground import ground
from tests.bench.long_past import BUSY, TAGS, is_planted, plant
from tests.bench.report import Report, Row

LIMIT_MS, LIMIT_KB = 200, 100
#: An answer to a question may take longer: a page shows the rest of itself meanwhile.
QUESTION_MS = 300
#: A forecast is kept for up to a minute; one that lacks is made while the page waits.
PAGES = (
    "/",
    "/schedules",
    "/schedules?order=oldest",
    "/schedules?state=active",
    "/schedules?state=paused",
    "/schedules?tag=billing",
    "/schedules?last_outcome=error",
    "/schedules?destination=d7",
    "/schedules?text=invoice",
    "/schedules?text=99999",
    "/schedules?text=nothing+is+called+so",
    "/schedules?tag=billing&text=99999",
    f"/schedules/{BUSY}",
    f"/schedules/{BUSY}?of=duration",
    f"/schedules/{BUSY}/edit",
    "/schedules/s500",
    "/schedules/s500?why=2026-01-01T00:00:00Z",
    "/new-schedule",
    "/calendar",
    "/calendar?view=week",
    "/calendar?view=agenda",
    "/calendar?tag=billing",
    "/calendar?destination=d7",
    f"/calendar?schedule_id={BUSY}",
    "/events",
    "/events?state=error",
    "/events?state=retrying",
    "/events?state=completed",
    "/events?tag=billing",
    "/events?tag=all&state=error",
    "/events?error=refused",
    "/events?error=nothing+says+so",
    "/events?origin=http%3A%2F%2Freceiver7.example%3A80",
    "/events?status_code=404",
    f"/events?schedule_id={BUSY}",
    "/dead-letters",
    "/destinations",
    "/messages",
    "/messages?event_name=order.3",
    "/messages?state=error",
    "/calendars",
    "/processes",
    "/forecast?hours=6",
    "/forecast?hours=24",
    "/forecast?hours=168",
    "/go",
    "/go?to=invoice+77",
    "/go?to=nothing+is+called+so",
)

#: What pages are made of, as routes. A search for what nothing has looks through all schedules.
QUESTIONS = (
    "/api/schedules?outcomes=20&limit=50",
    "/api/destinations?health=true&limit=25",
    "/api/search?q=invoice",
    "/api/search?q=99999",
    "/api/search?q=nothing+is+called+so",
    "/api/search?q=s77-1",
    "/api/tags",
    "/api/tags?prefix=bil",
    "/api/tags/summary?tag=billing",
    "/api/calendar",
    "/api/calendar?bucket=86400&timezone=Europe/Zurich",
    "/api/calendar?tag=billing",
    "/api/calendar?destination=d7",
    f"/api/calendar?schedule_id={BUSY}",
    "/api/figures",
    "/api/figures?bucket=300",
    "/api/figures?tag=billing&bucket=3600",
    f"/api/figures?schedule_id={BUSY}",
    "/api/edits",
    "/api/failures",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--schedules", type=int, default=100_000)
    parser.add_argument("--events", type=int, default=10_000_000, help="0.7 GB on the disk at 10,000,000")
    parser.add_argument("--questions", action="store_true", help="ask the routes alone, and no page")
    parser.add_argument("--data", type=Path, help="a folder that keeps what is planted, for two hours")
    parser.add_argument("--repeat", type=int, default=5, help="how often each page is asked for, once warm")


def run(options: argparse.Namespace) -> Report:
    with ground(data=options.data and options.data.absolute()) as made:
        began = time.monotonic()
        if not is_planted(made.store, schedules=options.schedules, events=options.events):
            made.store.mongo.db.client.drop_database(made.store.mongo.db.name)
            made.store.prepare()
            plant(made.store, made.settings, schedules=options.schedules, events=options.events)
            _plant_figures(made.store, schedules=options.schedules, events=options.events)
        planted = time.monotonic() - began
        for kind in ("worker", "beat", "api"):
            made.add(kind)
        row: Row = {"schedules": options.schedules, "events": options.events, "plant_s": round(planted)}
        pages = () if options.questions else (*PAGES, _an_event(made.store))
        return judged(row, measured(made.stack.url, (*pages, *QUESTIONS), options.repeat))


def _plant_figures(store: Store, *, schedules: int, events: int) -> None:
    """What workers would have counted of the past events, which are one of each schedule an hour."""
    hour = begin_of_part(clock.now(), HOUR)
    for back in range(events // schedules + 1):
        part = FigurePart(hour - back * HOUR, Counter(completed=schedules, error=schedules // 50))
        for measure in (part.lag, part.duration):
            measure.steps.update({3: schedules})
            measure.total, measure.most = 8.0 * schedules, 9.0
        subjects = [FigureSubject(TENANT), *(FigureSubject(TENANT, "tag", tag) for tag in TAGS)]
        store.figure_counters.add((subject, HOUR, part) for subject in subjects)


def judged(row: Row, found: dict[str, Row]) -> Report:
    """What is slower or larger than a page may be is not good."""
    slowest = max(found, key=lambda path: float(found[path]["ms"]))
    largest = max(found, key=lambda path: float(found[path]["gzip_kb"]))
    summary = {
        **row,
        "slowest": slowest,
        "ms_max": found[slowest]["ms"],
        "largest": largest,
        "gzip_kb_max": found[largest]["gzip_kb"],
        "over": [
            path for path, each in found.items() if each["ms"] > _limit(path) or each["gzip_kb"] > LIMIT_KB
        ],
    }
    return Report([{**row, **found}], summary, not summary["over"])


def _limit(path: str) -> int:
    return QUESTION_MS if path in QUESTIONS else LIMIT_MS


def measured(url: str, paths: Sequence[str], repeat: int) -> dict[str, Row]:
    """Of each page the first and the median time in milliseconds, as a client on this host sees them, and its
    size."""
    found: dict[str, Row] = {}
    with requests.Session() as session:
        for path in paths:
            times = [_asked(session, url + path) for _ in range(repeat + 1)]
            answer = session.get(url + path, timeout=60)
            if answer.status_code != requests.codes.ok:
                raise RuntimeError(f"{path} was answered by {answer.status_code}: {answer.text[:300]}")
            found[path] = {
                "first_ms": round(times[0], 1),
                "ms": round(median(times[1:]), 1),
                "gzip_kb": round(len(gzip.compress(answer.content)) / 1000, 1),
            }
    return found


def _asked(session: requests.Session, url: str) -> float:
    began = time.monotonic()
    session.get(url, timeout=60)
    return (time.monotonic() - began) * 1000


def _an_event(store: Store) -> str:
    newest = store.mongo.collection("events").find({"schedule_id": BUSY}, {"run_time": 1}, hint="schedule_v1")
    run_time = next(newest.sort({"run_time": -1, "_id": -1}).limit(1))["run_time"]
    return f"/events/{quote(event_id(BUSY, 1, run_time))}"

"""How long the answers for another tenant's things take, beside those for what does not exist, in turns: who
could tell them apart by the time would know what others have."""

import argparse
import time
from statistics import median

import requests

from tests.bench.ground import ground
from tests.bench.report import Report, Row

KEY = "a-key-of-the-bench-1"
#: The medians of both may differ by so much.
MOST_DIFFERENCE = 0.05
PATHS = (
    ("GET", "schedules/{}"),
    ("GET", "schedules/{}/events/history"),
    ("POST", "schedules/{}/trigger"),
    ("GET", "destinations/{}"),
    ("GET", "messages/{}"),
    ("GET", "calendars/{}"),
    ("DELETE", "heartbeats/{}"),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--questions", type=int, default=1_000, help="of each path and kind")


def run(options: argparse.Namespace) -> Report:
    with ground(apis=1, API_KEYS=KEY) as made, requests.Session() as session:
        root = f"{made.stack.url}/api/v1"
        keys = {tenant: _key(session, root, tenant) for tenant in ("owner", "stranger")}
        _make(session, root, keys["owner"])
        rows: dict[str, Row] = {}
        for method, path in PATHS:
            urls = {name: f"{root}/{path.format(name)}" for name in ("theirs", "nobody")}
            rows[f"{method} {path}"] = _compared(session, method, urls, keys["stranger"], options.questions)
    most = max(abs(row["ratio"] - 1) for row in rows.values())
    summary: Row = {"kinds": rows, "most_difference": round(most, 3)}
    return Report(list(rows.values()), summary, most <= MOST_DIFFERENCE, heads=list(rows))


def _key(session: requests.Session, root: str, tenant: str) -> str:
    by = {"X-API-Key": KEY}
    session.put(f"{root}/tenants/{tenant}", json={}, headers=by).raise_for_status()
    wanted = {"name": "k", "tenant": tenant, "scopes": ["read", "trigger", "write"]}
    made = session.post(f"{root}/keys", json=wanted, headers=by)
    made.raise_for_status()
    key: str = made.json()["key"]
    return key


def _make(session: requests.Session, root: str, key: str) -> None:
    schedule = {"name": "n", "callback_url": "http://127.0.0.1:9/", "cron": "0 0 1 1 *"}
    message = {"id": "theirs", "callback_url": "http://127.0.0.1:9/", "delay_seconds": 86_400}
    for method, path, body in (
        ("PUT", "schedules/theirs", schedule),
        ("PUT", "destinations/theirs", {"url": "http://127.0.0.1:9/"}),
        ("POST", "messages", message),
        ("PUT", "calendars/theirs", {"dates": [{"date": "2040-01-01"}]}),
        ("PUT", "heartbeats/theirs", {"every_seconds": 86_400}),
    ):
        session.request(method, f"{root}/{path}", json=body, headers={"X-API-Key": key}).raise_for_status()


def _compared(session: requests.Session, method: str, urls: dict[str, str], key: str, questions: int) -> Row:
    """The medians in milliseconds, of questions in turn."""
    taken: dict[str, list[float]] = {name: [] for name in urls}
    for number in range(questions + 20):
        for name, url in sorted(urls.items(), reverse=number % 2 == 1):
            began = time.perf_counter()
            answer = session.request(method, url, headers={"X-API-Key": key}, timeout=60)
            lasted = (time.perf_counter() - began) * 1_000
            if answer.status_code != 404:
                raise AssertionError(f"{method} {url}: {answer.status_code} {answer.text[:300]}")
            if number >= 20:
                taken[name].append(lasted)
    theirs, nobody = median(taken["theirs"]), median(taken["nobody"])
    return {
        "theirs_ms": round(theirs, 3),
        "nobody_ms": round(nobody, 3),
        "ratio": round(theirs / nobody, 3),
    }

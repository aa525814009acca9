"""The main pages of a demonstration in Chromium: what each costs a browser that has seen none before.

`kb` is what was sent of bodies, compressed where it was; `again_kb` the same when the page is opened a second
time. `server_ms` is the time to the first byte of the page, `script_ms` what ran as JavaScript until the
network was idle, `task_ms` the same with layout and painting: medians.
"""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

import requests
from playwright.sync_api import Browser, Page, sync_playwright

from tests.acceptance.pages.browser import launched
from tests.acceptance.pages.demonstration import run_demo
from tests.bench.ground import ground
from tests.bench.report import Report, Row

#: Of the page and of all it loads, as the browser tells.
SENT = """() => {
  const page = performance.getEntriesByType("navigation")[0];
  const all = [page, ...performance.getEntriesByType("resource")];
  return {
    requests: all.length,
    bytes: all.reduce((sum, each) => sum + (each.transferSize ? each.encodedBodySize : 0), 0),
    server_ms: page.responseStart - page.requestStart,
  };
}"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repeat", type=int, default=5, help="how often each page is opened")


def run(options: argparse.Namespace) -> Report:
    with ground(workers=1, beats=1, apis=1) as made, _browser() as browser:
        filled = run_demo(made.stack)
        if filled.returncode:
            raise RuntimeError(filled.stdout + filled.stderr)
        url = made.stack.url
        rows = [
            _measured(browser, name, url + path, options.repeat) for name, path in main_pages(url).items()
        ]
    keys = ("kb", "requests", "server_ms", "script_ms")
    summary: Row = {f"{key}_max": max(row[key] for row in rows) for key in keys}
    return Report(
        [{k: v for k, v in row.items() if k != "page"} for row in rows],
        summary,
        heads=[str(row["page"]) for row in rows],
    )


def main_pages(url: str) -> dict[str, str]:
    """The pages that people open most, each with a path that has something to show."""
    answer = requests.get(f"{url}/api/schedules", params={"limit": "100"}, timeout=9).json()
    busy = {each["name"]: each["id"] for each in answer["schedules"]}["Payment status"]
    return {
        "overview": "/",
        "schedules": "/schedules",
        "a schedule": f"/schedules/{busy}",
        "events": "/events",
        "dead letters": "/dead-letters",
    }


@contextmanager
def _browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        made = launched(playwright)
        yield made
        made.close()


def _measured(browser: Browser, name: str, address: str, repeat: int) -> Row:
    first, again = [], []
    for _ in range(repeat):
        context = browser.new_context()
        page = context.new_page()
        first.append(_opened(page, address))
        again.append(_opened(page, address))
        context.close()
    return {
        "page": name,
        "kb": round(first[0]["bytes"] / 1000, 1),
        "again_kb": round(again[0]["bytes"] / 1000, 1),
        "requests": first[0]["requests"],
        **{
            key: round(median(each[key] for each in first), 1)
            for key in ("server_ms", "script_ms", "task_ms")
        },
    }


def _opened(page: Page, address: str) -> dict[str, Any]:
    """What one load took. Chromium counts from the beginning of its process, in seconds."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    before = _metrics(session.send("Performance.getMetrics"))
    page.goto(address)
    page.wait_for_load_state("networkidle")
    after = _metrics(session.send("Performance.getMetrics"))
    spent = {
        f"{key}_ms": (after[name] - before[name]) * 1000
        for key, name in (("script", "ScriptDuration"), ("task", "TaskDuration"))
    }
    found: dict[str, Any] = page.evaluate(SENT)
    return found | spent


def _metrics(answer: dict[str, Any]) -> dict[str, float]:
    return {each["name"]: each["value"] for each in answer["metrics"]}

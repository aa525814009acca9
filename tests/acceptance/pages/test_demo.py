"""`scheduler demo` fills an empty deployment: each page has something to show, none sticks out or is heavy.

With PICTURES=<folder> in the environment the pictures of the pages are kept there.
"""

import os
from datetime import datetime
from pathlib import Path
from typing import Literal

import pytest
import requests
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.acceptance.pages.browser import watched_page
from tests.acceptance.pages.demonstration import run_demo
from tests.acceptance.stack import Stack

SIZES: dict[str, ViewportSize] = {
    "wide": {"width": 1280, "height": 900},
    "phone": {"width": 390, "height": 844},
}
OTHER_SIZE = {"wide": "phone", "phone": "wide"}
OTHER_COLOURS: dict[str, Literal["light", "dark"]] = {"light": "dark", "dark": "light"}
MOST_BYTES = 100 * 1024
MOST_REQUESTS = 10
#: The sizes of the page and of all that it loads, as they are sent.
LOADED = """() => [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
  .map((each) => each.encodedBodySize)"""
PICTURES = os.environ.get("PICTURES")


@pytest.fixture(scope="module")
def shown(stack: Stack) -> Stack:
    """The module's stack with a demonstration in it."""
    filled = run_demo(stack)
    assert filled.returncode == 0, filled.stdout + filled.stderr
    return stack


def test_a_demonstration_has_a_week_of_history_and_goes_on(page: Page, shown: Stack) -> None:
    events = requests.get(f"{shown.url}/api/events", params={"limit": "1", "state": "error"}).json()
    assert events["events"]
    found = requests.get(f"{shown.url}/api/schedules", params={"limit": 100}).json()["schedules"]
    by_name = {each["name"]: each for each in found}
    backup = shown.events(by_name["Database backup"]["id"])
    times = [datetime.fromisoformat(each["run_time"]) for each in backup]
    assert len(times) >= 6
    assert (times[0] - times[-1]).days >= 5
    assert backup[0]["run_time"] == by_name["Database backup"]["last_run"]["time"]
    refund = by_name["Refund on demand"]["id"]
    shown.post(f"/schedules/{refund}/trigger", status=202)
    (event,) = shown.finished(refund)
    assert event["state"] == "completed", "the schedules of a demonstration call /echo, which answers"
    page.goto("/dead-letters")
    expect(page.get_by_test_id("cause").first).to_be_visible()
    again = run_demo(shown)
    assert again.returncode == 1
    assert "there are schedules already" in again.stderr


def paths(stack: Stack) -> dict[str, str]:
    """Every page, by the name of its picture."""
    found = requests.get(f"{stack.url}/api/schedules", params={"limit": "100"}).json()["schedules"]
    by_name = {each["name"]: each["id"] for each in found}
    dead = requests.get(f"{stack.url}/api/events", params={"state": "error"}).json()["events"]
    busy = by_name["Payment status"]
    return {
        "overview": "/",
        "schedules": "/schedules",
        "schedule": f"/schedules/{busy}",
        "edit": f"/schedules/{by_name['Newsletter']}/edit",
        "new": "/new-schedule",
        "calendar": "/calendar?tag=shop",
        "week": "/calendar?view=week&tag=billing",
        "agenda": "/calendar?view=agenda&tag=finance",
        "hours": "/calendar?view=hours&tag=live",
        "part": f"/schedules/{busy}?from=2020-01-01",
        "events": "/events",
        "event": f"/events/{dead[0]['_id']}",
        "dead-letters": "/dead-letters",
        "destinations": "/destinations",
        "destination": "/destinations/crm/edit",
        "new-destination": "/new-destination",
        "messages": "/messages",
        "new-message": "/new-message",
        "stops": "/stops",
        "processes": "/processes",
        "calendars": "/calendars",
        "go": "/go",
    }


@pytest.mark.parametrize(
    ("colours", "size"),
    [
        ("light", "wide"),
        pytest.param("dark", "phone", marks=pytest.mark.long),
        pytest.param("light", "phone", marks=pytest.mark.long),
        pytest.param("dark", "wide", marks=pytest.mark.long),
    ],
)
def test_no_page_is_wider_than_its_window_or_heavier_than_it_may_be(
    browser: Browser, shown: Stack, colours: Literal["light", "dark"], size: str
) -> None:
    """Each page is loaded in one look and then seen in the opposite one: loading takes most of the time."""
    other = OTHER_COLOURS[colours], OTHER_SIZE[size]
    with watched_page(browser, shown.url) as page:
        for name, path in paths(shown).items():
            look(page, colours, size)
            page.goto(path)
            page.wait_for_load_state("networkidle")
            # A page that is looked at for long loads parts of it again.
            loaded = page.evaluate(LOADED)
            for seen_in, through in ((colours, size), other):
                look(page, seen_in, through)
                if PICTURES:
                    page.screenshot(path=Path(PICTURES) / f"{name}-{seen_in}-{through}.png")
                wide = page.evaluate("document.scrollingElement.scrollWidth")
                assert wide <= SIZES[through]["width"], f"{path} is {wide} wide, {seen_in} on {through}"
            weight = sum(loaded)
            assert weight < MOST_BYTES, f"{path} has {weight} bytes"
            assert len(loaded) <= MOST_REQUESTS, path


def look(page: Page, colours: Literal["light", "dark"], size: str) -> None:
    """Lets the page be seen in these colours, through a window of this size."""
    page.emulate_media(color_scheme=colours)
    page.set_viewport_size(SIZES[size])

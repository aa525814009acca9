"""Every page, light and dark, wide and on a phone, with a week of history: none sticks out or is heavy.

With PICTURES=<folder> in the environment the pictures are kept there.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
import requests
from playwright.sync_api import Browser

from tests.acceptance.pages.browser import watched_page
from tests.acceptance.pages.demonstration import run_demo
from tests.acceptance.stack import Stack

WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
MOST_BYTES = 100 * 1024
MOST_REQUESTS = 10
#: The sizes of the page and of all that it loads, as they are sent.
LOADED = """() => [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
  .map((each) => each.encodedBodySize)"""
PICTURES = os.environ.get("PICTURES")


@pytest.fixture(scope="module")
def shown(make_stack: Callable[..., Stack]) -> Stack:
    """A deployment with a demonstration in it."""
    stack = make_stack()
    stack.all()
    filled = run_demo(stack)
    assert filled.returncode == 0, filled.stdout + filled.stderr
    return stack


def paths(stack: Stack) -> dict[str, str]:
    """Every page, by the name of its picture."""
    found = requests.get(f"{stack.url}/api/schedules", params={"limit": "100"}, timeout=20).json()[
        "schedules"
    ]
    by_name = {each["name"]: each["id"] for each in found}
    dead = requests.get(f"{stack.url}/api/events", params={"state": "error"}, timeout=20).json()["events"]
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
    ("look", "width"),
    [
        ("light", "wide"),
        ("dark", "phone"),
        pytest.param("light", "phone", marks=pytest.mark.long),
        pytest.param("dark", "wide", marks=pytest.mark.long),
    ],
)
def test_no_page_is_wider_than_its_window_or_heavier_than_it_may_be(
    browser: Browser, shown: Stack, look: Literal["light", "dark"], width: str
) -> None:
    size = WIDE if width == "wide" else PHONE
    with watched_page(browser, shown.url, color_scheme=look, viewport=size) as page:
        for name, path in paths(shown).items():
            page.goto(path)
            page.wait_for_load_state("networkidle")
            if PICTURES:
                page.screenshot(path=Path(PICTURES) / f"{name}-{look}-{width}.png")
            wide = page.evaluate("document.scrollingElement.scrollWidth")
            assert wide <= size["width"], f"{path} is {wide} wide"
            loaded = page.evaluate(LOADED)
            weight = sum(loaded)
            assert weight < MOST_BYTES, f"{path} has {weight} bytes"
            assert len(loaded) <= MOST_REQUESTS, path

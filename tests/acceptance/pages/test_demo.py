"""`scheduler demo` fills an empty deployment: each page has something to show, none sticks out, is heavy
or shuts somebody out."""

from datetime import datetime
from pathlib import Path
from typing import Literal

import pytest
import requests
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.acceptance.pages.browser import watched_page
from tests.acceptance.pages.demonstration import run_demo
from tests.acceptance.pages.every_page import addresses, filled, variants
from tests.acceptance.pages.judging import UNFOLD, violations
from tests.acceptance.stack import Stack

SIZES: dict[str, ViewportSize] = {
    "wide": {"width": 1440, "height": 900},
    "phone": {"width": 390, "height": 844},
}
#: What is left of the wide window where everything is twice as large.
ZOOMED: ViewportSize = {"width": 720, "height": 450}
COLOURS: tuple[Literal["light", "dark"], ...] = ("light", "dark")
MOST_BYTES = 60 * 1024
MOST_REQUESTS = 10
#: The sizes of the page and of all that it loads, as they are sent. What it loads again when it is looked at
#: for long, as on a slow machine, counts once, and its question whether the server is there does not.
LOADED = """() => [...new Map(
  [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
    .filter((each) => !each.name.endsWith("/healthz"))
    .reverse()
    .map((each) => [each.name, each.encodedBodySize])
).values()]"""
#: What axe leaves on an element (`style=""`) would be set anew by the next refresh, which the policy refuses.
PAUSE = "document.querySelector('[data-pause]')?.click()"
#: Pictures of every page in every look; not in git.
PICTURES = Path(__file__).parents[3] / "build" / "pages"


@pytest.fixture(scope="module")
def values(stack: Stack) -> dict[str, str]:
    """Fills the module's stack."""
    return filled(stack)


def test_a_demonstration_has_a_week_of_history_and_goes_on(
    page: Page, stack: Stack, values: dict[str, str]
) -> None:
    events = requests.get(f"{stack.url}/api/events", params={"limit": "1", "state": "error"}).json()
    assert events["events"]
    found = requests.get(f"{stack.url}/api/schedules", params={"limit": 100}).json()["schedules"]
    by_name = {each["name"]: each for each in found}
    backup = stack.events(by_name["Database backup"]["id"])
    times = [datetime.fromisoformat(each["run_time"]) for each in backup]
    assert len(times) >= 6
    assert (times[0] - times[-1]).days >= 5
    assert backup[0]["run_time"] == by_name["Database backup"]["last_run"]["time"]
    refund = by_name["Refund on demand"]["id"]
    stack.post(f"/schedules/{refund}/trigger", status=202)
    (event,) = stack.finished(refund)
    assert event["state"] == "completed", "the schedules of a demonstration call /echo, which answers"
    page.goto("/dead-letters")
    expect(page.get_by_test_id("cause").first).to_be_visible()
    again = run_demo(stack)
    assert again.returncode == 1
    assert "there are schedules already" in again.stderr


def test_no_page_is_wider_than_its_window_or_heavier_than_it_may_be(
    browser: Browser, stack: Stack, values: dict[str, str]
) -> None:
    """Each page is loaded wide and light, and seen on a phone in the dark: loading takes the most time."""
    with watched_page(browser, stack.url) as page:
        for name, path in addresses(values).items():
            look(page, "light", SIZES["wide"])
            answer = page.goto(path)
            assert answer is not None
            assert answer.status == 200, f"{name}: {path} needs a value or a query in every_page.py"
            page.wait_for_load_state("networkidle")
            loaded = page.evaluate(LOADED)
            expect_to_fit(page, path)
            look(page, "dark", SIZES["phone"])
            expect_to_fit(page, path)
            weight = sum(loaded)
            assert weight <= MOST_BYTES, f"{path} has {weight} bytes"
            assert len(loaded) <= MOST_REQUESTS, path


@pytest.mark.long
def test_no_page_shuts_anybody_out_in_any_look(
    browser: Browser, stack: Stack, values: dict[str, str]
) -> None:
    """axe finds nothing, no page is wider than its window, also where all is twice as large; the pictures are
    kept in `build/pages`."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    wrong = {}
    with watched_page(browser, stack.url) as page:
        for name, path in (addresses(values) | variants(values)).items():
            look(page, "light", SIZES["wide"])
            page.goto(path)
            page.wait_for_load_state("networkidle")
            for colours in COLOURS:
                for size, window in SIZES.items():
                    look(page, colours, window)
                    picture = PICTURES / f"{name}-{colours}-{size}.png"
                    # With its caret: to hide it takes a style of each field, which a refresh that comes just
                    # then carries over, and the policy of the page refuses.
                    page.screenshot(path=picture, full_page=True, caret="initial")
            page.evaluate(PAUSE)
            # One that is on its way would still bring what it found.
            expect(page.locator(".htmx-request")).to_have_count(0)
            page.evaluate(UNFOLD)
            for colours in COLOURS:
                for size, window in (SIZES | {"zoomed": ZOOMED}).items():
                    look(page, colours, window)
                    expect_to_fit(page, path)
                    if size != "zoomed" and (found := violations(page)):
                        wrong[f"{path}, {colours}, {size}"] = found
        assert wrong == {}


def expect_to_fit(page: Page, path: str) -> None:
    wide, window = page.evaluate("[document.scrollingElement.scrollWidth, innerWidth]")
    assert wide <= window, f"{path} is {wide} wide in a window of {window}"


def look(page: Page, colours: Literal["light", "dark"], window: ViewportSize) -> None:
    """Lets the page be seen in these colours, through a window of this size."""
    page.emulate_media(color_scheme=colours)
    page.set_viewport_size(window)

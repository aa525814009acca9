"""axe finds nothing on any page, light or dark."""

from contextlib import closing
from functools import partial
from typing import Literal

import pytest
import requests
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.acceptance.journal import Journal
from tests.acceptance.pages.browser import watched_page
from tests.acceptance.pages.story import use
from tests.acceptance.stack import Stack
from tests.integration.actions.receiver import says

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def event_id(stack: Stack) -> str:
    """A dead letter, so that every page has something to show."""
    with closing(Journal()) as journal:
        return fill_all_pages(stack, journal)


def fill_all_pages(stack: Stack, journal: Journal) -> str:
    schedule_id = stack.create(
        journal.script("/bad", says("404 Not Found")), phrase="every weekday at 9:00", tags=["crm"]
    )
    stack.post(f"/schedules/{schedule_id}/trigger", status=202)
    (event,) = stack.finished(schedule_id)
    put = partial(requests.put)
    waits = {"id": "waits", "callback_url": journal.url("/"), "delay_seconds": 9_000, "event_name": "order"}
    stack.post("/messages", waits)
    url = {"url": journal.url("/"), "concurrency": 2}
    assert put(f"{stack.url}/api/destinations/crm", json=url).ok
    assert put(f"{stack.url}/api/kill-switch", json={"tag": "away", "note": "a restore"}).ok
    assert put(
        f"{stack.url}/api/blackouts/night", json={"cron": "0 1 * * *", "duration_seconds": 60, "all": True}
    ).ok
    found: str = event["_id"]
    return found


#: What is folded is not looked at.
UNFOLD = "() => { for (const each of document.querySelectorAll('details')) each.open = true; }"


def judge(page: Page, where: str) -> None:
    page.evaluate(UNFOLD)
    found = Axe().run(page).response["violations"]
    said = [(each["id"], [node["html"] for node in each["nodes"]][:3]) for each in found]
    assert said == [], where


@pytest.mark.parametrize("look", ["light", "dark"])
def test_no_page_shuts_anybody_out(
    browser: Browser, stack: Stack, event_id: str, look: Literal["light", "dark"]
) -> None:
    schedule_id = event_id.partition("-manual-")[0]
    paths = (
        *("/", "/schedules", "/new-schedule", "/events", "/dead-letters", "/schedules/nothing", "/calendar"),
        *("/calendar?view=week", "/calendar?view=agenda", "/destinations", "/messages", "/processes"),
        *("/failures", "/notifications", "/heartbeats", "/ledger", "/you", "/docs/"),
        *("/calendars", "/go?to=test", "/forecast", f"/schedules/{schedule_id}/edit"),
        *("/calendar?view=hours", "/new-destination", "/new-message", "/stops", "/destinations/crm/edit"),
        *("/events?state=error&tag=t", "/calendar-feeds", "/new-calendar", "/tags?tag=crm"),
        f"/schedules/{schedule_id}/backfill",
        *("/schedules?order=name", f"/schedules/{schedule_id}?from=2026-01-01"),
        *(f"/schedules/{schedule_id}?why=2026-01-01T00:00:00Z", "/events/msg_waits"),
    )
    with watched_page(browser, stack.url, color_scheme=look) as page:
        for path in (*paths, f"/schedules/{schedule_id}", f"/events/{event_id}"):
            page.goto(path)
            judge(page, path)
        for path in ("/new-schedule", "/new-message", "/new-destination", "/new-calendar"):
            page.goto(path)
            page.locator("main form").evaluate("(form) => { form.noValidate = true; form.requestSubmit(); }")
            expect(page.locator(".wrong").first).to_be_visible()
            judge(page, f"{path}, refused")
        page.goto("/destinations/crm/edit")
        use(page, "delete")
        judge(page, "a deletion that is to be confirmed")
        page.keyboard.press("Control+k")
        page.keyboard.type("dead")
        expect(page.get_by_test_id("found").get_by_role("link")).to_have_count(1)
        judge(page, "the dialog of Ctrl-K")

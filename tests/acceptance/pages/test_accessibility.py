"""axe finds nothing where a page is empty, something is wrong or is open; `test_demo.py` walks all pages."""

from collections.abc import Callable
from typing import Literal

import pytest
import requests
from playwright.sync_api import Browser, expect

from tests.acceptance.pages.browser import watched_page
from tests.acceptance.pages.judging import judge
from tests.acceptance.pages.story import use
from tests.acceptance.shared_stack import SharedStack
from tests.acceptance.stack import Stack

pytestmark = pytest.mark.long

EMPTY = (
    *("/", "/schedules", "/events", "/messages", "/calendar", "/failures", "/dead-letters", "/destinations"),
    *(
        "/calendars",
        "/calendar-feeds",
        "/stops",
        "/notifications",
        "/heartbeats",
        "/ledger",
        "/tags?tag=none",
    ),
)


@pytest.mark.parametrize("look", ["light", "dark"])
def test_no_page_shuts_anybody_out_where_there_is_nothing_yet_or_something_is_wrong(
    browser: Browser,
    stack: SharedStack,
    look: Literal["light", "dark"],
) -> None:
    stack.empty()
    with watched_page(browser, stack.url, color_scheme=look) as page:
        for path in EMPTY:
            page.goto(path)
            judge(page, f"{path}, empty")
        for path in ("/new-schedule", "/new-message", "/new-destination", "/new-calendar"):
            page.goto(path)
            page.locator("main form").evaluate("(form) => { form.noValidate = true; form.requestSubmit(); }")
            expect(page.locator(".wrong").first).to_be_visible()
            judge(page, f"{path}, refused")
        assert requests.put(f"{stack.url}/api/destinations/crm", json={"url": f"{stack.url}/echo"}).ok
        page.goto("/destinations/crm/edit")
        use(page, "delete")
        judge(page, "a deletion that is to be confirmed")
        page.keyboard.press("Control+k")
        page.keyboard.type("dead")
        expect(page.get_by_test_id("found").get_by_role("link")).to_have_count(1)
        judge(page, "the dialog of Ctrl-K")
        page.keyboard.press("Escape")
        page.get_by_test_id("keys").click()
        judge(page, "the list of keys")


def test_the_sign_in_shuts_nobody_out(browser: Browser, make_stack: Callable[..., Stack]) -> None:
    stack = make_stack(API_KEYS="a-key-for-the-sign-in")
    stack.api()
    for look in ("light", "dark"):
        with watched_page(browser, stack.url, color_scheme=look) as page:
            page.goto("/")
            judge(page, "the sign-in")
            page.get_by_test_id("key").fill("another-key-entirely")
            use(page, "sign-in")
            expect(page.get_by_test_id("refused")).to_be_visible()
            judge(page, "a refused sign-in")

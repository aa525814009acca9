"""With keys a browser signs in, and is led back to where it wanted to go."""

from collections.abc import Callable

from playwright.sync_api import Browser, expect

from tests.acceptance.pages.browser import watched_page
from tests.acceptance.stack import Stack

KEY = "a-key-for-the-sign-in"


def test_a_person_signs_in_works_and_signs_out(browser: Browser, make_stack: Callable[..., Stack]) -> None:
    stack = make_stack(API_KEYS=KEY)
    stack.api()
    with watched_page(browser, stack.url) as page:
        page.goto("/schedules?tag=a")
        page.get_by_test_id("key").fill("another-key-entirely")
        page.get_by_test_id("sign-in").click()
        expect(page.get_by_test_id("refused")).to_be_visible()
        page.get_by_test_id("key").fill(KEY)
        page.get_by_test_id("sign-in").click()
        expect(page).to_have_url(f"{stack.url}/schedules?tag=a")
        page.goto("/new-schedule")
        page.get_by_test_id("name").fill("Mine")
        page.get_by_test_id("when").fill("every day at 9:00")
        page.get_by_test_id("url").fill("https://example.com/")
        page.get_by_test_id("save").click()
        expect(page.get_by_test_id("done")).to_have_text("Created.")
        page.get_by_test_id("sign-out").click()
        expect(page).to_have_url(f"{stack.url}/sign-in")
        page.goto("/schedules")
        expect(page.get_by_test_id("key")).to_be_visible()
        page.go_back()
        expect(page.get_by_text("Mine")).to_have_count(0)

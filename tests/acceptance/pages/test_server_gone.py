"""A page that is open says when the server or the network is gone, and goes on when they are back."""

from collections.abc import Callable

import psutil
from playwright.sync_api import Browser, Page, expect

from tests.acceptance.pages.browser import watched_page
from tests.acceptance.stack import Stack

#: What the product promises is that a page says so within this time after the server has stopped.
PROMISED_MS = 15_000
#: The page's own clock, from when the server has stopped until the page says so. It goes on by what a turn of
#: the browser should take, and by no more where a busy machine let the browser stand still.
CLOCK = """() => {
  const turn = 100;
  window.waited = 0;
  let last = performance.now();
  const clock = setInterval(() => {
    const now = performance.now();
    window.waited += Math.min(now - last, 2 * turn);
    last = now;
    if (document.querySelector('[data-test="gone"]')) clearInterval(clock);
  }, turn);
}"""


def expect_gone(*pages: Page) -> None:
    for page in pages:
        expect(page.get_by_test_id("gone")).to_contain_text("does not answer")


def expect_back(*pages: Page) -> None:
    for page in pages:
        expect(page.get_by_test_id("gone")).to_have_count(0)


def test_open_pages_say_that_the_server_does_not_answer_until_it_does(
    browser: Browser, make_stack: Callable[..., Stack]
) -> None:
    stack = make_stack()
    api = psutil.Process(stack.api().pid)
    with watched_page(browser, stack.url) as overview, watched_page(browser, stack.url) as form:
        overview.goto("/")  # a part of it is loaded again and again
        form.goto("/new-schedule")
        expect_back(overview, form)
        processes = [api, *api.children()]
        for process in processes:
            process.suspend()
        for page in (overview, form):
            page.evaluate(CLOCK)
        expect_gone(overview, form)
        for page in (overview, form):
            assert page.evaluate("window.waited") <= PROMISED_MS
        for process in processes:
            process.resume()
        expect_back(overview, form)
        assert "stale" not in (overview.locator("body").get_attribute("class") or "")
        form.context.set_offline(True)
        form.evaluate(CLOCK)
        expect_gone(form)
        assert form.evaluate("window.waited") <= PROMISED_MS
        form.context.set_offline(False)
        expect_back(form)

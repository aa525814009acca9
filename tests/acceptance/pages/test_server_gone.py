"""A page that is open says when the server or the network is gone, and goes on when they are back."""

from collections.abc import Callable

import psutil
from playwright.sync_api import Browser, Page, expect

from tests.acceptance.pages.browser import watched_page
from tests.acceptance.stack import Stack


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
        expect_gone(overview, form)
        for process in processes:
            process.resume()
        expect_back(overview, form)
        form.context.set_offline(True)
        expect_gone(form)
        form.context.set_offline(False)
        expect_back(form)

"""A browser for each module of stories, and a page of its own for each story."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.acceptance.pages.browser import launched, watched_page
from tests.acceptance.stack import Stack


# Of a module and not of the session: while it is open, Playwright keeps an event loop running in this thread,
# and tests that call asyncio.run() would fail after the first story.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        playwright.selectors.set_test_id_attribute("data-test")
        made = launched(playwright)
        yield made
        made.close()


@pytest.fixture
def page(browser: Browser, stack: Stack) -> Iterator[Page]:
    """A page on the module's stack; a relative address is one of its API's."""
    with watched_page(browser, stack.url) as made:
        yield made


@pytest.fixture
def scriptless_page(browser: Browser, stack: Stack) -> Iterator[Page]:
    """The same in a browser that runs no scripts."""
    with watched_page(browser, stack.url, java_script_enabled=False) as made:
        yield made

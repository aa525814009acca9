"""One browser for all stories that one process runs, and a page of its own for each story."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.acceptance.pages.browser import launched, watched_page
from tests.acceptance.stack import Stack

FOLDER = Path(__file__).parent


class OneBrowser:
    """A browser that is started when a story asks for it, and stays until `close()`."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._browser: Browser | None = None

    def get(self) -> Browser:
        if self._browser is None:
            playwright = self._open.enter_context(sync_playwright())
            playwright.selectors.set_test_id_attribute("data-test")
            self._browser = launched(playwright)
            self._open.callback(self._browser.close)
        return self._browser

    def close(self) -> None:
        self._open.close()
        self._browser = None


ONE = pytest.StashKey[OneBrowser]()


@pytest.fixture
def browser(request: pytest.FixtureRequest) -> Browser:
    return request.config.stash.setdefault(ONE, OneBrowser()).get()


# After the fixtures of the last story.
@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """The browser ends with the last story. While it is open, Playwright keeps an event loop running in this
    thread, and tests that call asyncio.run() would fail."""
    one = item.config.stash.get(ONE, None)
    if one and not (nextitem and nextitem.path.is_relative_to(FOLDER)):
        one.close()


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

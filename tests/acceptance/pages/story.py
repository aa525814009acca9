"""Short words for what people do on a page."""

from playwright.sync_api import Page


def use(page: Page, purpose: str) -> None:
    """Presses what serves a purpose, by its `data-test` name."""
    page.get_by_test_id(purpose).first.click()


def fill(page: Page, purpose: str, text: str) -> None:
    page.get_by_test_id(purpose).fill(text)


def rows(page: Page) -> int:
    return page.locator("tbody tr").count()

"""Short words for what people do on a page."""

from playwright.sync_api import Page, expect


def use(page: Page, purpose: str) -> None:
    """Presses what serves a purpose, by its `data-test` name, once the scripts of its page are there."""
    page.wait_for_load_state()
    page.get_by_test_id(purpose).first.click()


def fill(page: Page, purpose: str, text: str) -> None:
    page.wait_for_load_state()
    page.get_by_test_id(purpose).fill(text)


def expect_rows(page: Page, count: int) -> None:
    """Of the page that comes, and not of the part of it that is there already."""
    expect(page.locator("tbody tr")).to_have_count(count)
    page.wait_for_load_state()

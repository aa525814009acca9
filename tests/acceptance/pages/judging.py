"""What axe says of a page."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

#: What is folded is not looked at. What is folded like a menu would lie over the rest of the page.
UNFOLD = """() => {
  for (const each of document.querySelectorAll("details:not(.menu)")) each.open = true;
}"""


def violations(page: Page) -> list[str]:
    """What keeps people out, whatever the level of its rule."""
    found = Axe().run(page).response["violations"]
    return [f"{each['id']}: {node['html'][:200]}" for each in found for node in each["nodes"][:3]]


def judge(page: Page, where: str) -> None:
    page.evaluate(UNFOLD)
    found = violations(page)
    assert found == [], f"{where}: {found}"

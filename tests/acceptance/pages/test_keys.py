"""The keys of the pages, pressed in a browser."""

import re

import requests
from playwright.sync_api import Page, expect

from scheduler_app.api.pages.places import PLACES, Place
from tests.acceptance.journal import Journal
from tests.acceptance.pages.story import fill
from tests.acceptance.stack import Stack
from tests.processes import wait_until

#: What a page may take to come before its keys are pressed again.
TRY_MS = 45_000


def go_to(page: Page, path: str) -> None:
    """Also its scripts are there."""
    page.goto(path)
    page.wait_for_load_state()


def go_by_keys(page: Page, place: Place) -> None:
    """Presses `g` and the key of a place, and again where this machine stood still in between: the second key
    belongs to the first for a second and a half."""

    def leads() -> bool:
        page.keyboard.press("g")
        page.keyboard.press(place.key)
        try:
            # Beside Failures it says how many are open.
            name = re.compile(rf"^{place.name}(\d*\+? open)?$")
            expect(page.locator(".nav [aria-current]")).to_have_text(name, timeout=TRY_MS)
        except AssertionError:
            return False
        return True

    wait_until(leads, f"the keys to lead to {place.name}")
    page.wait_for_load_state()


def test_keys_lead_to_the_five_places_and_through_a_list(page: Page, stack: Stack, journal: Journal) -> None:
    stack.create(journal.url("/"), every_seconds=86_400, name="First of keys")
    stack.create(journal.url("/"), every_seconds=86_400, name="Other of keys")
    go_to(page, "/you")
    for place in PLACES:
        go_by_keys(page, place)
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    expect(keys).to_contain_text("Send the runs of a cause again")
    keys.get_by_role("link", name="Schedules", exact=True).click()
    page.wait_for_load_state()
    page.keyboard.press("/")
    page.keyboard.type("of keys")
    page.keyboard.press("Enter")
    expect(page.locator("tbody tr")).to_have_count(2)
    page.wait_for_load_state()
    for key in ("j", "j", "k", "x"):
        page.keyboard.press(key)
    expect(page.locator("tr.at").get_by_test_id("select")).to_be_checked()
    expect(page.locator("td :checked")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("of keys")
    page.wait_for_load_state()
    page.keyboard.press("n")
    expect(page).to_have_url(re.compile("/new-schedule$"))


def test_a_form_is_tested_and_saved_by_keys_and_none_other_works_while_somebody_types(
    page: Page, stack: Stack, journal: Journal
) -> None:
    go_to(page, "/new-schedule")
    typed = "every day at 9:00"
    page.get_by_test_id("when").press_sequentially(typed)
    fill(page, "url", journal.url("/keys"))
    page.get_by_test_id("name").press_sequentially("go next? g s n / j k x")
    expect(page.get_by_test_id("name")).to_have_value("go next? g s n / j k x")
    expect(page).to_have_url(re.compile("/new-schedule$"))
    expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()
    page.keyboard.press("Control+Shift+Enter")
    expect(page.get_by_test_id("tested")).to_contain_text("Answered 200")
    # From an open search nothing behind it is saved.
    page.keyboard.press("Control+k")
    page.keyboard.press("Control+Enter")
    page.keyboard.press("Escape")
    page.get_by_test_id("name").focus()
    page.keyboard.press("Control+Enter")
    expect(page.get_by_test_id("done")).to_have_text("Created.")
    made = requests.get(f"{stack.url}/api/schedules").json()["schedules"]
    assert [each["phrase"] for each in made if each["name"] == "go next? g s n / j k x"] == [typed]
    assert len(journal.calls["/keys"]) == 1

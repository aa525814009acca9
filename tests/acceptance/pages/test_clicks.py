"""What people want to know or do, from where they begin to the answer: in how many clicks, and how soon."""

import re
import time
from datetime import UTC, datetime, timedelta

import requests
from playwright.sync_api import Locator, Page, expect

from tests.acceptance.journal import Journal
from tests.acceptance.pages.story import fill, use
from tests.acceptance.stack import Stack
from tests.integration.actions.receiver import says

#: More than any page has places for the focus.
MOST_TABS = 150


class Clicks:
    """Counts what is pressed with the pointer."""

    def __init__(self) -> None:
        self.count = 0

    def on(self, what: Locator) -> None:
        what.page.wait_for_load_state()
        what.click()
        self.count += 1


def test_support_finds_out_about_a_customer_s_report_and_sends_it_again(
    page: Page, stack: Stack, journal: Journal
) -> None:
    url = journal.script("/acme", says("404 Not Found"), says())
    made = stack.create(url, cron="0 6 * * 1", name="Monday report", tags=["customer:acme"])
    stack.post(f"/schedules/{made}/trigger", status=202)
    assert stack.finished(made)[0]["state"] == "error"
    page.goto("/")
    clicks = Clicks()
    clicks.on(page.get_by_test_id("go").first)
    page.keyboard.type("acme")
    page.keyboard.press("Enter")
    clicks.on(page.get_by_test_id("hit").filter(has_text="customer:acme"))
    expect(page.get_by_test_id("failed-schedule")).to_contain_text("404")
    clicks.on(page.get_by_test_id("see-run").first)
    expect(page.locator("main")).to_contain_text("404")
    clicks.on(page.get_by_test_id("send-again").first)
    expect(page.get_by_test_id("done")).to_have_text("Sent again.")
    stack.finished(made)
    assert stack.events(made)[0]["state"] == "completed"
    assert clicks.count <= 4


def focus_on(page: Page, purpose: str) -> None:
    """Moves the focus there by the tabulator alone."""
    for _ in range(MOST_TABS):
        if page.evaluate("document.activeElement.dataset.test") == purpose:
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{purpose} is not reached by the keyboard")


def test_a_developer_makes_and_tests_a_schedule_by_keyboard_alone(
    page: Page, stack: Stack, journal: Journal
) -> None:
    page.goto("/new-schedule")
    page.wait_for_load_state()
    began = time.monotonic()
    focus_on(page, "when")
    page.keyboard.type("every last business day at 9")
    expect(page.get_by_test_id("use-reading")).to_have_count(2)
    focus_on(page, "use-reading")
    page.keyboard.press("Space")
    expect(page.get_by_test_id("in-words")).to_contain_text("09:00")
    focus_on(page, "url")
    page.keyboard.type(journal.url("/close"))
    focus_on(page, "test-call")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("tested")).to_contain_text("Answered 200")
    focus_on(page, "name")
    page.keyboard.type("Close the month")
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("done")).to_have_text("Created.")
    assert time.monotonic() - began < 60
    (made,) = [
        each
        for each in requests.get(f"{stack.url}/api/schedules").json()["schedules"]
        if each["name"] == "Close the month"
    ]
    assert "BYSETPOS=-1" in made["recurrence"]
    assert len(journal.calls["/close"]) == 1


def test_what_runs_next_monday_morning_for_a_tag_is_read_from_the_calendar(
    page: Page, stack: Stack, journal: Journal
) -> None:
    stack.create(journal.url("/"), cron="30 8 * * *", name="Dunning letters", tags=["billing"])
    stack.create(journal.url("/"), cron="0 11 * * *", name="Later", tags=["billing"])
    stack.create(journal.url("/"), cron="0 9 * * *", name="Of others", tags=["crm"])
    today = datetime.now(UTC).date()
    monday = today + timedelta(days=7 - today.weekday())
    page.goto("/")
    clicks = Clicks()
    clicks.on(page.get_by_role("navigation", name="Main").get_by_role("link", name="Activity"))
    clicks.on(page.get_by_role("navigation", name="Activity").get_by_role("link", name="Calendar"))
    fill(page, "tag", "billing")
    page.locator("#c-on").fill(monday.isoformat())
    page.get_by_test_id("tag").press("Enter")
    expect(page).to_have_url(re.compile("tag=billing"))
    clicks.on(page.locator(f'td[data-day="{monday.isoformat()}"]').get_by_test_id("comes"))
    named = page.get_by_test_id("agenda-day").get_by_test_id("named")
    expect(named).to_have_text(["08:30 Dunning letters", "11:00 Later"])
    assert clicks.count <= 3


def test_who_changed_a_schedule_and_which_runs_that_moved_is_on_its_page(
    page: Page, stack: Stack, journal: Journal
) -> None:
    made = stack.create(journal.url("/"), cron="0 7 * * 1", name="Moved report", tags=["moved"])
    answer = requests.put(
        f"{stack.url}/api/schedules/{made}",
        json={"cron": "0 6 * * 1"},
        headers={"X-Scheduler-Note": "before stand-up"},
    )
    assert answer.ok
    page.goto("/schedules")
    clicks = Clicks()
    clicks.on(page.get_by_role("link", name="Moved report"))
    change = page.get_by_test_id("an-edit")
    expect(change).to_contain_text("before stand-up")
    expect(change.get_by_test_id("edited-times")).to_contain_text("06:00")
    expect(change.get_by_test_id("edited-times")).to_contain_text("07:00")
    assert clicks.count <= 3
    use(page, "revert")
    expect(page.get_by_test_id("done")).to_be_visible()

"""Destinations and messages are made, changed and taken away in the browser, down to what their receivers
see."""

import re
from datetime import UTC, datetime, timedelta

import requests
from playwright.sync_api import Page, expect

from tests.acceptance.journal import Journal
from tests.acceptance.pages.story import expect_rows, fill, use
from tests.acceptance.stack import Stack
from tests.integration.actions.receiver import says
from tests.processes import wait_until


def test_a_destination_is_made_called_paused_changed_and_deleted_once_nothing_needs_it(
    page: Page, stack: Stack, journal: Journal
) -> None:
    api = f"{stack.url}/api/destinations/crm"
    page.goto("/destinations")
    expect(page.get_by_test_id("empty")).to_be_visible()
    use(page, "new-destination")
    fill(page, "name", "crm")
    fill(page, "url", "gopher://127.0.0.1/")
    fill(page, "concurrency", "4")
    use(page, "save")
    expect(page.get_by_test_id("wrong-url")).to_contain_text("http")
    fill(page, "url", journal.url("/crm"))
    use(page, "save")
    expect(page.get_by_test_id("done")).to_have_text("Created.")
    use(page, "test-call")
    expect(page.get_by_test_id("tested")).to_contain_text("Answered 200")
    assert len(journal.calls["/crm"]) == 1
    use(page, "pause")
    expect(page.get_by_test_id("done")).to_have_text("Paused.")
    use(page, "resume")
    expect(page.get_by_test_id("done")).to_have_text("Resumed.")
    use(page, "edit")
    expect(page.get_by_test_id("concurrency")).to_have_value("4")
    fill(page, "breaker_failures", "3")
    fill(page, "breaker_open_seconds", "30")
    use(page, "save")
    expect(page.get_by_test_id("done")).to_have_text("Saved.")
    found = requests.get(api).json()
    assert (found["concurrency"], found["breaker"]["failures"], found["paused"]) == (4, 3, False)
    made = stack.post(
        "/schedules", {"name": "Needs it", "destination": "crm", "every_seconds": 86_400}, status=201
    )["id"]
    use(page, "edit")
    use(page, "delete")
    use(page, "confirm")
    expect(page.get_by_test_id("refused")).to_contain_text("1 schedule names the destination")
    use(page, "its-schedules")
    expect(page).to_have_url(re.compile("destination=crm"))
    expect_rows(page, 1)
    use(page, "select-all")
    use(page, "delete")
    use(page, "confirm")
    expect(page.get_by_test_id("done")).to_have_text("1 deleted.")
    assert requests.get(f"{stack.url}/api/schedules/{made}").status_code == 404
    page.goto("/destinations/crm/edit")
    use(page, "delete")
    use(page, "confirm")
    expect(page.get_by_test_id("done")).to_have_text("Deleted.")
    assert requests.get(api).status_code == 404


def test_closed_days_are_shown_while_they_are_typed(page: Page, stack: Stack) -> None:
    page.goto("/calendars")
    use(page, "new-calendar")
    fill(page, "name", "zurich")
    fill(page, "country", "CH")
    expect(page.get_by_test_id("days")).to_contain_text("Christmas Day")
    page.get_by_label("One a line").fill(f"{datetime.now(UTC) + timedelta(days=2):%Y-%m-%d} Our own day")
    expect(page.get_by_test_id("days")).to_contain_text("Our own day")
    assert requests.get(f"{stack.url}/api/calendars/zurich").status_code == 404, "nothing is saved yet"
    use(page, "save")
    expect(page.get_by_test_id("calendar")).to_contain_text("Our own day")


def test_the_text_for_the_customer_is_copied(page: Page, stack: Stack, journal: Journal) -> None:
    made = stack.create(journal.script("/gone", says("404 Not Found")), name="Report", on_demand=True)
    stack.post(f"/schedules/{made}/trigger", status=202)
    (event,) = stack.finished(made)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"/events/{event['_id']}")
    button = page.get_by_role("button", name="Copy this text")
    button.click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    called, answered, reference = copied.split("\n\n")
    assert called.endswith("for “Report”, on time.") or "late" in called
    assert answered.startswith("Your server answered 404 Not Found")
    assert reference == f"Reference: {event['_id']}"


def test_a_message_is_made_moved_to_another_time_delivered_and_another_one_cancelled(
    page: Page, stack: Stack, journal: Journal
) -> None:
    page.goto("/messages")
    use(page, "new-message")
    fill(page, "event_name", "order.shipped")
    page.get_by_test_id("when").press_sequentially("in 2 hours")
    expect(page.get_by_test_id("delivery")).to_contain_text("in 2 hours")
    fill(page, "url", journal.url("/order"))
    fill(page, "body", '{"order": 17}')
    use(page, "save")
    expect(page.get_by_test_id("done")).to_have_text("Created.")
    expect(page.get_by_test_id("subject")).to_have_text("order.shipped")
    (message,) = requests.get(f"{stack.url}/api/messages").json()["messages"]
    later = datetime.fromisoformat(message["scheduled_at"]) - datetime.now(UTC)
    assert timedelta(minutes=115) < later < timedelta(minutes=121)
    use(page, "reschedule")
    expect(page.get_by_test_id("done")).to_have_text("Rescheduled.")
    wait_until(lambda: bool(journal.calls["/order"]), "it to be delivered")
    seen = journal.calls["/order"][0].seen
    assert (seen.body, seen.headers["x-scheduler-event-name"]) == (b'{"order":17}', "order.shipped")
    page.goto("/new-message")
    fill(page, "when", "tomorrow at 9:00")
    fill(page, "url", journal.url("/never"))
    use(page, "save")
    use(page, "cancel")
    expect(page.get_by_test_id("done")).to_have_text("Cancelled.")
    expect(page.get_by_test_id("state")).to_contain_text("Cancelled")


def test_both_forms_are_used_without_javascript(scriptless_page: Page, journal: Journal) -> None:
    page = scriptless_page
    page.goto("/new-destination")
    fill(page, "name", "plain")
    fill(page, "url", journal.url("/plain"))
    use(page, "save")
    expect(page.get_by_test_id("done")).to_have_text("Created.")
    page.goto("/new-message")
    fill(page, "destination", "plain")
    fill(page, "when", "in 3 hours")
    use(page, "save")
    expect(page.get_by_test_id("done")).to_have_text("Created.")
    use(page, "cancel")
    expect(page.get_by_test_id("done")).to_have_text("Cancelled.")


def test_a_tag_is_stopped_at_once_which_every_page_says_and_let_go_on(
    page: Page, stack: Stack, journal: Journal
) -> None:
    made = stack.create(journal.url("/stopped"), on_demand=True, tags=["stopped-tag"])
    page.goto("/stops")
    expect(page.get_by_test_id("none-on")).to_be_visible()
    fill(page, "stop-named", "stopped-tag")
    fill(page, "stop-note", "restore of the database")
    use(page, "stop")
    expect(page.get_by_test_id("switch")).to_contain_text("stopped-tag")
    page.goto("/schedules")
    banner = page.get_by_test_id("kill-switch")
    expect(banner).to_contain_text("restore of the database")
    stack.post(f"/schedules/{made}/trigger", status=202)
    page.goto("/stops")
    use(page, "turn-off")
    expect(page.get_by_test_id("done")).to_have_text("Released.")
    stack.finished(made)
    page.goto("/schedules")
    expect(banner).to_have_count(0)
    page.goto("/stops")
    use(page, "new-blackout")
    fill(page, "name", "night")
    fill(page, "when", "every day at 1:00")
    fill(page, "minutes", "30")
    use(page, "save-blackout")
    expect(page.get_by_test_id("blackout")).to_contain_text("30 min")
    use(page, "delete-blackout")
    expect(page.get_by_test_id("no-blackout")).to_be_visible()

"""A part of a schedule's history is chosen on its chart, or by two times where there is no script."""

import re
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, expect

from scheduler_app.domain.event import scheduled
from scheduler_app.domain.states import State
from scheduler_app.store import Mongo
from scheduler_app.store.events.outcomes import PastEvent, PastEvents
from tests.acceptance.journal import Journal
from tests.acceptance.pages.story import fill, use
from tests.acceptance.stack import Stack

EVENTS = 100
MINUTE = timedelta(minutes=1)
BEGIN = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.fixture
def schedule_id(stack: Stack, journal: Journal) -> str:
    """A schedule with an event each minute from BEGIN on, each later than the one before."""
    made = stack.create(journal.url("/past"), on_demand=True)
    mongo = Mongo(stack.environment["MONGO_URI"], stack.environment["MONGO_DATABASE"])
    past = []
    for number in range(EVENTS):
        at = BEGIN + number * MINUTE
        attempt = {"number": 1, "started_at": at, "duration_ms": 5.0, "lag_ms": 10.0 * (number + 1)}
        event = scheduled(made, 1, at, "http://127.0.0.1")
        past.append(PastEvent(event, State.COMPLETED, at, "Attempt 1 succeeded", [attempt]))
    PastEvents(mongo).insert(past)
    mongo.close()
    return made


def test_what_is_dragged_over_on_the_chart_is_in_the_table_and_in_the_address(
    page: Page, schedule_id: str
) -> None:
    page.goto(f"/schedules/{schedule_id}")
    chart = page.get_by_test_id("scatter")
    dots = chart.locator("circle")
    expect(dots).to_have_count(EVENTS)
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box
    left, right = (box["x"] + box["width"] * share for share in (0.3, 0.6))
    page.mouse.move(left, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(right, box["y"] + 60, steps=5)
    page.mouse.up()
    expect(page.get_by_test_id("all-times")).to_be_visible()
    asked = parse_qs(urlsplit(page.url).query)
    since, until = (datetime.fromisoformat(asked[name][0]) for name in ("from", "to"))
    # The plot is from 40 to 596 of 600 units; 99 minutes lie between the first event and the last.
    for found, share in ((since, 0.3), (until, 0.6)):
        expected = BEGIN + (share * 600 - 40) / 556 * 99 * MINUTE
        assert abs(found - expected) < 2 * MINUTE
    inside = sum(since <= BEGIN + number * MINUTE < until for number in range(EVENTS))
    expect(dots).to_have_count(inside)
    rows = page.locator("#live tbody tr")
    expect(rows).to_have_count(20)
    newest = max(number for number in range(EVENTS) if BEGIN + number * MINUTE < until)
    expect(rows.first).to_contain_text(f"{BEGIN + newest * MINUTE:%H:%M}")
    page.reload()
    expect(dots).to_have_count(inside)
    page.go_back()
    expect(dots).to_have_count(EVENTS)
    dots.first.click()
    # A click alone still opens an event.
    expect(page).to_have_url(re.compile("/events/"))


def test_without_javascript_two_times_choose_the_same(scriptless_page: Page, schedule_id: str) -> None:
    page = scriptless_page
    page.goto(f"/schedules/{schedule_id}")
    fill(page, "from", "2026-03-02T12:10")
    fill(page, "to", "2026-03-02T12:15:00Z")
    use(page, "choose")
    expect(page.get_by_test_id("scatter").locator("circle")).to_have_count(5)
    expect(page.locator("#live tbody tr")).to_have_count(5)
    use(page, "show-duration")
    expect(page.locator("#live tbody tr")).to_have_count(5)
    use(page, "all-times")
    expect(page.get_by_test_id("scatter").locator("circle")).to_have_count(EVENTS)

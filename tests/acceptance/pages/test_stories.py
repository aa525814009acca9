"""What people come to the pages for, from their aim to its effect in the API, in a real browser."""

import json
import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import requests
from playwright.sync_api import Browser, Locator, Page, Route, expect
from pymongo import MongoClient

from scheduler_app.domain.action import origin_of
from scheduler_app.domain.event import scheduled
from scheduler_app.domain.states import State
from scheduler_app.store import Mongo
from scheduler_app.store.events.outcomes import PastEvent, PastEvents
from tests.acceptance.journal import Journal
from tests.acceptance.pages.browser import watched_page
from tests.acceptance.pages.story import expect_rows, fill, use
from tests.acceptance.shared_stack import SharedStack
from tests.acceptance.stack import Stack
from tests.integration.actions.receiver import says
from tests.processes import wait_until


def test_a_first_schedule_is_made_in_plain_words_fires_fails_and_is_sent_again(
    page: Page, stack: Stack, journal: Journal
) -> None:
    url = journal.script("/first", says("404 Not Found"), says())
    page.goto("/")
    expect(page.get_by_test_id("empty")).to_contain_text("There is no schedule yet")
    use(page, "new-schedule")
    fill(page, "name", "Nightly report")
    page.get_by_test_id("when").press_sequentially("every day at 9:00")
    expect(page.get_by_test_id("preview")).to_contain_text("day")
    expect(page.get_by_test_id("preview").locator("li")).to_have_count(5)
    fill(page, "url", url)
    use(page, "save")
    expect(page.get_by_test_id("done")).to_have_text("Created.")
    expect(page.get_by_test_id("occurrences").locator("li")).to_have_count(20)
    (made,) = requests.get(f"{stack.url}/api/schedules").json()["schedules"]
    assert (made["name"], made["phrase"], made["callback_url"]) == (
        "Nightly report",
        "every day at 9:00",
        url,
    )
    use(page, "trigger")
    (event,) = stack.finished(made["id"])
    assert event["state"] == "error"
    page.goto("/dead-letters")
    expect(page.get_by_test_id("cause")).to_contain_text("404")
    page.goto(f"/events/{event['_id']}")
    expect(page.get_by_test_id("state")).to_contain_text("Failed")
    use(page, "send-again")
    expect(page.get_by_test_id("done")).to_have_text("Sent again.")
    stack.finished(made["id"])
    expect(page.get_by_test_id("state")).to_contain_text("Done")
    expect(page.get_by_test_id("attempt")).to_have_count(2)
    assert len(journal.calls["/first"]) == 2


def test_dead_letters_of_one_cause_are_sent_again_together(
    page: Page, stack: Stack, journal: Journal
) -> None:
    broken = journal.script("/broken", *[says("410 Gone")] * 3, says())
    other = journal.script("/other", says("404 Not Found"))
    alike = stack.create_many(3, broken, every_seconds=86_400)
    (single,) = stack.create_many(1, other, every_seconds=86_400)
    for each in (*alike, single):
        stack.post(f"/schedules/{each}/trigger", status=202)
        assert stack.finished(each)[0]["state"] == "error"
    page.goto("/dead-letters")
    cause = cause_of(page, "410 Gone")
    expect(cause).to_contain_text("3")
    cause.get_by_test_id("send-again").click()
    expect(page.get_by_test_id("done")).to_have_text("3 sent again.")
    for each in alike:
        stack.finished(each)
        assert stack.events(each)[0]["state"] == "completed"
    assert stack.events(single)[0]["state"] == "error"


def test_what_a_receiver_refused_is_sent_again_at_a_rate_from_the_first_page(
    page: Page, stack: SharedStack, journal: Journal
) -> None:
    stack.empty()
    url = journal.script("/refused", *[says("403 Forbidden")] * 3, says())
    alike = stack.create_many(3, url, every_seconds=86_400, tags=["customer:acme"])
    for each in alike:
        stack.post(f"/schedules/{each}/trigger", status=202)
        assert stack.finished(each)[0]["state"] == "error"
    page.goto("/")
    issue = page.get_by_test_id("to-do").locator("li").filter(has_text="403 Forbidden")
    expect(issue).to_contain_text("3 schedules")
    issue.get_by_test_id("send-again").click()
    page.get_by_test_id("rate").select_option(label="5 a second")
    use(page, "preview")
    expect(page.get_by_test_id("plan")).to_contain_text("3 runs would be sent")
    use(page, "send-again")
    expect(page.get_by_test_id("redrive")).to_contain_text("3 runs sent again")
    wait_until(
        lambda: [event["state"] for each in alike for event in stack.events(each)] == ["completed"] * 3,
        "them to be sent again",
    )


def test_schedules_are_found_by_tag_and_paused_together(page: Page, stack: Stack, journal: Journal) -> None:
    url = journal.url("/tagged")
    tagged = stack.create_many(3, url, every_seconds=3_600, tags=["billing"])
    page.goto("/schedules")
    use(page, "chip-tag")
    fill(page, "tag-wanted", "billing")
    use(page, "filter")
    # The filter is in the address, to be passed on.
    expect(page).to_have_url(re.compile("tag=billing"))
    expect_rows(page, 3)
    page.get_by_test_id("select-all").check()
    use(page, "pause")
    expect(page.get_by_test_id("done")).to_have_text("3 paused.")
    states = [stack_state(stack, each) for each in tagged]
    assert states == ["paused"] * 3


def test_a_deletion_is_confirmed_first(page: Page, stack: Stack, journal: Journal) -> None:
    made = stack.create(journal.url("/gone"), every_seconds=3_600)
    page.goto(f"/schedules/{made}")
    use(page, "more")
    use(page, "delete")
    assert stack_state(stack, made) == "active"
    use(page, "confirm")
    expect(page.get_by_test_id("done")).to_have_text("1 deleted.")
    assert requests.get(f"{stack.url}/api/schedules/{made}").status_code == 404


def test_a_form_says_what_is_wrong_beside_the_field_and_keeps_what_was_written(page: Page) -> None:
    page.goto("/new-schedule")
    fill(page, "name", "Odd")
    page.get_by_test_id("when").press_sequentially("every blue moon")
    expect(page.get_by_test_id("not-understood")).to_be_visible()
    fill(page, "url", "gopher://example.com/")
    use(page, "save")
    expect(page.get_by_test_id("wrong-url")).to_contain_text("http")
    expect(page.get_by_test_id("name")).to_have_value("Odd")
    expect(page.get_by_test_id("when")).to_have_value("every blue moon")


def test_the_pages_are_read_and_used_without_javascript(scriptless_page: Page, stack: Stack) -> None:
    scriptless_page.goto("/new-schedule")
    fill(scriptless_page, "name", "Plain")
    fill(scriptless_page, "when", "FREQ=WEEKLY;BYDAY=MO")
    fill(scriptless_page, "url", "https://example.com/")
    use(scriptless_page, "save")
    expect(scriptless_page.get_by_test_id("done")).to_have_text("Created.")


def stack_state(stack: Stack, schedule_id: str) -> str:
    state: str = requests.get(f"{stack.url}/api/schedules/{schedule_id}").json()["state"]
    return state


def test_a_first_schedule_calls_the_built_in_receiver_which_is_broken_and_mended(
    page: Page, stack: Stack
) -> None:
    page.goto("/new-schedule")
    fill(page, "name", "First of all")
    fill(page, "when", "on demand")
    use(page, "use-own-receiver")
    use(page, "test-call")
    expect(page.get_by_test_id("tested")).to_contain_text("Answered 200")
    use(page, "save")
    expect(page.get_by_test_id("done")).to_have_text("Created.")
    made = page.url.rpartition("/")[2].partition("?")[0]
    use(page, "edit")
    url = page.get_by_test_id("url").input_value()
    assert url == f"{stack.url}/echo"
    fill(page, "url", f"{url}/404")
    use(page, "test-call")
    expect(page.get_by_test_id("tested")).to_contain_text("Answered 404")
    use(page, "save")
    expect(page.get_by_test_id("done")).to_have_text("Saved.")
    use(page, "trigger")
    expect(page.locator("#live tbody tr").first).to_contain_text("404")
    expect(page.get_by_test_id("last-run")).to_contain_text("Failed")
    (event,) = stack.finished(made)
    assert event["state"] == "error"
    use(page, "edit")
    fill(page, "url", url)
    use(page, "save")
    expect(page.get_by_test_id("done")).to_have_text("Saved.")
    page.goto(f"/events/{event['_id']}")
    expect(page.get_by_test_id("attempt")).to_contain_text("404")
    use(page, "send-again")
    expect(page.get_by_test_id("done")).to_have_text("Sent again.")
    stack.finished(made)
    assert stack.events(made)[0]["state"] == "completed"


def test_the_zone_of_who_looks_is_offered_where_another_one_stands(browser: Browser, stack: Stack) -> None:
    for path in ("/new-schedule", "/new-message"):
        with watched_page(browser, stack.url, timezone_id="Europe/Berlin") as page:
            page.goto(path)
            expect(page.get_by_test_id("timezone")).to_have_value("Europe/Berlin")
            expect(page.get_by_test_id("own-zone")).to_be_hidden()
            fill(page, "timezone", "Asia/Tokyo")
            use(page, "own-zone")
            expect(page.get_by_test_id("timezone")).to_have_value("Europe/Berlin")
            expect(page.get_by_test_id("own-zone")).to_be_hidden()


def test_the_first_page_of_a_browser_is_in_its_zone(browser: Browser, stack: Stack) -> None:
    with watched_page(browser, stack.url, timezone_id="Asia/Tokyo") as page:
        page.goto("/")
        expect(page.locator("html")).to_have_attribute("data-zone", "Asia/Tokyo")


def test_an_edit_shows_what_it_adds_removes_and_cancels_before_it_is_saved(
    page: Page, stack: Stack, journal: Journal
) -> None:
    made = stack.create(journal.url("/edited"), every_seconds=120, headers={"X-Token": "kept-secret"})
    page.goto(f"/schedules/{made}")
    use(page, "edit")
    expect(page.get_by_test_id("when")).to_have_value("every_seconds: 120")
    expect(page.get_by_test_id("headers")).not_to_contain_text("kept-secret")
    fill(page, "when", "every_seconds: 360")
    effect = page.get_by_test_id("effect")
    expect(effect.get_by_test_id("removed")).to_be_visible()
    expect(effect.get_by_test_id("cancelled")).to_contain_text("cancelled")
    assert stack_state(stack, made) == "active"
    assert requests.get(f"{stack.url}/api/schedules/{made}").json()["every_seconds"] == 120
    use(page, "save")
    expect(page.get_by_test_id("done")).to_have_text("Saved.")
    after = requests.get(f"{stack.url}/api/schedules/{made}").json()
    assert after["every_seconds"] == 360
    use(page, "trigger")
    stack.finished(made)
    assert journal.calls["/edited"][0].seen.headers["x-token"] == "kept-secret"


def test_while_the_server_looks_at_an_edit_a_later_edit_takes_its_place(
    page: Page, stack: Stack, journal: Journal
) -> None:
    made = stack.create(journal.url("/edited"), every_seconds=120)
    held: list[Route] = []
    page.route("**/effect", lambda route: route.continue_() if held else held.append(route))
    with page.expect_request("**/effect"):
        page.goto(f"/schedules/{made}/edit")
    fill(page, "when", "every_seconds: 360")
    expect(page.get_by_test_id("effect").get_by_test_id("removed")).to_be_visible()


def test_a_rule_is_picked_and_written_in_other_ways(page: Page) -> None:
    page.goto("/new-schedule")
    use(page, "picker")
    page.get_by_test_id("pick-kind").select_option("weekly")
    for day in ("tu", "we", "th", "fr"):
        page.get_by_test_id(f"pick-{day}").uncheck()
    page.get_by_test_id("pick-time").fill("07:45")
    expect(page.get_by_test_id("when")).to_have_value("FREQ=WEEKLY;BYDAY=MO;BYHOUR=7;BYMINUTE=45;BYSECOND=0")
    expect(page.get_by_test_id("in-words")).to_contain_text("07:45")
    use(page, "use-cron")
    expect(page.get_by_test_id("when")).to_have_value("45 7 * * 1")
    fill(page, "when", "every 2 hours")
    expect(page.get_by_test_id("pick-kind")).to_have_value("interval")
    expect(page.get_by_test_id("pick-minutes")).to_have_value("120")
    fill(page, "when", "0 18 15 * *")
    expect(page.get_by_test_id("pick-kind")).to_have_value("monthly")
    expect(page.get_by_test_id("pick-day")).to_have_value("15")
    expect(page.get_by_test_id("pick-time")).to_have_value("18:00")
    expect(page.get_by_test_id("not-shown")).to_be_hidden()
    fill(page, "when", "FREQ=DAILY;COUNT=3")
    expect(page.get_by_test_id("not-shown")).to_be_visible()
    page.get_by_test_id("pick-kind").select_option("working_hours")
    fill(page, "pick-time", "08:00")
    fill(page, "pick-minutes", "7")
    expect(page.get_by_test_id("not-picked")).to_contain_text("divide an hour")


def test_all_that_a_filter_finds_is_changed_with_its_number_and_a_pause_is_undone(
    page: Page, stack: Stack, journal: Journal
) -> None:
    url = journal.url("/many")
    many = stack.create_many(60, url, every_seconds=7_200, tags=["many"])
    page.goto("/schedules?tag=many")
    expect_rows(page, 50)
    page.get_by_test_id("every").check()
    use(page, "pause")
    expect(page.locator("h1")).to_have_text("Pause 60 schedules?")
    assert stack_state(stack, many[0]) == "active"
    use(page, "confirm")
    expect(page.get_by_test_id("done")).to_have_text("60 paused.")
    assert {stack_state(stack, each) for each in (many[0], many[30], many[59])} == {"paused"}
    page.get_by_test_id("select").nth(0).check()
    page.get_by_test_id("select").nth(1).check()
    fill(page, "tag-name", "chosen")
    use(page, "tag")
    expect(page.get_by_test_id("done")).to_have_text("2 tagged.")
    page.goto("/schedules?tag=chosen")
    expect_rows(page, 2)
    page.get_by_test_id("select-all").check()
    use(page, "resume")
    use(page, "undo")
    expect(page.get_by_test_id("done")).to_have_text("2 paused.")


def test_the_overview_tells_what_failed_how_late_and_what_to_do(
    page: Page, stack: Stack, journal: Journal
) -> None:
    made = stack.create(journal.script("/odd", says("418 I'm a teapot")), every_seconds=86_400)
    stack.post(f"/schedules/{made}/trigger", status=202)
    stack.finished(made)
    page.goto("/")
    expect(page.get_by_test_id("verdict")).to_contain_text(re.compile("needs? you"))
    expect(page.get_by_test_id("to-do")).to_contain_text("418")
    expect(page.get_by_test_id("now-and-next").locator("svg")).to_be_visible()
    expect(page.get_by_test_id("lag")).to_contain_text(re.compile(r"\d (ms|s|min)\s*half of all runs"))
    expect(page.locator("svg rect").first).to_be_attached()
    use(page, "pause-live")
    expect(page.get_by_test_id("pause-live")).to_have_attribute("aria-pressed", "true")


def test_by_keyboard_alone_the_dead_letters_of_one_cause_among_ten_thousand_are_sent_again(
    browser: Browser, stack: SharedStack, journal: Journal
) -> None:
    stack.empty()
    broken, other = journal.url("/mended"), journal.url("/other")
    alike = stack.create(broken, on_demand=True, name="Alike")
    others = stack.create(other, on_demand=True, name="Others")
    now = datetime.now(UTC).replace(microsecond=0)
    with MongoClient[dict[str, Any]](stack.environment["MONGO_URI"]) as client:
        mongo = Mongo(stack.environment["MONGO_URI"], stack.environment["MONGO_DATABASE"])
        past = [
            dead_letter(owner, url, now - timedelta(seconds=number), status)
            for owner, url, status, count in ((alike, broken, 410, 500), (others, other, 404, 9_500))
            for number in range(1, count + 1)
        ]
        PastEvents(mongo).insert(past)
        mongo.close()
        events = client[stack.environment["MONGO_DATABASE"]]["events"]
        with watched_page(browser, stack.url) as page:
            page.goto("/")
            page.keyboard.press("Control+k")
            page.keyboard.type("dead")
            expect(page.get_by_test_id("found").get_by_role("link")).to_have_count(1)
            page.keyboard.press("Enter")
            expect(page.get_by_test_id("cause")).to_have_count(2)
            page.wait_for_load_state()
            page.keyboard.press("j")
            page.keyboard.press("j")
            expect(page.locator("tr.at")).to_contain_text("410")
            page.keyboard.press("s")
            expect(page.get_by_test_id("done")).to_have_text("500 sent again.")
        sent = {"schedule_id": alike, "state": "completed"}
        wait_until(lambda: events.count_documents(sent) == 500, "500 to be sent")
        assert events.count_documents({"schedule_id": others, "state": "error"}) == 9_500
    assert len(journal.calls["/mended"]) == 500
    assert "/other" not in journal.calls


def dead_letter(schedule_id: str, url: str, run_time: datetime, status: int) -> PastEvent:
    made = scheduled(schedule_id, 1, run_time, origin_of(url))
    attempt = {"number": 1, "started_at": run_time, "duration_ms": 5.0, "lag_ms": 1.0, "status_code": status}
    return PastEvent(made, State.ERROR, run_time, "Attempt 1 failed", [attempt])


def test_dead_letters_are_sent_again_at_a_rate_dismissed_and_exported(
    page: Page, stack: Stack, journal: Journal
) -> None:
    slow = stack.create_many(
        3, journal.script("/slowly", *[says("406 Not")] * 3, says()), every_seconds=86_400
    )
    gone = stack.create_many(2, journal.script("/never", says("405 Not")), every_seconds=86_400)
    for each in (*slow, *gone):
        stack.post(f"/schedules/{each}/trigger", status=202)
        assert stack.finished(each)[0]["state"] == "error"
    page.goto("/dead-letters")
    cause = cause_of(page, "406 Not Acceptable")
    with page.expect_download() as download:
        cause.get_by_test_id("export").click()
    lines = Path(download.value.path()).read_text().splitlines()
    assert {json.loads(line)["schedule_id"] for line in lines} == set(slow)
    cause.get_by_test_id("rate").select_option(label="1 a second")
    began = time.time()
    cause.get_by_test_id("send-again").click()
    expect(page.get_by_test_id("done")).to_have_text("3 sent again.")
    wait_until(lambda: len(journal.calls["/slowly"]) == 6, "them to be sent")
    last = max(call.at for call in journal.calls["/slowly"][3:])
    assert last >= began + 1.9, "the third of them comes two seconds after the first"
    cause_of(page, "405 Method Not Allowed").get_by_test_id("dismiss").click()
    expect(page.get_by_test_id("done")).to_have_text("2 dismissed.")
    assert stack.events(gone[0])[0]["state"] == "expired"


def cause_of(page: Page, answer: str) -> Locator:
    """The row of an answer. A status alone may also be part of another receiver's port."""
    return page.get_by_test_id("cause").filter(has_text=answer)


def test_what_ran_and_what_comes_stand_in_one_calendar(page: Page, stack: Stack, journal: Journal) -> None:
    made = stack.create(journal.url("/calendar"), every_seconds=86_400, tags=["calendar"], name="Daily")
    stack.post(f"/schedules/{made}/trigger", status=202)
    stack.finished(made)
    page.goto("/calendar?view=week&tag=calendar")
    expect(page.get_by_test_id("ran").first).to_contain_text("1")
    use(page, "after")
    expect(page.get_by_test_id("comes")).to_have_count(7)
    use(page, "comes")
    expect(page.get_by_test_id("agenda-day").first).to_contain_text("Daily")
    page.goto("/calendar?tag=calendar")
    use(page, "ran")
    # A cell leads to its events.
    expect(page).to_have_url(re.compile("/events"))
    expect_rows(page, 1)


def test_who_changed_it_is_shown_and_reverted_and_why_is_answered(
    page: Page, stack: Stack, journal: Journal
) -> None:
    made = stack.create(journal.url("/changed"), cron="0 9 * * 1", name="Before")
    stack.put(made, name="After")
    page.goto(f"/schedules/{made}")
    expect(page.get_by_test_id("an-edit")).to_contain_text("Before")
    use(page, "revert")
    expect(page.locator("h1")).to_have_text("Before")
    fill(page, "why-at", "2040-01-03T09:00:00Z")
    use(page, "why")
    expect(page.get_by_test_id("answer-why")).to_contain_text("No")
    expect(page.get_by_test_id("answer-why")).to_contain_text("Mon 9 Jan 2040")


def test_a_destination_is_paused_and_called_to_test_it(page: Page, stack: Stack, journal: Journal) -> None:
    url = f"{stack.url}/api/destinations/shop"
    given = {
        "url": journal.url("/shop"),
        "rate_per_second": 5,
        "breaker": {"failures": 3, "open_seconds": 30},
    }
    assert requests.put(url, json=given).ok
    page.goto("/destinations")
    use(page, "test-call")
    expect(page.get_by_test_id("tested")).to_contain_text("Answered 200")
    assert len(journal.calls["/shop"]) == 1
    use(page, "pause")
    expect(page.get_by_test_id("done")).to_have_text("Paused.")
    assert requests.get(url).json()["paused"] is True
    page.goto("/processes")
    expect(page.get_by_test_id("process")).to_have_count(3)

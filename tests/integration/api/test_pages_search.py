"""The page of a customer, and the search that leads to it."""

import html
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

from scheduler_app.api.pages import tag as tag_page
from scheduler_app.clock import clock
from scheduler_app.store import Store
from scheduler_app.usecases.duties.causes import CauseTending
from tests.builders import event
from tests.integration.api.test_pages import fail

Create = Callable[..., dict[str, Any]]


def test_a_customer_is_found_by_a_part_of_the_name(client: FlaskClient, create: Create) -> None:
    create(name="Monday report", tags=["customer:acme"])
    create(name="acme import", tags=["customer:acme"])
    page = client.get("/go?to=acme").text
    assert [html.unescape(each) for each in re.findall(r'data-test="hit">([^<]+)<', page)] == [
        "customer:acme",
        "acme import",
        "Monday report",
    ]
    assert "2 schedules" in page
    assert 'href="/tags?tag=customer:acme"' in page
    create(name="Umbra", tags=["customer:umbra"])
    answer = client.get("/go?to=acme imp")
    assert (answer.status_code, answer.headers["Location"].startswith("/schedules/")) == (303, True)


def test_what_is_not_found_has_nearest_names_and_says_what_was_searched(
    client: FlaskClient, create: Create
) -> None:
    create(name="Monday report", tags=["customer:acme"])
    page = client.get("/go?to=Acne").text
    assert re.findall(r'data-test="nearest">([^<]+)<', page) == ["customer:acme"]
    assert "Searched: names, tags" in page
    assert 'data-test="nearest">Monday report<' in client.get("/go?to=mondy report").text


def test_a_customer_sees_each_schedule_day_by_day_the_failed_one_first(
    client: FlaskClient, create: Create, store: Store
) -> None:
    noon = clock.now().replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(hours=12)
    later = "DTSTART:20400101T000000Z\nRRULE:FREQ=DAILY"
    fine = create(name="Fine", tags=["customer:acme"], rrule=later)["id"]
    broken = create(name="Broken", tags=["customer:acme"], rrule=later)
    create(name="Other", tags=["customer:initech"])
    for number in range(3):
        at = noon + timedelta(seconds=number)
        store.events.insert([event(at, fine)], at, "made")
        ended = {"$set": {"state": "completed", "archived_at": at}, "$unset": {"due_at": ""}}
        store.mongo.collection("events").update_one({"schedule_id": fine, "run_time": at}, ended)
    dead = fail(store, broken["id"], noon, 503)
    store.mongo.collection("schedules").update_one(
        {"_id": broken["id"]}, {"$set": {"last_run": {"time": noon, "outcome": "error", "event_id": dead}}}
    )
    page = client.get("/tags?tag=customer:acme").text
    assert re.findall(r'<th scope="row"><a class="nm"[^>]*>([^<]+)<', page) == ["Broken", "Fine"]
    assert "<h1>acme</h1>" in page
    assert "1 failed last" in page
    assert f'href="/events/{dead}" data-test="see-run"' in page
    assert re.search(r'data-test="cell-failed"><span class="vh">1 of 1 failed </span>12:00<', page)
    assert re.search(r'data-test="cell-ok"><span class="vh">Done </span>3<', page)


def test_what_comes_is_counted_and_what_is_left_out_is_said(
    client: FlaskClient, create: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(name="Hourly", tags=["t"], rrule="DTSTART:20200101T000000Z\nRRULE:FREQ=HOURLY")
    page = client.get("/tags?tag=t").text
    assert page.count('title="To come"') in (2, 3), "the rest of today, and two days"
    assert page.count('<span class="vh">To come </span>24<') == 2
    assert "left-out" not in page
    monkeypatch.setattr(tag_page, "MOST_SCHEDULES", 1)
    create(name="Another", tags=["t"])
    assert "The newest 1 schedules are shown" in client.get("/tags?tag=t").text
    assert "No schedule has this tag" in client.get("/tags?tag=none").text


def test_an_open_failure_that_touches_a_customer_is_told_with_a_way_to_it(
    client: FlaskClient, create: Create, store: Store
) -> None:
    made = create(name="Report", tags=["customer:acme"])["id"]
    fail(store, made, clock.now() - timedelta(minutes=3), 503)
    CauseTending(store).tend_page(clock.now())
    # The worker that records a failure tells the tags.
    store.mongo.collection("causes").update_one({}, {"$set": {"tags": {"names": ["customer:acme"]}}})
    page = client.get("/tags?tag=customer:acme").text
    assert re.search(r'data-test="open-failure">.*href="/failures/[^"]+">See the cause<', page)


def test_a_customer_sees_what_was_changed_of_its_schedules_and_by_whom(
    client: FlaskClient, create: Create
) -> None:
    report = create(name="Report", tags=["customer:acme"])["id"]
    other = create(name="Other")["id"]
    said = {"X-Scheduler-Note": "same for all"}
    assert (
        client.put(f"/api/schedules/{report}", json={"timeout_seconds": 12}, headers=said).status_code == 200
    )
    client.put(f"/api/schedules/{other}", json={"timeout_seconds": 12})
    client.post(f"/api/schedules/{report}/pause")
    page = client.get("/tags?tag=customer:acme").text
    changes = page.partition('data-test="changes"')[2].partition("</ul>")[0].split('data-test="a-change"')[1:]
    assert len(changes) == 2
    assert "paused" in changes[0], "the newest first"
    for words in ("Somebody", "edited", f'href="/schedules/{report}#changes">Report<', "same for all"):
        assert words in changes[1], words
    assert "Other" not in page.partition("<main")[2]
    assert 'data-test="changes"' not in client.get("/tags?tag=nobody").text


def test_all_schedules_of_a_customer_are_paused_after_their_number_was_seen(
    client: FlaskClient, create: Create
) -> None:
    made = [create(tags=["customer:acme"])["id"] for _ in range(2)]
    page = client.get("/tags?tag=customer:acme").text
    form = page.partition('action="/schedules/selected"')[2].partition("</form>")[0]
    given = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form))
    asked = client.post("/schedules/selected", data=given).text
    assert "Pause 2 schedules?" in asked
    client.post("/schedules/selected", data=given | {"confirmed": "yes"})
    assert {client.get(f"/api/schedules/{each}").get_json()["state"] for each in made} == {"paused"}

"""The list of schedules, and one of them: what needs a person first, and what is done to many."""

import html
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

from scheduler_app.api.pages import schedules as schedules_page
from scheduler_app.clock import clock
from scheduler_app.store import Store
from tests.builders import event
from tests.integration.api.page_forms import form_token

Create = Callable[..., dict[str, Any]]


def names(page: str) -> list[str]:
    return re.findall(r"data-open>([^<]*)</a>", page)


def failed_last(store: Store, schedule_id: str) -> None:
    store.mongo.collection("schedules").update_one(
        {"_id": schedule_id}, {"$set": {"last_run": {"time": clock.now(), "outcome": "error", "id": "e"}}}
    )


def test_those_that_failed_last_come_first_and_once(
    client: FlaskClient, create: Create, store: Store
) -> None:
    made = [create(name=f"n{number}")["id"] for number in range(4)]
    failed_last(store, made[0])
    page = client.get("/schedules").text
    assert names(page) == ["n0", "n3", "n2", "n1"]
    assert names(client.get("/schedules?order=newest").text) == ["n3", "n2", "n1", "n0"]
    views = dict(re.findall(r'data-test="view-(\w+)">\w+ <span>([^<]+)<', page))
    assert views == {"all": "4", "failing": "1", "paused": "0"}


def test_a_long_list_with_failures_shows_each_once_page_by_page(
    client: FlaskClient, create: Create, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduler_app.api.pages.forms.ROWS", 4)
    for number in range(9):
        made = create(name=f"n{number}")
        if number < 3:
            failed_last(store, made["id"])
    found, address = list[str](), "/schedules"
    for _ in range(9):
        page = client.get(address).text
        assert len(names(page)) <= 4, "no more can be selected than are changed at once"
        found += names(page)
        following = re.search(r'<a href="([^"]+)" data-test="next-page"', page)
        if not following:
            break
        address = html.unescape(following[1])
    assert set(found) == {f"n{number}" for number in range(9)}
    assert set(found[:2]) <= {"n0", "n1", "n2"}


def test_a_view_says_no_more_than_that_there_are_many(
    client: FlaskClient, create: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedules_page, "MOST_IN_VIEW", 2)
    for _ in range(3):
        create()
    assert re.search(r'data-test="view-all">All <span>2\+<', client.get("/schedules").text)


def test_the_next_runs_within_a_time_are_found(client: FlaskClient, create: Create) -> None:
    now = clock.now().replace(microsecond=0)
    for name, hours in (("late", 30), ("soon", 2), ("sooner", 0.5)):
        create(name=name, run_at=(now + timedelta(hours=hours)).isoformat())
    assert names(client.get("/schedules?within=24h").text) == ["sooner", "soon"]
    assert names(client.get("/schedules?within=1h").text) == ["sooner"]
    form = {"form_token": form_token(client, "/new-schedule"), "verb": "pause", "every": "yes"}
    answer = client.post("/schedules/selected", data=form | {"within": "24h"})
    assert answer.status_code == 422, "paused ones have no next run: the filter would lose its own"


def test_a_filter_that_is_on_is_dropped_by_its_chip_and_the_others_stay(
    client: FlaskClient, create: Create
) -> None:
    create(tags=["a"])
    page = client.get("/schedules?tag=a&state=active&order=name").text
    (without,) = re.findall(r'href="([^"]+)" data-test="drop-state"', page)
    assert html.unescape(without) == "/schedules?tag=a&order=name"
    assert "State: Active" in page


def test_what_a_stop_switch_holds_says_so(client: FlaskClient, create: Create) -> None:
    held = create(name="held", tags=["stock"])
    create(name="free")
    client.put("/api/kill-switch", json={"tag": "stock"})
    page = client.get("/schedules").text
    assert page.count('data-test="held"') == 1
    assert "Held: the tag stock" in page
    assert "a stop switch is on for the tag stock" in client.get(f"/schedules/{held['id']}").text


@pytest.mark.parametrize("verb", ["delete", "trigger"])
def test_what_is_not_undone_is_asked_first_says_what_it_does_and_keeps_the_filter(
    client: FlaskClient, create: Create, verb: str
) -> None:
    made = [create(tags=["a"])["id"] for _ in range(2)]
    form = {
        "form_token": form_token(client, "/new-schedule"),
        "verb": verb,
        "selected": made,
        "tag": "a",
        "order": "name",
    }
    asked = client.post("/schedules/selected", data=form).text
    assert html.unescape(schedules_page.ACTS[verb].effect) in html.unescape(asked)
    assert client.get("/api/events").json["events"] == []  # type: ignore[index]
    again = dict(re.findall(r'type="hidden" name="([^"]*)" value="([^"]*)"', asked.partition("<main")[2]))
    assert (again["tag"], again["order"], again["confirmed"]) == ("a", "name", "yes")
    done = client.post("/schedules/selected", data=form | {"confirmed": "yes"})
    where = done.headers["Location"]
    assert ("tag=a" in where, "order=name" in where, "count=2" in where) == (True, True, True)


def test_a_schedule_says_first_what_is_wrong_with_it(
    client: FlaskClient, create: Create, store: Store
) -> None:
    made = create(name="n", timeout_seconds=30, run_overlap="skip", catch_up="none")["id"]
    fine = client.get(f"/schedules/{made}").text
    assert 'data-test="what-is-wrong"' not in fine
    for words in (
        "answers within 30 s",
        "skips when the one before still runs",
        "leaves missed times out",
    ):
        assert words in fine
    client.post(f"/api/schedules/{made}/pause", json={"note": "stocktaking"})
    paused = client.get(f"/schedules/{made}").text
    assert "It is paused" in paused
    assert "stocktaking" in paused
    failed = event(clock.now() - timedelta(minutes=5), made)
    store.events.insert([failed], clock.now(), "made")
    attempt = {"number": 2, "status_code": 503, "error": None}
    store.mongo.collection("events").update_one(
        {"_id": failed.id},
        {
            "$set": {
                "state": "error",
                "archived_at": clock.now(),
                "attempts": [{"number": 1, "status_code": 502}, attempt],
            },
            "$unset": {"due_at": ""},
        },
    )
    said = client.get(f"/schedules/{made}").text
    assert "The last run failed" in said
    assert "2 tries, the last one: 503" in said
    assert f'href="/events/{failed.id}"' in said


def test_the_next_run_alone_is_skipped(client: FlaskClient, create: Create, store: Store) -> None:
    made = create(rrule="DTSTART:20400101T000000Z\nRRULE:FREQ=YEARLY")["id"]
    soon, later = (event(clock.now() + timedelta(minutes=each), made) for each in (3, 6))
    store.events.insert([soon, later], clock.now(), "made")
    page = client.get(f"/schedules/{made}").text
    found = re.search(r'action="(/events/[^"]+/cancel)">(?:(?!</form>).)*data-test="skip-next"', page)
    assert found
    assert client.post(found[1], data={"form_token": form_token(client, "/new-schedule")}).status_code == 303
    states = {each: client.get(f"/api/events/{each}").get_json()["state"] for each in (soon.id, later.id)}
    assert (states[soon.id], states[later.id]) == ("cancelled", "ready_queue")


def test_a_change_is_told_with_the_runs_that_came_and_went(client: FlaskClient, create: Create) -> None:
    made = create(rrule="DTSTART:20400101T060000Z\nRRULE:FREQ=WEEKLY;COUNT=9")["id"]
    moved = {"rrule": "DTSTART:20400101T070000Z\nRRULE:FREQ=WEEKLY;COUNT=9", "timeout_seconds": 3}
    client.put(f"/api/schedules/{made}", json=moved)
    page = client.get(f"/schedules/{made}").text
    assert "9 runs came, 9 went" in page
    (change,) = re.findall(r'data-test="an-edit">(.*?)</li>', page, re.DOTALL)
    assert "Longest wait for the answer, in seconds" in change
    assert "timeout_seconds" not in change


def test_where_nothing_has_the_name_a_schedule_of_that_name_is_offered(client: FlaskClient) -> None:
    page = client.get("/schedules?text=Dunning").text
    offered = re.search(r'href="([^"]+)">New schedule “Dunning”', page)
    assert offered is not None
    form = client.get(html.unescape(offered[1]))
    assert (form.status_code, 'value="Dunning"' in form.text) == (200, True)

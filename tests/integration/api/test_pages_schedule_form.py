"""The form of a schedule: what it offers, and that nothing typed is lost on its way, scripts or not."""

import html
import re
from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.integration.api.page_forms import fields_of, form_token

Create = Callable[..., dict[str, Any]]
PART = {"HX-Request": "true"}


def typed(client: FlaskClient, **texts: str) -> dict[str, str]:
    good = {"name": "n", "when": "every day at 9:00", "url": "http://127.0.0.1:9/"}
    return {"form_token": form_token(client, "/new-schedule")} | good | texts


def test_a_preview_shows_months_and_how_often_it_runs_in_a_year(client: FlaskClient) -> None:
    form = typed(client, when="every last business day of the month at 9")
    part = client.post("/new-schedule/preview", data=form, headers=PART).text
    assert "<html" not in part
    assert part.count('class="mini"') == 2
    assert part.count('class="hit2"') == 2
    assert re.search(r'data-test="in-a-year">1[123] runs in the next year', part)


def test_without_a_script_the_preview_is_the_whole_form_with_what_was_typed(client: FlaskClient) -> None:
    form = typed(
        client, name="Close the month", headers="X-Team: a", max_retries="7", when="every monday at 9"
    )
    page = client.post("/new-schedule/preview", data=form).text
    assert "<html" in page
    kept = fields_of(page)
    assert all(kept[name] == text for name, text in form.items()), kept
    assert 'data-test="in-words"' in page


def test_a_reading_is_chosen_without_a_script(client: FlaskClient) -> None:
    page = client.post("/new-schedule/preview", data=typed(client, when="every last business day at 9")).text
    readings = [html.unescape(each) for each in re.findall(r'name="reading" value="([^"]*)"', page)]
    assert len(readings) == 2
    form = typed(client, when="every last business day at 9", reading=readings[1])
    made = client.post("/new-schedule", data=form)
    assert made.status_code == 303, made.text
    (schedule,) = client.get("/api/schedules").get_json()["schedules"]
    assert "BYDAY=FR" in schedule["recurrence"]


def test_a_schedule_is_made_paused(client: FlaskClient) -> None:
    assert client.post("/new-schedule", data=typed(client, state="paused")).status_code == 303
    (schedule,) = client.get("/api/schedules").get_json()["schedules"]
    assert schedule["state"] == "paused"


def test_all_that_is_wrong_is_listed_on_top_with_links_and_its_folds_are_open(client: FlaskClient) -> None:
    form = typed(client, timeout_seconds="long", max_retries="many", name="Kept")
    page = client.post("/new-schedule", data=form).text
    summary = re.search(r'data-test="wrong-summary">(.*?)</ul>', page, re.DOTALL)
    assert summary
    assert "2 things are wrong" in summary[1]
    links = dict(re.findall(r'href="#f-(\w+)">([^<]+)<', summary[1]))
    assert links == {
        "max_retries": "Tries after the first one",
        "timeout_seconds": "Longest wait for the answer, in seconds",
    }
    assert '<details class="fold" open><summary data-test="fold-failing">' in page
    assert '<details class="fold"><summary data-test="fold-late">' in page
    assert fields_of(page)["name"] == "Kept"


def test_a_destination_is_made_without_leaving_the_form(client: FlaskClient) -> None:
    form = typed(client, name="Kept", url="", headers="X-Team: a")
    wrong = client.post("/new-schedule/destination", data=form | {"new_destination_name": "billing"})
    assert wrong.status_code == 422
    assert 'data-test="wrong-new_destination_url"' in wrong.text
    given = {"new_destination_name": "billing", "new_destination_url": "http://127.0.0.1:9/hook"}
    made = client.post("/new-schedule/destination", data=form | given)
    kept = fields_of(made.text)
    assert (kept["name"], kept["destination"], kept["headers"]) == ("Kept", "billing", "X-Team: a")
    assert kept["new_destination_name"] == ""
    assert client.get("/api/destinations/billing").get_json()["url"] == "http://127.0.0.1:9/hook"
    twice = client.post("/new-schedule/destination", data=form | given)
    assert twice.status_code == 422
    assert "is taken" in twice.text
    assert client.post("/new-schedule", data=kept).status_code == 303


@pytest.mark.parametrize("name", ["", "a b", "x" * 65])
def test_a_new_destination_needs_a_name(client: FlaskClient, name: str) -> None:
    given = {"new_destination_name": name, "new_destination_url": "http://127.0.0.1:9/hook"}
    answer = client.post("/new-schedule/destination", data=typed(client) | given)
    assert answer.status_code == 422
    assert 'data-test="wrong-new_destination_name"' in answer.text


def test_destinations_are_offered_with_how_they_are_and_without_secrets(client: FlaskClient) -> None:
    client.put("/api/destinations/crm", json={"url": "http://127.0.0.1:9/?t=s3cr3t", "paused": True})
    page = client.get("/new-schedule").text
    assert '<option value="crm">' in page
    assert "Paused" in page.partition('data-test="destinations"')[2].partition("</ul>")[0]
    assert "s3cr3t" not in page


def test_an_edit_previews_without_a_script_what_it_changes(client: FlaskClient, create: Create) -> None:
    made = create(rrule="DTSTART:20400101T060000Z\nRRULE:FREQ=WEEKLY;COUNT=3")
    path = f"/schedules/{made['id']}"
    form = fields_of(client.get(f"{path}/edit").text)
    form["when"] = "DTSTART:20400102T060000Z\nRRULE:FREQ=WEEKLY;COUNT=3"
    page = client.post(f"{path}/preview", data=form).text
    assert "<html" in page
    effect = page.partition('data-test="effect"')[2].partition("</section>")[0]
    assert ('class="hit2"' in effect, 'class="gone"' in effect) == (True, True)
    assert "3 removed" in effect
    assert client.get(f"/api{path}").get_json()["version"] == 1
    wrong = client.post(f"{path}/preview", data=form | {"when": "some blue moon"}).text
    assert fields_of(wrong)["when"] == "some blue moon"
    new = {"new_destination_name": "crm", "new_destination_url": "http://127.0.0.1:9/"}
    kept = fields_of(client.post(f"{path}/edit/destination", data=form | new).text)
    assert (kept["destination"], kept["when"].splitlines()[0]) == ("crm", "DTSTART:20400102T060000Z")

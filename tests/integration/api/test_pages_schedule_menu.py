"""What the menu of a schedule leads to: past times, a copy, its request as a command, its calendar."""

import html
import re
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from tests.integration.api.page_forms import fields_of, form_token

Create = Callable[..., dict[str, Any]]


def menu(client: FlaskClient, schedule_id: str) -> dict[str, str]:
    """The addresses of the menu, by the mark of each."""
    shown = client.get(f"/schedules/{schedule_id}").text.partition('data-test="more"')[2]
    links = re.findall(
        r'href="([^"]+)"(?: data-copy="\w+")? data-test="([\w-]+)"', shown.partition("</ul>")[0]
    )
    return {mark: html.unescape(address) for address, mark in links}


@pytest.fixture
def hourly(create: Create, client: FlaskClient) -> str:
    """A schedule of two years ago that was not there then: none of its times has a run."""
    made: str = create(name="Report", rrule="DTSTART:20240101T000000Z\nRRULE:FREQ=HOURLY")["id"]
    client.post(f"/api/schedules/{made}/pause")
    return made


def test_a_deletion_is_in_the_menu_and_asked_about_first(client: FlaskClient, hourly: str) -> None:
    head, _, rest = client.get(f"/schedules/{hourly}").text.partition('data-test="more"')
    assert 'data-test="delete"' not in head
    button = re.search(r'<button form="(\w+)" name="(\w+)" value="(\w+)" data-test="delete">', rest)
    assert button is not None
    assert f'id="{button[1]}"' in head, "the form of the other acts"
    form = {"form_token": form_token(client, "/schedules"), "selected": hourly, button[2]: button[3]}
    assert "Delete 1 schedule?" in client.post("/schedules/selected", data=form).text
    assert client.get(f"/api/schedules/{hourly}").status_code == 200


def test_past_times_are_counted_before_they_are_run(client: FlaskClient, hourly: str) -> None:
    path = menu(client, hourly)["run-past-times"]
    page = client.get(path).text
    assert 'data-test="progress"' not in page
    form = fields_of(page) | {"form_token": form_token(client, path)}
    form |= {"from": "2025-03-01T00:00", "to": "2025-03-02T00:00", "rate": "1"}
    planned = client.post(path, data=form).text
    assert "<strong>25 runs</strong> would be made. At this speed that takes 25 s." in planned
    assert client.get(f"/api/schedules/{hourly}/backfill").status_code == 404, "nothing was begun"
    again = fields_of(planned)
    assert (again["from"], again["rate"]) == ("2025-03-01T00:00", "1")
    form = again | {"form_token": form["form_token"], "confirmed": "yes"}
    for _ in range(2):
        assert client.post(path, data=form).status_code == 303
    begun = client.get(f"/api/schedules/{hourly}/backfill").get_json()
    assert (begun["occurrences"], begun["rate_per_second"]) == (25, 1.0)
    shown = client.get(path).text
    assert 'data-state="running"' in shown
    client.post(f"{path}/cancel", data={"form_token": form["form_token"]})
    assert 'data-state="cancelled"' in client.get(path).text


def test_past_times_that_were_changed_after_their_number_was_shown_are_shown_first(
    client: FlaskClient, hourly: str
) -> None:
    path = f"/schedules/{hourly}/backfill"
    asked = {"from": "2025-03-01T00:00", "to": "2025-03-02T00:00"}
    token = {"form_token": form_token(client, path)}
    seen = fields_of(client.post(path, data=token | asked).text) | token | {"confirmed": "yes"}
    changed = client.post(path, data=seen | {"from": "2025-01-01T00:00"})
    assert changed.status_code == 200
    assert "would be made" in changed.text
    assert client.get(f"/api/schedules/{hourly}/backfill").status_code == 404, "nothing was begun"
    assert client.post(path, data=fields_of(changed.text) | token | {"confirmed": "yes"}).status_code == 303


def test_past_times_are_in_the_zone_of_the_schedule(client: FlaskClient, create: Create) -> None:
    daily = "DTSTART:20240101T090000\nRRULE:FREQ=DAILY"
    made = create(rrule=daily, timezone="Asia/Kolkata")["id"]
    client.post(f"/api/schedules/{made}/pause")
    path = f"/schedules/{made}/backfill"
    form = {"form_token": form_token(client, path), "from": "2025-03-01T09:00", "to": "2025-03-01T09:00"}
    assert "<strong>1 run</strong> would be made" in client.post(path, data=form).text
    form |= {"from": "2025-03-01T09:01", "to": "2025-03-02T08:59"}
    assert "<strong>0 runs</strong> would be made." in client.post(path, data=form).text


@pytest.mark.parametrize(
    ("given", "field", "said"),
    [
        ({"from": ""}, "from", "is missing"),
        ({"from": "yesterday"}, "from", ""),
        ({"from": "2025-03-02", "to": "2025-03-01"}, "to", "must not be before from"),
        ({"from": "2025-03-02", "to": "2999-03-01"}, "to", "must not lie in the future"),
        ({"from": "2025-03-02", "rate": "1e9"}, "rate", ""),
    ],
)
def test_what_is_wrong_with_past_times_stands_beside_the_field(
    client: FlaskClient, hourly: str, given: dict[str, str], field: str, said: str
) -> None:
    path = f"/schedules/{hourly}/backfill"
    answer = client.post(path, data={"form_token": form_token(client, path)} | given)
    assert answer.status_code == 422
    wrong = re.search(rf'data-test="wrong-{field}">([^<]*)<', answer.text)
    assert wrong, answer.text
    assert said in wrong[1]
    assert all(f'value="{text}"' in answer.text for text in given.values() if text and text != "1e9")


def test_a_copy_begins_with_the_values_of_the_schedule_and_none_of_its_secrets(
    client: FlaskClient, create: Create
) -> None:
    made = create(
        name="Report",
        callback_url="https://a.example/hook?token=s3cret&x=1",
        headers={"Authorization": "Bearer s3cret", "Accept": "text/plain"},
        body="s3cret",
        tags=["customer:acme"],
        rrule="DTSTART:20400101T000000Z\nRRULE:FREQ=YEARLY",
        timeout_seconds=7,
    )["id"]
    page = client.get(menu(client, made)["make-a-copy"]).text
    assert "s3cret" not in page
    copied = fields_of(page)
    assert copied["name"] == "Copy of Report"
    assert copied["url"] == "https://a.example/hook"
    assert copied["tags"] == "customer:acme"
    assert copied["timeout_seconds"] == "7"
    assert copied["headers"] == "Accept: text/plain"
    assert copied["body"] == ""
    note = re.search(r'data-test="copied">(.*?)</p>', page, re.DOTALL)
    assert note
    for words in ("Report", "query of the web address", "the header Authorization", "the body"):
        assert words in note[1], words
    saved = client.post("/new-schedule", data=copied | {"form_token": form_token(client, "/new-schedule")})
    assert saved.status_code == 303, saved.text
    assert len(client.get("/api/schedules").get_json()["schedules"]) == 2
    assert client.get("/new-schedule?copy=no-such").status_code == 404


def test_what_calls_no_web_address_is_not_copied(make_api: Callable[..., Flask]) -> None:
    client = make_api(allowed_commands=("true",)).test_client()
    given = {"name": "n", "action": {"type": "command", "command": ["true"]}, "on_demand": True}
    made = client.post("/api/schedules", json=given).get_json()["id"]
    assert {"make-a-copy", "copy-as-curl"}.isdisjoint(menu(client, made))
    assert client.get(f"/new-schedule?copy={made}").status_code == 409


def test_a_feed_shows_its_address_once_and_opens_the_calendar(client: FlaskClient, create: Create) -> None:
    made = create(name="Report", tags=["customer:acme"])["id"]
    path = menu(client, made)["calendar-feed"]
    form = fields_of(client.get(path).text)
    assert form["tag"] == "customer:acme"
    form |= {"form_token": form_token(client, path)}
    refused = client.post("/calendar-feeds", data=form)
    assert refused.status_code == 422
    assert 'data-test="wrong-name"' in refused.text
    shown = client.post("/calendar-feeds", data=form | {"name": "Acme's people"}).text
    (url,) = re.findall(r'data-test="feed-url">([^<]+)<', shown)
    answer = client.get(html.unescape(url).removeprefix("http://localhost"))
    assert answer.status_code == 200, answer.text
    assert "Report" in answer.text
    listed = client.get("/calendar-feeds").text
    assert "Acme&#39;s people" in listed
    assert url.partition("token=")[2] not in listed
    (feed_id,) = re.findall(r'name="id" value="([^"]+)"', listed)
    gone = client.post("/calendar-feeds/delete", data={"form_token": form["form_token"], "id": feed_id})
    assert gone.status_code == 303
    assert client.get(html.unescape(url).removeprefix("http://localhost")).status_code == 401
    file = client.get(menu(client, made)["calendar-file"])
    assert file.mimetype == "text/calendar"
    assert "SUMMARY:Report" in file.text


def test_a_key_without_the_scope_sees_no_act_of_the_menu_and_is_refused(
    make_api: Callable[..., Flask],
) -> None:
    browser = make_api(api_keys=("reader:0123456789abcdef:read", "boss:fedcba9876543210")).test_client()
    given = {"name": "n", "callback_url": "http://127.0.0.1:9/", "on_demand": True}
    headers = {"Authorization": "Bearer fedcba9876543210"}
    made = browser.post("/api/schedules", json=given, headers=headers).get_json()["id"]
    token = form_token(browser, "/sign-in")
    browser.post("/sign-in", data={"form_token": token, "key": "0123456789abcdef"})
    assert set(menu(browser, made)) == {"copy-as-curl", "calendar-feed", "calendar-file"}
    assert 'data-test="new-feed"' not in browser.get("/calendar-feeds").text
    form = {"form_token": form_token(browser, "/you"), "name": "x", "from": "2025-01-01"}
    paths = (f"/schedules/{made}/backfill", f"/schedules/{made}/backfill/cancel", "/calendar-feeds")
    for path in (*paths, "/calendar-feeds/delete"):
        assert browser.post(path, data=form).status_code == 403, path
    for path in (f"/schedules/{made}/backfill", f"/new-schedule?copy={made}"):
        assert browser.get(path).status_code == 403, path

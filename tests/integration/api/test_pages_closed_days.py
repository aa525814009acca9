"""Closed days: the list, and the form that makes, edits and deletes a calendar, with its next days."""

import html
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from tests.integration.api.page_forms import form_token

Create = Callable[..., dict[str, Any]]


@pytest.fixture(autouse=True)
def in_november(time: Any) -> None:
    time.at = datetime(2026, 11, 23, 9, tzinfo=UTC)


def sent(client: FlaskClient, path: str, **fields: Any) -> Any:
    given = {"form_token": form_token(client, "/new-calendar"), "weekend": ["SA", "SU"]} | fields
    return client.post(path, data=given)


def days(page: str) -> list[str]:
    shown = page.partition('data-test="days"')[2].partition("</ul>")[0]
    return [" ".join(re.sub(r"<[^>]+>", " ", each).split()) for each in shown.split("</li>")[:-1]]


ZURICH = {
    "name": "zurich",
    "country": "CH",
    "subdivision": "ZH",
    "dates": "2026-12-24 Christmas Eve\n\n2027-01-04",
}


def test_the_next_days_are_shown_before_a_list_is_made(client: FlaskClient) -> None:
    looked = sent(client, "/new-calendar", **ZURICH, look="yes")
    assert looked.status_code == 200, looked.text
    first, second = days(looked.text)[:2]
    assert first.endswith("Thu 24 Dec 2026 Christmas Eve")
    assert second.endswith("Fri 25 Dec 2026 Christmas Day")
    assert "Every week: Saturday, Sunday" in looked.text
    assert "2027-01-04" in looked.text, "what was typed stays"
    assert client.get("/api/calendars/zurich").status_code == 404
    made = sent(client, "/new-calendar", **ZURICH)
    assert made.status_code == 303, made.text
    stored = client.get("/api/calendars/zurich").get_json()
    assert stored["dates"] == [
        {"date": "2026-12-24", "name": "Christmas Eve"},
        {"date": "2027-01-04", "name": ""},
    ]
    assert (stored["country"], stored["subdivision"], stored["weekend"]) == ("CH", "ZH", ["SA", "SU"])
    row = client.get("/calendars").text.partition('data-test="calendar"')[2]
    for words in ("Holidays of CH, ZH, 2 own days", "Thu 24 Dec 2026, Christmas Eve", "Saturday, Sunday"):
        assert words in row, words


def test_an_edit_keeps_what_the_form_shows_and_takes_away_what_was_emptied(
    client: FlaskClient, create: Create
) -> None:
    sent(client, "/new-calendar", **ZURICH)
    create(calendar="zurich")
    path = "/calendars/zurich/edit"
    page = client.get(path).text
    assert "1 schedule observes it" in page
    assert "2026-12-24 Christmas Eve\n2027-01-04</textarea>" in page
    assert page.count(" checked>") == 2
    changed = sent(client, path, country="CH", dates="2026-12-31 New Year's Eve", weekend=["SU"], version="1")
    assert changed.status_code == 303, changed.text
    stored = client.get("/api/calendars/zurich").get_json()
    assert stored["dates"] == [{"date": "2026-12-31", "name": "New Year's Eve"}]
    assert "subdivision" not in stored
    assert stored["weekend"] == ["SU"]
    stale = sent(client, path, country="CH", version="1")
    assert stale.status_code == 409
    assert "changed after the page was loaded" in stale.text


@pytest.mark.parametrize(
    ("given", "field", "said"),
    [
        ({"name": ""}, "name", ""),
        ({"name": "x y/z"}, "name", ""),
        ({"dates": "24.12.2026 Eve"}, "dates", "line 1: write a date and a name"),
        ({"country": "XX"}, "country", ""),
        ({"country": "", "subdivision": "ZH"}, "subdivision", "give country too"),
        ({"weekend": ["MO", "TU", "WE", "TH", "FR", "SA", "SU"]}, "weekend", "all seven days"),
        ({"ics": "nonsense"}, "ics", ""),
    ],
)
def test_what_is_wrong_with_closed_days_stands_beside_its_field(
    client: FlaskClient, given: dict[str, Any], field: str, said: str
) -> None:
    answer = sent(client, "/new-calendar", **({"name": "n", "country": "CH"} | given))
    assert answer.status_code == 422
    wrong = re.search(rf'data-test="wrong-{field}">([^<]*)<', answer.text)
    assert wrong, answer.text
    assert said in html.unescape(wrong[1])


def test_a_name_that_is_taken_is_refused_and_nothing_is_replaced(client: FlaskClient) -> None:
    sent(client, "/new-calendar", **ZURICH)
    again = sent(client, "/new-calendar", name="zurich", country="US")
    assert again.status_code == 409
    assert 'data-test="wrong-name"' in again.text
    assert client.get("/api/calendars/zurich").get_json()["country"] == "CH"


def test_own_days_that_end_soon_and_a_file_of_days(client: FlaskClient) -> None:
    event = "BEGIN:VEVENT\r\nUID:1\r\nSUMMARY:Company day\r\nDTSTART;VALUE=DATE:20261207\r\nEND:VEVENT"
    file = f"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//x//EN\r\n{event}\r\nEND:VCALENDAR\r\n"
    made = sent(client, "/new-calendar", name="company", ics=file, weekend=[])
    assert made.status_code == 303, made.text
    page = client.get("/calendars").text
    assert "Mon 7 Dec 2026, Company day" in page
    assert "Its own days end Dec 2026" in page


def test_a_list_in_use_is_not_deleted_and_another_one_is_asked_for_first(
    client: FlaskClient, create: Create
) -> None:
    sent(client, "/new-calendar", **ZURICH)
    made = create(calendar="zurich")["id"]
    path = "/calendars/zurich/delete"
    assert sent(client, path).status_code == 422, "it takes no other field"
    form = {"form_token": form_token(client, "/new-calendar")}
    assert 'data-test="confirm"' in client.post(path, data=form).text
    kept = client.post(path, data=form | {"confirmed": "yes"})
    assert kept.status_code == 409
    assert "1 schedule observes the calendar zurich" in kept.text
    client.delete(f"/api/schedules/{made}")
    assert client.post(path, data=form | {"confirmed": "yes"}).status_code == 303
    assert "There is no calendar" in client.get("/calendars").text


def test_a_reader_sees_closed_days_and_changes_none(make_api: Callable[..., Flask]) -> None:
    browser = make_api(api_keys=("reader:0123456789abcdef:read", "boss:fedcba9876543210")).test_client()
    headers = {"Authorization": "Bearer fedcba9876543210"}
    browser.put("/api/calendars/zurich", json={"country": "CH"}, headers=headers)
    token = form_token(browser, "/sign-in")
    browser.post("/sign-in", data={"form_token": token, "key": "0123456789abcdef"})
    page = browser.get("/calendars").text
    assert "Holidays of CH" in page
    assert "new-calendar" not in page
    assert "/calendars/zurich/edit" not in page
    form = {"form_token": form_token(browser, "/you"), "name": "x", "country": "CH"}
    for path in ("/new-calendar", "/calendars/zurich/edit", "/calendars/zurich/delete"):
        assert browser.post(path, data=form).status_code == 403, path
    assert browser.get("/new-calendar").status_code == 403

"""The forms of messages, asked without a browser."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from scheduler_app.clock import clock
from tests.integration.api.page_forms import fields_of, form_token

URL = "http://127.0.0.1:9/hook"


def blank(client: FlaskClient) -> dict[str, str]:
    """The form as it is opened."""
    return fields_of(client.get("/new-message").text)


def made_by(client: FlaskClient, form: dict[str, str]) -> dict[str, Any]:
    """The message, as the API shows it."""
    answer = client.post("/new-message", data=form)
    assert answer.status_code == 303, answer.text
    message_id = answer.headers["Location"].partition("/msg_")[2].partition("?")[0]
    found: dict[str, Any] = client.get(f"/api/messages/{message_id}").get_json()
    return found


def test_a_message_is_made_with_all_that_its_form_has(client: FlaskClient) -> None:
    found = made_by(
        client,
        blank(client)
        | {
            "id": "order-17",
            "event_name": "order.shipped",
            "when": "2040-01-05 9:30",
            "timezone": "Europe/Berlin",
            "url": f"{URL}?t=s3cr3t",
            "method": "PUT",
            "headers": "X-Team: billing",
            "metadata": "customer: 17",
            "body": '{"order": "s3cr3t"}',
            "max_retries": "2",
            "success_codes": "2xx, 404",
        },
    )
    assert found["scheduled_at"] == "2040-01-05T08:30:00Z"
    assert (found["id"], found["event_name"], found["method"]) == ("order-17", "order.shipped", "PUT")
    assert (found["max_retries"], found["success_codes"]) == (2, ["2xx", 404])
    assert list(found["metadata"]) == ["customer"]
    assert "payload" in found, "it is sent as JSON"
    page = client.get("/events/msg_order-17").text
    assert ("order.shipped" in page, "s3cr3t" in page) == (True, False)
    assert "body" in made_by(client, blank(client) | {"when": "", "url": URL, "body": "x", "body_as": "text"})


@pytest.mark.parametrize(("when", "seconds"), [("in 2 hours", 7_200), ("delay_seconds: 90", 90)])
def test_a_delivery_is_said_in_words_and_a_form_that_is_sent_twice_makes_one_message(
    client: FlaskClient, when: str, seconds: int
) -> None:
    form, before = blank(client) | {"when": when, "url": URL}, clock.now()
    first = made_by(client, form)
    asked_at = datetime.fromisoformat(first["scheduled_at"]) - timedelta(seconds=seconds)
    assert before - timedelta(seconds=1) < asked_at < clock.now() + timedelta(seconds=1)
    assert made_by(client, form)["id"] == first["id"]
    assert made_by(client, form | {"event_name": "another"})["id"] != first["id"]
    assert len(client.get("/api/messages").get_json()["messages"]) == 2


@pytest.mark.parametrize(
    ("wrong", "field", "said"),
    [
        ({"when": "every day at 9:00"}, "when", "comes again"),
        ({"when": "on demand"}, "when", "names no time"),
        ({"when": "some blue moon"}, "when", "blue"),
        ({"when": "2040-01-05 9:30", "timezone": "Berlin"}, "timezone", "Europe/Berlin"),
        ({"url": ""}, "url", "missing"),
        ({"url": "", "destination": "nobody"}, "destination", "nobody"),
        ({"body": "{order: 17}"}, "body", "no JSON"),
        ({"metadata": "customer"}, "metadata", "Name: value"),
        ({"id": "a b"}, "id", "letters"),
        ({"max_retries": "many"}, "max_retries", "whole number"),
    ],
)
def test_what_is_wrong_with_a_message_stands_beside_its_field(
    client: FlaskClient, wrong: dict[str, str], field: str, said: str
) -> None:
    answer = client.post("/new-message", data=blank(client) | {"url": URL} | wrong)
    assert answer.status_code == 422, answer.text
    beside = re.search(rf'data-test="wrong-{field}">([^<]*)<', answer.text)
    assert beside, answer.text
    assert said in beside[1]
    assert client.get("/api/messages").get_json()["messages"] == []


def test_an_id_that_is_taken_by_other_content_is_a_conflict(client: FlaskClient) -> None:
    form = blank(client) | {"id": "m1", "url": URL, "when": "2040-01-05T09:30:00Z"}
    made_by(client, form)
    assert made_by(client, form)["id"] == "m1", "the same content is there already"
    refused = client.post("/new-message", data=form | {"event_name": "other"})
    assert (refused.status_code, "with other content" in refused.text) == (409, True)


def test_a_message_for_which_there_is_no_room_keeps_its_form(make_api: Callable[..., Flask]) -> None:
    client = make_api(max_messages=1).test_client()
    form = blank(client) | {"url": URL, "when": "in 2 hours"}
    first = made_by(client, form)
    refused = client.post("/new-message", data=blank(client) | {"url": URL, "when": "in 3 hours"})
    assert (refused.status_code, "MAX_MESSAGES" in refused.text) == (429, True)
    assert fields_of(refused.text)["when"] == "in 3 hours"
    assert made_by(client, form)["id"] == first["id"], "what was made is there all the same"


def test_the_generated_signing_secret_of_a_message_is_shown_once(client: FlaskClient) -> None:
    form = blank(client) | {"url": URL, "when": "in 2 hours", "signing": "true"}
    page = client.post("/new-message", data=form)
    secret = re.search(r'data-test="signing-secret">(whsec_[^<]+)<', page.text)
    assert secret, page.text
    (made,) = client.get("/api/messages").get_json()["messages"]
    for text in (client.get(f"/events/{made['event_id']}").text, client.post("/new-message", data=form).text):
        assert secret[1] not in text
    assert len(client.get("/api/messages").get_json()["messages"]) == 1


def test_a_message_is_moved_to_another_time_on_its_page(client: FlaskClient) -> None:
    made = made_by(client, blank(client) | {"url": URL, "when": "2040-01-05T09:30:00Z"})
    path = f"/events/{made['event_id']}"
    form = {"form_token": form_token(client, path)}
    assert client.post(f"{path}/reschedule", data=form | {"when": "every day"}).status_code == 422
    moved = client.post(
        f"{path}/reschedule", data=form | {"when": "2041-02-03 4:05", "timezone": "Asia/Tokyo"}
    )
    assert moved.status_code == 303, moved.text
    found = client.get(f"/api/messages/{made['id']}").get_json()
    assert datetime.fromisoformat(found["scheduled_at"]) == datetime(2041, 2, 2, 19, 5, tzinfo=UTC)
    assert client.post(f"{path}/cancel", data=form).status_code == 303
    assert 'data-test="reschedule"' not in client.get(path).text
    late = client.post(f"{path}/reschedule", data=form | {"when": "in 2 hours"})
    assert (late.status_code, "cannot be rescheduled" in late.text) == (409, True)


def test_a_delivery_is_previewed_in_its_zone(client: FlaskClient) -> None:
    form = blank(client)
    for given, said in (
        ({"when": "2040-01-05 9:30", "timezone": "Asia/Tokyo"}, "Thu 5 Jan 2040 09:30 +09:00"),
        ({"when": "2001-01-05T00:00:00Z"}, "At once"),
        ({"when": "every day"}, "comes again"),
        ({"when": "0 9 * * *"}, "comes again"),
    ):
        assert said in client.post("/new-message/preview", data=form | given).text, given

"""`on_success` and `on_failure` of schedules and messages, as the API takes and shows them."""

from typing import Any

import pytest
from flask.testing import FlaskClient

NEVER = "DTSTART:20400101T000000Z\nRRULE:FREQ=DAILY"
URL = "http://127.0.0.1:9/"


@pytest.fixture
def client(shared_client: FlaskClient) -> FlaskClient:
    return shared_client


def put(client: FlaskClient, name: str, **fields: Any) -> None:
    answer = client.put(f"/api/destinations/{name}", json={"url": URL} | fields)
    assert answer.status_code in (200, 201), answer.text


def test_a_schedule_says_who_is_told(client: FlaskClient) -> None:
    put(client, "told")
    asked = {"id": "n1", "name": "x", "callback_url": URL, "rrule": NEVER, "on_failure": "told"}
    assert client.post("/api/schedules", json=asked).status_code == 201
    shown = client.get("/api/schedules/n1").get_json()
    assert shown["on_failure"] == "told"
    assert "on_success" not in shown
    answer = client.put("/api/schedules/n1", json={"on_failure": None, "on_success": "told"})
    assert answer.status_code == 200
    shown = client.get("/api/schedules/n1").get_json()
    assert (shown.get("on_failure"), shown["on_success"]) == (None, "told")
    exported = client.get("/api/schedules/export").text
    for change in ({"on_success": None}, {"on_success": "told"}, {"on_success": None, "rrule": "FREQ=DAILY"}):
        assert client.put("/api/schedules/n1", json=change).status_code == 200
        assert client.get("/api/schedules/n1").get_json().get("on_success") == change["on_success"]
    assert exported.count('"on_success":"told"') == 1


@pytest.mark.parametrize("field", ["on_success", "on_failure"])
def test_who_is_told_must_be_there(client: FlaskClient, field: str) -> None:
    asked = {"id": f"n2-{field[3:]}", "name": "x", "callback_url": URL, "rrule": NEVER}
    answer = client.post("/api/schedules", json=asked | {field: "nobody"})
    assert answer.status_code == 422
    assert field in str(answer.get_json()["errors"])
    assert "there is no destination nobody" in answer.text
    assert client.post("/api/schedules", json=asked).status_code == 201
    answer = client.put(f"/api/schedules/{asked['id']}", json={field: "nobody"})
    assert answer.status_code == 422
    assert field in str(answer.get_json()["errors"])
    answer = client.post("/api/messages", json={"callback_url": URL, field: "nobody"})
    assert answer.status_code == 422
    assert field in str(answer.get_json()["errors"])


def test_who_is_told_must_take_what_is_posted(client: FlaskClient) -> None:
    put(client, "reads", allowed_methods=["GET"])
    answer = client.post("/api/messages", json={"callback_url": URL, "on_success": "reads"})
    assert answer.status_code == 422
    assert "on_success" in str(answer.get_json()["errors"])


def test_a_message_says_who_is_told(client: FlaskClient) -> None:
    put(client, "told")
    asked = {
        "id": "m1",
        "callback_url": URL,
        "delay_seconds": 9_999,
        "on_success": "told",
        "on_failure": "told",
    }
    made = client.post("/api/messages", json=asked)
    assert made.status_code == 201, made.text
    shown = client.get("/api/messages/m1").get_json()
    assert (shown["on_success"], shown["on_failure"]) == ("told", "told")
    assert client.post("/api/messages", json=asked).status_code == 200
    del asked["on_failure"]
    assert client.post("/api/messages", json=asked).status_code == 409


@pytest.mark.parametrize("end", ["on-success", "on-failure", "on-failure-7", "on-pause"])
def test_nobody_takes_the_id_of_a_notification(client: FlaskClient, end: str) -> None:
    answer = client.post("/api/messages", json={"id": f"x-{end}", "callback_url": URL})
    assert answer.status_code == 422
    assert "take another" in answer.text


def test_a_destination_that_is_told_is_in_use(client: FlaskClient) -> None:
    put(client, "ops")
    rule = {"name": "x", "callback_url": URL, "rrule": NEVER}
    both = rule | {"id": "n3", "on_failure": "ops", "on_success": "ops"}
    assert client.post("/api/schedules", json=both).status_code == 201
    named = {"name": "y", "destination": "ops", "rrule": NEVER, "on_failure": "ops", "id": "n4"}
    assert client.post("/api/schedules", json=named).status_code == 201
    answer = client.delete("/api/destinations/ops")
    assert answer.status_code == 409
    assert "2 schedules name" in answer.text
    for each in ("n3", "n4"):
        client.delete(f"/api/schedules/{each}")
    later = {"id": "m2", "callback_url": URL, "delay_seconds": 9_999, "on_failure": "ops"}
    assert client.post("/api/messages", json=later).status_code == 201
    answer = client.delete("/api/destinations/ops")
    assert answer.status_code == 409
    assert "1 message" in answer.text
    client.post("/api/messages/m2/cancel")
    assert client.delete("/api/destinations/ops").status_code == 200

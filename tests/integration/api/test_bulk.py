"""Many schedules in one request."""

from flask import Flask
from flask.testing import FlaskClient

from scheduler_app.api.services import Services
from scheduler_app.store import Store

GOOD = {
    "name": "n",
    "callback_url": "http://127.0.0.1:9/",
    "rrule": "DTSTART:20400101T000000Z\nRRULE:FREQ=DAILY",
}


def test_each_item_is_taken_or_refused_by_itself(client: FlaskClient, store: Store) -> None:
    items = [
        GOOD,
        GOOD | {"rrule": "NOT A RULE"},
        GOOD | {"id": "mine"},
        GOOD | {"id": "mine"},
        GOOD | {"colour": "red"},
        "no object",
        GOOD | {"signing": True},
        GOOD | {"body": "x" * (256 * 1024 + 1)},
    ]
    answer = client.post("/api/schedules/bulk", json={"schedules": items})
    assert answer.status_code == 200, answer.text
    shown = answer.get_json()
    results = shown["results"]
    assert [each["status"] for each in results] == [201, 422, 201, 409, 422, 422, 201, 422]
    assert (shown["created"], shown["refused"]) == (3, 5)
    assert results[1]["problem"]["errors"][0]["pointer"] == "/rrule"
    assert results[3]["problem"]["detail"].startswith("there is a schedule mine already")
    assert results[4]["problem"]["detail"].startswith("colour: Unknown field: this takes action, body,")
    assert results[6]["signing_secret"].startswith("whsec_")
    assert results[0]["next_run_at"] == "2040-01-01T00:00:00Z"
    assert client.get(f"/api/schedules/{results[0]['id']}").get_json()["rrule"] == GOOD["rrule"]
    assert store.mongo.collection("schedules").count_documents({}) == 3


def test_what_is_due_soon_is_expanded_and_dispatched_at_once(
    app: Flask, client: FlaskClient, store: Store
) -> None:
    items = [{**GOOD, "rrule": "FREQ=SECONDLY;COUNT=2"}] * 60 + [GOOD] * 60
    assert client.post("/api/schedules/bulk", json={"schedules": items}).get_json()["created"] == 120
    states = store.mongo.collection("events").distinct("state")
    assert states == ["worker_queue"]
    assert store.mongo.collection("events").count_documents({}) == 120
    services: Services = app.extensions["scheduler"]
    assert 1 < services.publisher.queue_length() < 20


def test_a_thousand_are_taken_and_more_than_a_mebibyte_of_them(client: FlaskClient, store: Store) -> None:
    items = [GOOD | {"body": "x" * 2000}] * 1000
    answer = client.post("/api/schedules/bulk", json={"schedules": items})
    assert answer.get_json()["created"] == 1000
    assert store.mongo.collection("schedules").count_documents({}) == 1000
    assert client.post("/api/schedules/bulk", json={"schedules": [*items, GOOD]}).status_code == 422
    assert client.post("/api/schedules/bulk", json={"schedules": []}).status_code == 422
    huge = [GOOD | {"body": "x" * 255_000}] * 70
    assert client.post("/api/schedules/bulk", json={"schedules": huge}).status_code == 413

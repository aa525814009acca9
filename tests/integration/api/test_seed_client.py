"""A client and an importer written for the seed still work: its JSON word for word, as its manual has it."""

import json
from datetime import datetime
from typing import Any

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from scheduler_app.domain.states import State
from scheduler_app.store import Store
from tests.builders import event

CREATE = """{
    "name": "Daily Backup",
    "rrule": "FREQ=DAILY;INTERVAL=1",
    "callback_url": "https://example.com/backup",
    "method": "POST",
    "headers": {
        "Authorization": "Bearer abc123",
        "Content-Type": "application/json"
    },
    "body": "{\\"task\\":\\"backup\\"}"
}"""
UPDATE = """{
    "name": "Updated Daily Backup",
    "rrule": "FREQ=DAILY;INTERVAL=2",
    "callback_url": "https://example.com/new-backup",
    "method": "PUT",
    "headers": {
        "Authorization": "Bearer updated_token",
        "Content-Type": "application/json"
    },
    "body": "{\\"task\\":\\"updated-backup\\"}"
}"""
JSON = {"Content-Type": "application/json"}


def send(client: FlaskClient, method: str, path: str, text: str | None = None) -> TestResponse:
    return client.open(path, method=method, data=text, headers=JSON if text else {})


def test_the_seed_s_create_update_and_delete_word_for_word(client: FlaskClient, store: Store) -> None:
    made = send(client, "POST", "/api/schedules", CREATE)
    assert made.status_code == 201
    path = f"/api/schedules/{made.get_json()['id']}"
    stored = store.schedules.get(made.get_json()["id"])
    assert dict(stored.action.headers)["Authorization"] == "Bearer abc123"  # type: ignore[union-attr]
    assert stored.action.body.data == b'{"task":"backup"}'  # type: ignore[union-attr]
    changed = send(client, "PUT", path, UPDATE)
    assert (changed.status_code, changed.get_json()["message"]) == (200, "Schedule updated successfully.")
    shown = client.get(path).get_json()
    given = json.loads(UPDATE)
    # What may be secret is masked: the seed's API gave it to whoever could reach it.
    del given["headers"], given["body"]
    assert given.items() <= shown.items()
    gone = send(client, "DELETE", path)
    assert (gone.status_code, gone.get_json()) == (
        200,
        {"message": "Schedule and associated events deleted."},
    )
    assert client.get(path).status_code == 404


def test_the_seed_s_lists_of_events_word_for_word(client: FlaskClient, store: Store, now: datetime) -> None:
    made = send(client, "POST", "/api/schedules", CREATE).get_json()["id"]
    archived, pending = event(now, made), event(now.replace(year=2040), made)
    store.events.insert([archived, pending], now, "Event pre-queued for ready queue")
    lines: Any = {"time": now, "status": "completed", "message": "Event successfully processed"}
    store.mongo.collection("events").update_one(
        {"_id": archived.id},
        {
            "$set": {"state": State.COMPLETED, "archived_at": now, "status": [lines]},
            "$unset": {"due_at": ""},
        },
    )
    for kind, wanted, status, message in (
        ("pending", pending, "ready_queue", "Event pre-queued for ready queue"),
        ("history", archived, "completed", "Event successfully processed"),
    ):
        answer = client.get(f"/api/schedules/{made}/events/{kind}?limit=5&page=1").get_json()
        assert (answer["page"], answer["limit"]) == (1, 5)
        (found,) = [each for each in answer["events"] if each["_id"] == wanted.id]
        assert {"_id", "schedule_id", "run_time", "status", "created_at"} <= found.keys()
        assert found["schedule_id"] == made
        last = found["status"][-1]
        assert (last["status"], last["message"]) == (status, message)
        assert last["time"] == "2026-03-02T12:00:00Z"


def test_a_schedule_of_the_seed_s_that_names_no_method_is_a_get_and_none_that_is_stored_changes(
    client: FlaskClient, store: Store
) -> None:
    """What an older release has stored says everything itself: three retries, from one second, a GET."""
    bare = json.loads(CREATE)
    for name in ("method", "body", "headers"):
        del bare[name]
    made = client.post("/api/schedules", json=bare | {"id": "old"}).get_json()
    assert made["method"] == "GET"
    assert (made["max_retries"], made["retry_backoff_seconds"], made["retry_backoff_max_seconds"]) == (
        10,
        10,
        3600,
    )
    older = {"max_retries": 3, "backoff_seconds": 1.0, "backoff_max_seconds": 300.0}
    change = {f"retry.{name}": value for name, value in older.items()}
    body = {"action.body": {"kind": "body", "data": b"x"}, "action.method": "GET"}
    store.mongo.collection("schedules").update_one({"_id": "old"}, {"$set": change | body})
    client.put("/api/schedules/old", json={"name": "other", "callback_url": "https://example.com/other"})
    kept = client.get("/api/schedules/old").get_json()
    assert (kept["method"], kept["max_retries"], kept["retry_backoff_seconds"]) == ("GET", 3, 1)
    assert kept["retry_backoff_max_seconds"] == 300


def test_an_importer_s_lines_are_taken_as_they_are(client: FlaskClient) -> None:
    """As an importer of an older release sends them: no id, no state, and those that were exported by it."""
    older = json.loads(CREATE) | {"id": "exported", "rrule": "DTSTART:20260101T083000Z\nRRULE:FREQ=DAILY"}
    answer = client.post("/api/schedules/bulk", json={"schedules": [json.loads(CREATE), older]})
    assert [each["status"] for each in answer.get_json()["results"]] == [201, 201]
    again = client.post("/api/schedules/bulk", json={"schedules": [older]}).get_json()
    assert again["results"][0]["status"] == 409, "a creation does not change what is there"

"""What is corrupt in MongoDB is no fault of the API: it says what is wrong, and shows the rest."""

from datetime import UTC, datetime
from typing import Any

from flask.testing import FlaskClient

from scheduler_app.clock import clock
from scheduler_app.store import Store
from tests.builders import event, schedule
from tests.corruption import EVENTS, SCHEDULES, corruptions, plant_destinations, plant_messages

YEARLY = "DTSTART:20400101T000000Z\nRRULE:FREQ=YEARLY"


def test_a_corrupt_schedule_is_no_fault_of_the_api(client: FlaskClient, store: Store, whole: bool) -> None:
    documents, now = store.mongo.collection("schedules"), clock.now()
    for number, corruption in enumerate(corruptions(SCHEDULES, whole=whole)):
        made = schedule(now, f"bad-{number}", rrule=YEARLY)
        store.schedules.insert(made)
        documents.update_one({"_id": made.id}, corruption.update())
        answer = client.get(f"/api/schedules/{made.id}")
        assert answer.status_code in (200, 409), f"{corruption}: {answer.text}"
        for path in ("pause", "resume", "trigger"):
            answer = client.post(f"/api/schedules/{made.id}/{path}")
            assert answer.status_code in (200, 202, 409, 422), f"{corruption} {path}: {answer.text}"
        edited = client.put(f"/api/schedules/{made.id}", json={"name": "other"})
        assert edited.status_code in (200, 409, 422), f"{corruption}: {edited.text}"
    for path in ("/api/schedules?limit=500", "/api/schedules/export", "/metrics"):
        assert client.get(path).status_code == 200, path
    for number, corruption in enumerate(corruptions(SCHEDULES, whole=whole)):
        gone = client.delete(f"/api/schedules/bad-{number}")
        assert gone.status_code == 200, f"{corruption}: {gone.text}"


def test_a_corrupt_event_is_no_fault_of_the_api(client: FlaskClient, store: Store, whole: bool) -> None:
    store.schedules.insert(schedule(clock.now(), rrule=YEARLY))
    documents, now = store.mongo.collection("events"), clock.now()
    for number, corruption in enumerate(corruptions(EVENTS, whole=whole)):
        made = event(datetime(2030 + number, 1, 1, tzinfo=UTC), "s1")
        store.events.insert([made], now, "made")
        documents.update_one({"_id": made.id}, corruption.update())
        answer = client.get(f"/api/events/{made.id}")
        assert answer.status_code == 200, f"{corruption}: {answer.text}"
        found: dict[str, Any] = answer.get_json()
        assert {"_id", "schedule_id", "run_time", "kind"} <= found.keys(), str(corruption)
    for path in (
        "/api/events?limit=500",
        "/api/events?state=error",
        "/api/schedules/s1/events/pending?limit=500",
        "/api/schedules/s1/events/history?limit=500",
        "/metrics",
        "/readyz",
    ):
        assert client.get(path).status_code in (200, 503), path


def test_a_corrupt_message_is_no_fault_of_the_api(client: FlaskClient, store: Store, whole: bool) -> None:
    for event_id, corruption in plant_messages(
        store, clock.now(), "http://127.0.0.1:9/", whole=whole
    ).items():
        path = f"/api/messages/{event_id[4:]}"
        shown = client.get(path)
        assert shown.status_code == 200, f"{corruption}: {shown.text}"
        for verb, body in (("reschedule", {"delay_seconds": 9_999}), ("cancel", None)):
            answer = client.post(f"{path}/{verb}", json=body)
            assert answer.status_code in (200, 409), f"{corruption} {verb}: {answer.text}"
    for path in ("/api/messages?limit=500", "/api/messages?state=error", "/api/events?limit=500", "/metrics"):
        assert client.get(path).status_code == 200, path


def test_a_corrupt_destination_is_no_fault_of_the_api(client: FlaskClient, store: Store, whole: bool) -> None:
    table = plant_destinations(store, clock.now(), "http://127.0.0.1:9/", whole=whole)
    assert client.get("/api/destinations?limit=500").status_code == 200
    for name, corruption in table.items():
        path = f"/api/destinations/{name}"
        shown = client.get(path)
        assert shown.status_code == 409, f"{corruption}: {shown.text}"
        assert corruption.path.partition(".")[0] in shown.text or "seal" in shown.text, str(corruption)
        for answer in (
            client.put(path, json={"url": "http://127.0.0.1:9/"}),
            client.patch(path, json={"paused": True}),
            client.post(f"{path}/pause"),
            client.post(f"{path}/test"),
        ):
            assert answer.status_code == 409, f"{corruption}: {answer.text}"
        gone = client.delete(path)
        assert gone.status_code == 200, f"{corruption}: {gone.text}"

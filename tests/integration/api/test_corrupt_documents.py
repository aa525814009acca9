"""What is corrupt in MongoDB is no fault of the API: it says what is wrong, and shows the rest."""

from typing import Any

from flask.testing import FlaskClient

from scheduler_app.clock import clock
from scheduler_app.store import Store
from tests.builders import event, schedule
from tests.corruption import EVENTS, SCHEDULES, corruptions

YEARLY = "DTSTART:20400101T000000Z\nRRULE:FREQ=YEARLY"


def test_a_corrupt_schedule_is_no_fault_of_the_api(client: FlaskClient, store: Store) -> None:
    documents, now = store.mongo.collection("schedules"), clock.now()
    for number, corruption in enumerate(corruptions(SCHEDULES)):
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
    for number, corruption in enumerate(corruptions(SCHEDULES)):
        gone = client.delete(f"/api/schedules/bad-{number}")
        assert gone.status_code == 200, f"{corruption}: {gone.text}"


def test_a_corrupt_event_is_no_fault_of_the_api(client: FlaskClient, store: Store) -> None:
    store.schedules.insert(schedule(clock.now(), rrule=YEARLY))
    documents, now = store.mongo.collection("events"), clock.now()
    for number, corruption in enumerate(corruptions(EVENTS)):
        made = event(now.replace(microsecond=0, year=2030 + number), "s1")
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

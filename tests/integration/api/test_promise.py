"""What can be said of a schedule before it is relied on: `?promise=true`."""

from collections.abc import Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient

from scheduler_app.domain.action import CALLBACKS
from scheduler_app.store import Store
from scheduler_app.usecases.deeds import destinations
from tests.acceptance.journal import Journal
from tests.builders import LONGEST_SECONDS
from tests.integration.actions.receiver import says

DAILY: dict[str, Any] = {"name": "n", "rrule": "DTSTART:20260101T090000Z\nRRULE:FREQ=DAILY"}
EACH_SECOND = {"name": "n", "rrule": "DTSTART:20260101T090000Z\nRRULE:FREQ=SECONDLY"}


@pytest.fixture(autouse=True)
def patient_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """A receiver of these tests answers, however late this machine lets it."""
    monkeypatch.setattr(destinations, "LOOK_SECONDS", LONGEST_SECONDS)


@pytest.fixture
def journal() -> Iterator[Journal]:
    made = Journal()
    yield made
    made.close()


def promise_of(client: FlaskClient, body: dict[str, Any], query: str = "?promise=true") -> dict[str, Any]:
    answer = client.post(f"/api/schedules{query}", json=body)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.get_json()["promise"]
    return found


def test_it_is_answered_where_it_is_asked_for_and_costs_nothing_elsewhere(
    client: FlaskClient, store: Store, journal: Journal
) -> None:
    store.processes.report("worker", queues=[CALLBACKS], consuming=True)
    body = DAILY | {"id": "s1", "callback_url": journal.url("/hook") + "?token=secret"}
    body |= {"headers": {"X-Key": "secret"}, "method": "POST", "body": "secret"}
    assert "promise" not in client.post("/api/schedules", json=body).get_json()
    assert journal.connections == 0
    edited = client.put("/api/schedules/s1?promise=true", json={"name": "m"}).get_json()
    promise = edited["promise"]
    assert len(promise["next_runs"]) == 5
    assert promise["next_runs"][0].endswith("T09:00:00Z")
    assert promise["receiver"] == {"reachable": True, "status_code": 200}
    assert (promise["queue"], promise["workers"]) == ("callbacks", 1)
    assert (promise["owed_an_hour"], promise["held_back"], promise["problems"]) == (1, 0, [])
    assert "allowed_an_hour" not in promise
    [call] = journal.calls["/hook"]
    assert (call.seen.method, call.seen.body, "x-key" in call.seen.headers) == ("OPTIONS", b"", False)
    shown = client.get("/api/schedules/s1/preview?promise=true&limit=1").get_json()
    assert shown["promise"]["receiver"]["reachable"] is True
    assert "promise" not in client.get("/api/schedules/s1/preview").get_json()


def test_it_names_what_is_in_the_way(client: FlaskClient, journal: Journal) -> None:
    journal.script("/away", says("503 Service Unavailable"))
    limited = {"url": journal.url("/away"), "rate_per_second": 0.25, "paused": True}
    assert client.put("/api/destinations/erp", json=limited).status_code == 201
    assert client.put("/api/kill-switch", json={"tag": "billing"}).status_code < 300
    night = {"tag": "billing", "cron": "0 * * * *", "duration_seconds": 1_800, "policy": "skip"}
    assert client.put("/api/blackouts/half", json=night).status_code < 300, night
    body = EACH_SECOND | {"id": "s1", "destination": "erp", "queue": "eu", "tags": ["billing"]}
    promise = promise_of(client, body)
    assert promise["receiver"] == {"reachable": True, "status_code": 503}
    assert (promise["queue"], promise["workers"]) == ("eu", 0)
    assert promise["allowed_an_hour"] == 900
    assert 1_000 < promise["owed_an_hour"] <= 3_600
    assert promise["held_back"] > 10_000
    said = promise["problems"]
    assert said[0] == "no worker serves its queue eu: its events would wait"
    assert said[1].endswith("an hour, and the destination allows 900")
    assert said[2] == "the destination erp is paused"
    assert said[3].endswith("of the next day fall into blackouts")
    assert said[4] == "the kill switch of the tag billing is on"
    assert len(said) == 5


def test_a_dry_run_promises_too_and_makes_nothing(client: FlaskClient, journal: Journal) -> None:
    body = EACH_SECOND | {"id": "s1", "callback_url": journal.url("/hook")}
    promise = promise_of(client, body, "?promise=true&dry_run=true")
    assert promise["owed_an_hour"] == 3_600
    assert promise["receiver"]["reachable"] is True
    assert client.get("/api/schedules/s1").status_code == 404


def test_a_receiver_that_does_not_answer_is_told(client: FlaskClient) -> None:
    promise = promise_of(client, DAILY | {"callback_url": "http://127.0.0.1:9/"})
    assert promise["receiver"]["reachable"] is False
    assert any(each.startswith("its receiver does not answer: ") for each in promise["problems"])


def test_no_more_than_a_few_receivers_are_asked_at_once(client: FlaskClient, journal: Journal) -> None:
    tests = client.application.extensions["scheduler"].destinations.tests
    taken = 0
    while tests.acquire(blocking=False):
        taken += 1
    try:
        promise = promise_of(client, DAILY | {"callback_url": journal.url("/hook")})
    finally:
        for _ in range(taken):
            tests.release()
    assert promise["receiver"] == {"error": "too many receivers are being asked at this moment"}
    assert journal.connections == 0
    # Each has given back its place.
    for _ in range(taken + 1):
        assert promise_of(client, DAILY | {"callback_url": journal.url("/hook")})["receiver"]["reachable"]


def test_a_command_has_no_receiver(client: FlaskClient) -> None:
    promise = promise_of(
        client,
        {"name": "n", "cron": "0 9 * * *", "action": {"type": "celery_task", "task": "t", "broker": "b"}},
    )
    assert "receiver" not in promise


def test_a_trigger_that_is_not_saved_has_a_promise_without_a_receiver(client: FlaskClient) -> None:
    client.put("/api/calendars/zurich", json={"weekend": ["SA", "SU"]})
    body = {"cron": "0 9 * * *", "calendar": "zurich", "timezone": "Europe/Zurich", "limit": 1}
    shown = client.post("/api/schedules/preview?promise=true", json=body).get_json()
    assert len(shown["promise"]["next_runs"]) == 5
    assert shown["promise"]["next_runs"][0] == shown["occurrences"][0]["run_time"]
    assert "receiver" not in shown["promise"]
    assert "promise" not in client.post("/api/schedules/preview", json=body).get_json()
    assert client.post("/api/schedules/preview?promise=perhaps", json=body).status_code == 422

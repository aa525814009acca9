"""Messages over HTTP: scheduled once, shown masked, listed, cancelled and moved."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from scheduler_app.broker.app import make_app
from scheduler_app.broker.publisher import CeleryPublisher
from scheduler_app.clock import clock
from scheduler_app.config import Settings
from scheduler_app.domain.masking import MASK
from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.store.events.outcomes import OutcomeRecord
from scheduler_app.usecases.deeds.events import NOT_ANSWERED

LATER = "2040-01-01T00:00:00Z"
URL = "http://127.0.0.1:9/hook?sig=query-secret"
FULL: dict[str, Any] = {
    "event_name": "orders.reminder",
    "callback_url": URL,
    "headers": {"X-Key": "header-secret", "Accept": "text/plain"},
    "metadata": {"trace": "metadata-secret"},
    "payload": {"card": "body-secret"},
    "scheduled_at": LATER,
    "max_retries": 2,
    "timeout_seconds": 5,
    "success_codes": [202],
    "retry_codes": ["5xx"],
    "signing": True,
}


@pytest.fixture
def schedule(client: FlaskClient) -> Callable[..., Any]:
    def made(status: int = 201, **fields: Any) -> Any:
        body = {"callback_url": "http://127.0.0.1:9/", "scheduled_at": LATER} | fields
        answer = client.post("/api/messages", json={k: v for k, v in body.items() if v is not None})
        assert answer.status_code == status, answer.text
        return answer.get_json()

    return made


def fail(store: Store, event_id: str) -> None:
    """Makes a dead letter of a waiting message."""
    now = clock.now() + timedelta(days=36_500)
    token, won = store.claims.claim([event_id], until=now, now=now, lease_seconds=9, worker="w")
    assert won
    entry = {"number": 1, "error": "no"}
    assert (
        store.outcomes.record([OutcomeRecord(event_id, token, State.ERROR, "said", None, entry, now)]) == []
    )


def test_a_message_is_shown_without_its_secrets(client: FlaskClient) -> None:
    answer = client.post("/api/messages", json=FULL | {"id": "m1"})
    assert answer.status_code == 201, answer.text
    assert answer.headers["Location"] == "/api/messages/m1"
    made = answer.get_json()
    assert made.pop("signing_secret").startswith("whsec_")
    assert "secret" not in str(made)
    shown = client.get("/api/messages/m1")
    assert shown.get_json() == made
    assert made["event_id"] == "msg_m1"
    assert made["state"] == "ready_queue"
    assert made["scheduled_at"] == made["due_at"] == LATER
    assert made["method"] == "POST"
    assert made["headers"] == {"X-Key": MASK, "Accept": "text/plain"}
    assert made["metadata"] == {"trace": MASK}
    assert made["payload"] == MASK
    assert made["callback_url"] == f"http://127.0.0.1:9/hook?sig={MASK}"
    same = ("event_name", "max_retries", "timeout_seconds", "success_codes", "retry_codes", "signing")
    assert {name: made[name] for name in same} == {name: FULL[name] for name in same}


def test_a_message_in_a_queue_reaches_the_workers_of_that_queue(
    client: FlaskClient, schedule: Callable[..., Any], store: Store, settings: Settings
) -> None:
    made = schedule(id="in-eu", queue="eu", scheduled_at=None)
    assert made["queue"] == client.get("/api/messages/in-eu").get_json()["queue"] == "eu"
    assert schedule(id="in-none", scheduled_at=None)["queue"] == "callbacks"
    broker = CeleryPublisher(make_app(settings))
    assert (broker.queue_lengths("eu").total, broker.queue_lengths("callbacks").total) == (1, 1)
    # Whatever message a worker gets, it claims the events of its own queues alone.
    now, ids = clock.now(), ["msg_in-eu", "msg_in-none"]
    until = now + timedelta(seconds=1)
    _, others = store.claims.claim(ids, until=until, now=now, lease_seconds=9, worker="w")
    _, own = store.claims.claim(ids, until=until, now=now, lease_seconds=9, worker="w", queues=("eu",))
    assert ([each.id for each in others], [each.id for each in own]) == (["msg_in-none"], ["msg_in-eu"])


def test_a_message_stays_in_its_queue_when_it_is_moved_and_another_queue_is_another_message(
    client: FlaskClient, schedule: Callable[..., Any], settings: Settings
) -> None:
    schedule(id="moved", queue="eu")
    schedule(200, id="moved", queue="eu")
    assert "other content" in schedule(409, id="moved", queue="us")["detail"]
    assert "other content" in schedule(409, id="moved")["detail"]
    soon = client.post("/api/messages/moved/reschedule", json={"delay_seconds": 0})
    assert soon.get_json()["queue"] == "eu"
    broker = CeleryPublisher(make_app(settings))
    assert (broker.queue_lengths("eu").total, broker.queue_lengths("callbacks").total) == (1, 0)


@pytest.mark.parametrize("queue", ["commands", "tasks", "e u", "", "x" * 65, 1])
def test_a_queue_that_no_message_may_be_in_is_refused(schedule: Callable[..., Any], queue: object) -> None:
    assert schedule(422, queue=queue)["errors"][0]["pointer"] == "/queue"


def test_an_id_that_is_known_answers_as_the_first_time_or_conflicts(
    client: FlaskClient, schedule: Callable[..., Any]
) -> None:
    first = schedule(**FULL | {"id": "m1"})
    again = schedule(200, **FULL | {"id": "m1"})
    assert "signing_secret" not in again, "it was shown once"
    assert again == {name: value for name, value in first.items() if name != "signing_secret"}
    conflict = schedule(409, **FULL | {"id": "m1", "payload": {"card": "another"}})
    assert "m1" in conflict["detail"]
    assert len(client.get("/api/messages").get_json()["messages"]) == 1


def test_a_delay_that_is_asked_for_again_is_the_same_content(schedule: Callable[..., Any]) -> None:
    first = schedule(id="m1", scheduled_at=None, delay_seconds=3600)
    assert schedule(200, id="m1", scheduled_at=None, delay_seconds=3600) == first
    schedule(409, id="m1", scheduled_at=None, delay_seconds=3601)


def test_a_request_that_is_sent_again_with_its_key_makes_one_message(client: FlaskClient) -> None:
    answers = [
        client.post("/api/messages", json=FULL, headers={"Idempotency-Key": "key-1"}) for _ in range(2)
    ]
    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].get_json()["id"] == answers[1].get_json()["id"]
    assert len(client.get("/api/messages").get_json()["messages"]) == 1


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"delay_seconds": 5}, "delay_seconds"),
        ({"scheduled_at": "2040-01-01T00:00:00"}, "scheduled_at"),
        ({"scheduled_at": None, "delay_seconds": -1}, "delay_seconds"),
        ({"scheduled_at": "9999-01-01T00:00:00Z"}, "scheduled_at"),
        ({"id": "a:b"}, "id"),
        ({"id": "bulk"}, "id"),
        ({"callback_url": None}, "callback_url"),
        ({"callback_url": "http://10.0.0.1/"}, "callback_url"),
        ({"payload": 1, "body": "x"}, "body"),
        ({"payload": MASK}, "payload"),
        ({"body_base64": "!"}, "body_base64"),
        ({"body": "x" * 300_000}, "body"),
        ({"metadata": {"a b": "x"}}, "metadata"),
        ({"metadata": {"a": "x\ny"}}, "metadata"),
        ({"metadata": {f"m{number}": "x" for number in range(51)}}, "metadata"),
        ({"event_name": "a\x1bb"}, "event_name"),
        ({"event_name": ""}, "event_name"),
        ({"rrule": "FREQ=DAILY"}, "rrule"),
    ],
)
def test_what_is_wrong_is_named(schedule: Callable[..., Any], fields: dict[str, Any], name: str) -> None:
    problem = schedule(422, **fields)
    assert [error["pointer"] for error in problem["errors"]] == [f"/{name}"]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"payload": None}, {}),
        ({"body": "text"}, {"body": MASK}),
        ({"body_base64": "AP8="}, {"body_base64": MASK}),
    ],
)
def test_a_body_is_shown_in_the_field_that_gave_it(
    schedule: Callable[..., Any], given: dict[str, Any], shown: dict[str, str]
) -> None:
    made = schedule(**given)
    assert {name: made[name] for name in ("payload", "body", "body_base64") if name in made} == shown


def test_many_are_taken_or_refused_each_by_itself(client: FlaskClient, schedule: Callable[..., Any]) -> None:
    schedule(id="known")
    good = {"callback_url": "http://127.0.0.1:9/", "scheduled_at": LATER}
    items = [
        good | {"id": "a", "signing": True},
        good | {"id": "known"},
        good | {"id": "known", "event_name": "another"},
        good | {"id": "x y"},
        good | {"id": "a", "signing": True},
        good | {"retry_backoff_seconds": 60, "retry_backoff_max_seconds": 1},
        good,
    ]
    answer = client.post("/api/messages/bulk", json={"messages": items})
    assert answer.status_code == 200, answer.text
    view = answer.get_json()
    assert [each["status"] for each in view["results"]] == [201, 200, 409, 422, 200, 422, 201]
    assert (view["created"], view["refused"]) == (2, 3)
    assert view["results"][0]["event_id"] == "msg_a"
    assert view["results"][0]["signing_secret"].startswith("whsec_")
    assert len(client.get("/api/messages").get_json()["messages"]) == 3


@pytest.mark.parametrize("count", [0, 1001])
def test_a_bulk_has_a_bound(client: FlaskClient, count: int) -> None:
    items = [{"callback_url": "http://127.0.0.1:9/"}] * count
    answer = client.post("/api/messages/bulk", json={"messages": items})
    assert answer.status_code == 422
    assert "/messages" in answer.text


def test_lists_are_filtered(client: FlaskClient, schedule: Callable[..., Any]) -> None:
    for year, name in ((2041, "a"), (2042, "b"), (2043, "a")):
        schedule(id=f"m{year}", event_name=name, scheduled_at=f"{year}-01-01T00:00:00Z")
    client.post("/api/messages/m2043/cancel")

    def listed(query: str = "") -> list[str]:
        answer = client.get(f"/api/messages?{query}")
        assert answer.status_code == 200, answer.text
        return [each["id"] for each in answer.get_json()["messages"]]

    assert listed() == ["m2041", "m2042", "m2043"]
    assert listed("event_name=a") == ["m2041", "m2043"]
    assert listed("before=2042-01-01T00:00:00Z") == ["m2041"]
    assert listed("after=2042-01-01T00:00:00Z") == ["m2042", "m2043"]
    assert listed("state=cancelled") == ["m2043"]
    assert listed("state=ready_queue,worker_queue&event_name=a") == ["m2041"]
    cursor = client.get("/api/messages?limit=2").get_json()["next_cursor"]
    assert listed(f"limit=2&cursor={cursor}") == ["m2043"]
    assert client.get("/api/messages?states=ready_queue").status_code == 422


@pytest.mark.parametrize("verb", ["cancel", "delete"])
def test_a_cancelled_message_is_wiped_and_stays_cancelled(
    client: FlaskClient, app: Flask, schedule: Callable[..., Any], verb: str
) -> None:
    def cancel() -> Any:
        path = "/api/messages/m1"
        return client.post(f"{path}/cancel") if verb == "cancel" else client.delete(path)

    assert cancel().status_code == 404
    schedule(**FULL | {"id": "m1"})
    answers = [cancel() for _ in range(2)]
    assert [each.status_code for each in answers] == [200, 200]
    assert answers[0].get_json()["state"] == "cancelled"
    assert len(answers[1].get_json()["status"]) == 2, "the second one changes nothing"
    row = app.extensions["scheduler"].store.mongo.collection("events").find_one({"_id": "msg_m1"})
    assert "secret" not in str(row)
    assert schedule(200, **FULL | {"id": "m1"})["state"] == "cancelled"


def test_a_message_moves_to_another_time(client: FlaskClient, schedule: Callable[..., Any]) -> None:
    schedule(id="m1")

    def move(**body: Any) -> Any:
        return client.post("/api/messages/m1/reschedule", json=body)

    moved = move(scheduled_at="2041-01-01T00:00:00Z")
    assert moved.status_code == 200, moved.text
    assert moved.get_json()["scheduled_at"] == moved.get_json()["due_at"] == "2041-01-01T00:00:00Z"
    assert move().status_code == 422
    assert move(scheduled_at=LATER, delay_seconds=5).status_code == 422
    assert schedule(200, id="m1")["scheduled_at"] == "2041-01-01T00:00:00Z", "it was asked for as before"
    client.post("/api/messages/m1/cancel")
    assert move(delay_seconds=5).status_code == 409
    assert client.post("/api/messages/none/reschedule", json={"delay_seconds": 5}).status_code == 404


def test_what_was_sent_is_neither_cancelled_nor_moved(
    client: FlaskClient, app: Flask, schedule: Callable[..., Any]
) -> None:
    schedule(id="m1")
    fail(app.extensions["scheduler"].store, "msg_m1")
    for answer in (
        client.post("/api/messages/m1/cancel"),
        client.post("/api/messages/m1/reschedule", json={"delay_seconds": 5}),
    ):
        assert answer.status_code == 409
        assert "error" in answer.get_json()["detail"]


def test_a_message_whose_worker_does_not_answer_is_not_said_to_be_in_flight(
    client: FlaskClient, app: Flask, schedule: Callable[..., Any]
) -> None:
    schedule(id="m1")
    app.extensions["scheduler"].store.mongo.collection("events").update_one(
        {"_id": "msg_m1"}, {"$set": {"state": State.RUNNING}}
    )
    answer = client.post("/api/messages/m1/cancel")
    assert answer.status_code == 409
    assert f"the message is running: {NOT_ANSWERED}" in answer.get_json()["detail"]
    moved = client.post("/api/messages/m1/reschedule", json={"delay_seconds": 5})
    assert moved.status_code == 409
    assert "its request is in flight, or about to be, and it cannot be rescheduled" in moved.text


def test_a_message_is_an_event_among_the_others(
    client: FlaskClient, app: Flask, schedule: Callable[..., Any]
) -> None:
    schedule(id="m1")
    event = client.get("/api/events/msg_m1").get_json()
    assert (event["kind"], event["state"]) == ("message", "ready_queue")
    assert "schedule_id" not in event
    assert [each["_id"] for each in client.get("/api/events").get_json()["events"]] == ["msg_m1"]
    fail(app.extensions["scheduler"].store, "msg_m1")
    assert client.post("/api/events/msg_m1/redrive").status_code == 202
    fail(app.extensions["scheduler"].store, "msg_m1")
    assert (
        client.post("/api/events/redrive", json={"origin": "http://127.0.0.1:9"}).get_json()["redriven"] == 1
    )
    assert client.post("/api/events/msg_m1/cancel").status_code == 200
    row = app.extensions["scheduler"].store.mongo.collection("events").find_one({"_id": "msg_m1"})
    assert row["wiped"] is True


def test_a_dry_run_says_what_would_be_and_changes_nothing(
    client: FlaskClient, schedule: Callable[..., Any]
) -> None:
    would = client.post("/api/messages?dry_run=true", json=FULL | {"id": "m1"})
    assert would.status_code == 201, would.text
    assert would.get_json()["dry_run"] is True
    assert client.get("/api/messages/m1").status_code == 404
    schedule(id="m1")
    assert client.post("/api/messages/m1/cancel?dry_run=true").get_json()["state"] == "cancelled"
    moved = client.post("/api/messages/m1/reschedule?dry_run=true", json={"delay_seconds": 60})
    assert moved.status_code == 200, moved.text
    assert moved.get_json()["scheduled_at"] != LATER
    assert client.get("/api/messages/m1").get_json()["scheduled_at"] == LATER


def test_a_message_that_cannot_be_read_says_why(
    client: FlaskClient, app: Flask, schedule: Callable[..., Any]
) -> None:
    schedule(id="m1")
    schedule(id="m2")
    events = app.extensions["scheduler"].store.mongo.collection("events")
    events.update_one({"_id": "msg_m1"}, {"$set": {"action.url": 5}})
    shown = client.get("/api/messages/m1").get_json()
    assert "action.url" in shown["unreadable"]
    assert len(client.get("/api/messages").get_json()["messages"]) == 2
    assert "cannot be compared" in schedule(409, id="m1")["detail"]


def test_a_message_names_a_destination_in_place_of_a_url(
    client: FlaskClient, app: Flask, schedule: Callable[..., Any]
) -> None:
    def named(status: int = 201, **fields: Any) -> Any:
        return schedule(status, **{"callback_url": None, "destination": "billing"} | fields)

    assert "PUT /api/v1/destinations/billing" in named(422)["detail"]
    made = client.put("/api/destinations/billing", json={"url": "http://127.0.0.1:9/base", "signing": True})
    assert made.status_code == 201, made.text
    shown = named(id="m1", path="/orders?sig=secret")
    assert (shown["destination"], shown["path"]) == ("billing", f"/orders?sig={MASK}")
    assert "callback_url" not in shown
    named(422, callback_url="http://127.0.0.1:9/")
    schedule(id="m2")
    for query in ("destination=billing", "destination=billing&event_name=none"):
        rows = client.get(f"/api/messages?{query}").get_json()["messages"]
        assert [each["id"] for each in rows] == (["m1"] if "none" not in query else [])
    refused = client.delete("/api/destinations/billing")
    assert refused.status_code == 409
    assert "1 message waits" in refused.get_json()["detail"]
    client.post("/api/messages/m1/cancel")
    assert client.delete("/api/destinations/billing").status_code in (200, 204)


def test_a_bulk_reads_each_destination_once(client: FlaskClient, app: Flask) -> None:
    client.put("/api/destinations/billing", json={"url": "http://127.0.0.1:9/", "allowed_methods": ["POST"]})
    items = [{"destination": "billing", "scheduled_at": LATER}, {"destination": "none"}] * 2
    items.append({"destination": "billing", "method": "PUT"})
    results = client.post("/api/messages/bulk", json={"messages": items}).get_json()["results"]
    assert [each["status"] for each in results] == [201, 422, 201, 422, 422]

"""Destinations: put, changed, masked, paused, tested, and named by schedules."""

import socket
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from cryptography.fernet import Fernet
from flask import Flask
from flask.testing import FlaskClient

from scheduler_app.actions.http import sign
from scheduler_app.domain.destination import Destination
from scheduler_app.domain.http_action import http_action
from scheduler_app.domain.masking import MASK
from scheduler_app.domain.schedule import Schedule
from scheduler_app.store import Store
from scheduler_app.usecases.deeds import destinations
from tests.builders import LONGEST_SECONDS
from tests.integration.actions.receiver import Receiver, Seen, says

PATH = "/api/destinations/billing"
BODY: dict[str, Any] = {
    "url": "http://127.0.0.1:9/base?key=canary-query",
    "headers": {"X-Team": "canary-header", "Accept": "text/plain"},
    "auth": {"type": "basic", "username": "bob", "password": "canary-password"},
    "timeout_seconds": 7,
    "max_retries": 2,
    "retry_codes": [500],
    "success_codes": ["2xx", 404],
    "rate_per_second": 50,
    "burst": 10,
    "concurrency": 5,
    "breaker": {"failures": 3, "open_seconds": 60},
}
SCHEDULE = {"name": "n", "destination": "billing", "on_demand": True}


@pytest.fixture
def put(client: FlaskClient) -> Callable[..., dict[str, Any]]:
    def made(**changes: Any) -> dict[str, Any]:
        answer = client.put(PATH, json=BODY | changes)
        assert answer.status_code in (200, 201), answer.text
        found: dict[str, Any] = answer.get_json()
        return found

    return made


def delivered(store: Store, schedule_id: str) -> Schedule:
    """The schedule as a worker would deliver it now."""
    schedule = store.schedules.for_delivery([schedule_id])[schedule_id]
    assert isinstance(schedule, Schedule)
    name = http_action(schedule.action).destination
    assert name
    destination = store.destinations.for_delivery([name])[name]
    assert isinstance(destination, Destination), destination
    return destination.applied_to(schedule)


def test_a_destination_is_shown_as_it_was_put_with_its_secrets_masked(client: FlaskClient) -> None:
    made = client.put(PATH, json=BODY)
    assert made.status_code == 201
    assert made.headers["Location"] == PATH
    shown = client.get(PATH).get_json()
    assert "canary" not in made.text + client.get(PATH).text + client.get("/api/destinations").text
    flow = shown.pop("flow")
    assert (flow["breaker"], flow["in_flight"], flow["waiting"]) == ("closed", 0, 0)
    assert flow["tokens"] == 5  # of a burst of 10, half is kept back for jitter
    assert made.get_json() == shown | {"result": "created"}
    assert shown["url"] == f"http://127.0.0.1:9/base?key={MASK}"
    assert shown["headers"] == {"X-Team": MASK, "Accept": "text/plain"}
    assert shown["auth"] == {"type": "basic", "username": "bob", "password": MASK}
    for name in (
        "timeout_seconds",
        "max_retries",
        "retry_codes",
        "success_codes",
        "rate_per_second",
        "burst",
    ):
        assert shown[name] == BODY[name]
    assert shown["breaker"] == BODY["breaker"]
    assert shown["concurrency"] == 5
    assert shown["paused"] is False
    assert [each["name"] for each in client.get("/api/destinations").get_json()["destinations"]] == [
        "billing"
    ]


def test_what_is_shown_may_be_put_back_and_changes_nothing(
    client: FlaskClient, put: Callable[..., Any], store: Store
) -> None:
    put()
    shown = client.get(PATH).get_json()
    body = {name: shown[name] for name in BODY}
    answer = client.put(PATH, json=body)
    assert answer.get_json()["result"] == "unchanged"
    assert answer.get_json()["version"] == 1
    found = store.destinations.get("billing")
    assert isinstance(found, Destination)
    assert found.auth
    assert found.auth.secret == "canary-password"
    assert dict(found.headers)["X-Team"] == "canary-header"
    assert found.url == BODY["url"]


@pytest.mark.parametrize("part", ["headers", "auth"])
def test_secrets_do_not_follow_a_destination_to_another_origin(
    client: FlaskClient, put: Callable[..., Any], part: str
) -> None:
    without_the_other: dict[str, Any] = {"auth": None} if part == "headers" else {"headers": {}}
    put(url="http://127.0.0.1:9/base", **without_the_other)
    elsewhere = {"url": "http://127.0.0.2:9/base"}
    answer = client.patch(PATH, json=elsewhere)
    assert answer.status_code == 422
    assert "origin" in answer.text
    assert client.patch(PATH, json=elsewhere | {part: {} if part == "headers" else None}).status_code == 200


def test_put_replaces_and_patch_changes(client: FlaskClient, put: Callable[..., Any]) -> None:
    put()
    changed = client.patch(PATH, json={"rate_per_second": 5, "breaker": None}).get_json()
    assert changed["rate_per_second"] == 5
    assert "breaker" not in changed
    assert changed["concurrency"] == 5
    assert changed["version"] == 2
    assert changed["result"] == "changed"
    replaced = client.put(PATH, json={"url": "http://127.0.0.1:9/other"}).get_json()
    assert "rate_per_second" not in replaced
    assert "auth" not in replaced
    assert replaced["headers"] == {}


def test_conditions_and_dry_runs_hold_as_for_schedules(client: FlaskClient, put: Callable[..., Any]) -> None:
    free: dict[str, Any] = {"rate_per_second": None, "burst": 1, "concurrency": None, "breaker": None}
    dry = client.put(f"{PATH}?dry_run=true", json=BODY)
    assert dry.status_code == 201
    assert dry.get_json()["dry_run"]
    assert client.get(PATH).status_code == 404
    put(**free)  # what has limits moves without a change
    tag = client.get(PATH).headers["ETag"]
    assert client.get(PATH, headers={"If-None-Match": tag}).status_code == 304
    assert client.patch(PATH, json={"paused": True}, headers={"If-Match": tag}).status_code == 200
    for refused in (
        client.patch(PATH, json={"paused": False}, headers={"If-Match": tag}),
        client.put(PATH, json=BODY, headers={"If-Match": tag}),
        client.put(f"{PATH}?if-absent", json=BODY),
        client.delete(PATH, headers={"If-Match": tag}),
        client.put("/api/destinations/none", json=BODY, headers={"If-Match": "*"}),
    ):
        assert refused.status_code == 412, refused.text
    assert client.delete(f"{PATH}?dry_run=true").status_code == 200
    assert client.get(PATH).status_code == 200


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"url": "ftp://x/"}, "/url"),
        ({"url": "http://169.254.1.1/"}, "/url"),
        ({"headers": {"X-A": "1\r\nX-B: 2"}}, "/headers"),
        ({"headers": {"Authorization": "x"}}, "/auth"),
        ({"auth": {"type": "basic", "username": "bob"}}, "/auth/password"),
        ({"auth": {"type": "bearer", "token": "t", "username": "bob"}}, "/auth/username"),
        ({"method": "PUT", "allowed_methods": ["POST"]}, "/method"),
        ({"allowed_methods": []}, "/allowed_methods"),
        ({"rate_per_second": 0}, "/rate_per_second"),
        ({"rate_per_second": None, "burst": 5}, "/burst"),
        ({"concurrency": 0}, "/concurrency"),
        ({"breaker": {"failures": 3}}, "/breaker/open_seconds"),
        ({"retry_backoff_seconds": 9, "retry_backoff_max_seconds": 1}, "/retry_backoff_max_seconds"),
        ({"rps": 5}, "/rps"),
    ],
)
def test_bad_fields_are_refused_by_name(client: FlaskClient, change: dict[str, Any], field: str) -> None:
    answer = client.put(PATH, json=BODY | change)
    assert answer.status_code == 422, answer.text
    assert field in [each["pointer"] for each in answer.get_json()["errors"]], answer.text
    assert "canary" not in answer.text


def test_a_schedule_is_delivered_as_its_destination_says(
    client: FlaskClient, put: Callable[..., Any], store: Store
) -> None:
    put()
    body = SCHEDULE | {"path": "/orders?kind=new", "headers": {"x-team": "own"}, "json": {"a": 1}}
    made = client.post("/api/schedules", json=body)
    assert made.status_code == 201, made.text
    shown = made.get_json()
    assert shown["destination"] == "billing"
    assert shown["path"] == f"/orders?kind={MASK}"
    assert "callback_url" not in shown
    assert "method" not in shown
    whole = delivered(store, shown["id"])
    action = http_action(whole.action)
    assert action.url == "http://127.0.0.1:9/base/orders?key=canary-query&kind=new"
    assert action.method == "POST"
    assert whole.timeout_seconds == 7
    assert whole.retry.max_retries == 2
    assert dict(action.headers) == {
        "x-team": "own",
        "Accept": "text/plain",
        "Authorization": "Basic Ym9iOmNhbmFyeS1wYXNzd29yZA==",
    }


def test_a_change_of_a_destination_reaches_schedules_at_once(
    client: FlaskClient, put: Callable[..., Any], store: Store
) -> None:
    put()
    made = client.post("/api/schedules", json=SCHEDULE).get_json()
    assert delivered(store, made["id"]).timeout_seconds == 7
    assert client.patch(PATH, json={"timeout_seconds": 8, "signing": True}).get_json()["signing_secret"]
    after = delivered(store, made["id"])
    assert after.timeout_seconds == 8
    assert after.signing is not None


def test_a_schedule_names_a_destination_or_a_url(client: FlaskClient, put: Callable[..., Any]) -> None:
    answer = client.post("/api/schedules", json=SCHEDULE)
    assert answer.status_code == 422
    assert "PUT /api/v1/destinations/billing" in answer.text
    put(allowed_methods=["POST"])
    for body, field in (
        (SCHEDULE | {"callback_url": "http://127.0.0.1:9/"}, "/callback_url"),
        ({"name": "n", "on_demand": True}, "/callback_url"),
        ({"name": "n", "on_demand": True, "callback_url": "http://127.0.0.1:9/", "path": "/x"}, "/path"),
        (SCHEDULE | {"path": "/../admin"}, "/path"),
        (SCHEDULE | {"path": "x"}, "/path"),
        (SCHEDULE | {"method": "DELETE"}, "/method"),
    ):
        answer = client.post("/api/schedules", json=body)
        assert answer.status_code == 422, (body, answer.text)
        assert field in [each["pointer"] for each in answer.get_json()["errors"]], answer.text


def test_a_schedule_moves_between_a_url_and_a_destination_without_taking_secrets_along(
    client: FlaskClient, put: Callable[..., Any], create: Callable[..., Any]
) -> None:
    put()
    made = create(headers={"X-Key": "canary"})
    path = f"/api/schedules/{made['id']}"
    refused = client.put(path, json={"destination": "billing"})
    assert refused.status_code == 422
    assert "X-Key" in refused.text
    moved = client.put(path, json={"destination": "billing", "headers": {}})
    assert moved.status_code == 200
    assert moved.get_json()["destination"] == "billing"
    back = client.put(path, json={"callback_url": "http://127.0.0.1:9/"}).get_json()
    assert "destination" not in back
    assert back["method"] == "GET"


def test_a_destination_in_use_is_not_deleted_and_one_that_is_not_leaves_nothing(
    client: FlaskClient, put: Callable[..., Any], store: Store
) -> None:
    put()
    first = client.post("/api/schedules", json=SCHEDULE).get_json()["id"]
    second = client.post("/api/schedules", json=SCHEDULE).get_json()["id"]
    refused = client.delete(PATH)
    assert refused.status_code == 409
    assert "2 schedules" in refused.text
    for each in (first, second):
        assert client.delete(f"/api/schedules/{each}").status_code == 200
    assert client.delete(PATH).status_code == 200
    assert client.get(PATH).status_code == 404
    assert store.mongo.collection("destinations").count_documents({}) == 0


def test_secrets_are_sealed_in_mongodb(make_api: Callable[..., Flask], store: Store) -> None:
    client = make_api(secrets_key=Fernet.generate_key().decode()).test_client()
    secret = client.put(PATH, json=BODY | {"signing": True}).get_json()["signing_secret"]
    (row,) = store.mongo.collection("destinations").find({})
    assert "canary" not in str(row)
    assert secret not in str(row)
    assert client.get(PATH).get_json()["auth"]["password"] == MASK
    assert client.patch(PATH, json={"timeout_seconds": 3}).status_code == 200


def test_a_corrupt_destination_says_so_and_harms_only_itself(
    client: FlaskClient, put: Callable[..., Any], store: Store
) -> None:
    put()
    assert client.put("/api/destinations/other", json=BODY).status_code == 201
    store.mongo.collection("destinations").update_one({"_id": "billing"}, {"$set": {"burst": "many"}})
    assert client.get(PATH).status_code == 409
    assert "burst" in client.get(PATH).text
    listed = client.get("/api/destinations").get_json()["destinations"]
    assert {each["name"]: "corrupt" in each for each in listed} == {"billing": True, "other": False}
    assert client.delete(PATH).status_code == 200


def test_pause_and_resume_are_changes(client: FlaskClient, put: Callable[..., Any]) -> None:
    put()
    assert client.post(f"{PATH}/pause").get_json()["paused"] is True
    assert client.post(f"{PATH}/pause").get_json()["result"] == "unchanged"
    assert client.post(f"{PATH}/resume").get_json()["paused"] is False


def echoes_credentials(seen: Seen, connection: socket.socket) -> bool:
    return says("200 OK", body=f"{seen.path} {seen.headers['authorization']}".encode())(seen, connection)


def test_a_test_sends_one_signed_request_and_shows_the_answer_without_secrets(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(destinations, "MAX_TEST_SECONDS", LONGEST_SECONDS)
    with closing(Receiver(echoes_credentials)) as receiver:
        url = f"http://127.0.0.1:{receiver.port}/hook?key=canary-query"
        body = BODY | {"url": url, "signing": True, "timeout_seconds": LONGEST_SECONDS}
        secret = client.put(PATH, json=body).get_json()["signing_secret"]
        dry = client.post(f"{PATH}/test?dry_run=true")
        assert dry.get_json()["sent"] is False
        assert not receiver.seen
        answer = client.post(f"{PATH}/test")
        shown = answer.get_json()
        assert (shown["sent"], shown["outcome"], shown["status_code"]) == (True, "success", 200)
        assert "canary" not in answer.text
        assert MASK in shown["snippet"]
        (seen,) = receiver.seen
    assert seen.headers["idempotency-key"] == shown["event_id"]
    at = int(seen.headers["webhook-timestamp"])
    assert seen.headers["webhook-signature"] == sign(secret, shown["event_id"], at, b"")


def test_a_test_of_a_receiver_that_is_away_says_so(client: FlaskClient, put: Callable[..., Any]) -> None:
    put()
    shown = client.post(f"{PATH}/test").get_json()
    assert shown["outcome"] == "retry"
    assert shown["error"]

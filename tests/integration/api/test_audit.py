"""The audit by the API: who did what to what, and whose lines a key is shown."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from scheduler_app.api.acts import REASON_HEADER, REQUEST_ID_HEADER
from scheduler_app.store import Store
from scheduler_app.usecases.duties.audit import AuditDuty

ROOT = {"X-API-Key": "0123456789abcdef"}
URL = "http://127.0.0.1:9/"


@pytest.fixture
def client(make_api: Callable[..., Flask]) -> FlaskClient:
    return make_api(
        api_keys=("root:0123456789abcdef",), tasks_api=True, allowed_commands=("echo *",)
    ).test_client()


def _lines(client: FlaskClient, headers: dict[str, str] = ROOT, **query: Any) -> list[dict[str, Any]]:
    answer = client.get("/api/v1/audit", query_string=query, headers=headers)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.get_json()["lines"]
    return found


def _settle(store: Store) -> None:
    duty = AuditDuty(store, 400)
    duty.move_page(store.mongo.server_time())
    duty.chain_page(store.mongo.server_time())


def test_a_line_says_who_why_and_by_which_request(client: FlaskClient, store: Store) -> None:
    given = ROOT | {REASON_HEADER: "asked by Bob", REQUEST_ID_HEADER: "r-1"}
    answer = client.put("/api/v1/destinations/d1", json={"url": f"{URL}?t=s3cr3t"}, headers=given)
    assert (answer.status_code, answer.headers[REQUEST_ID_HEADER]) == (201, "r-1")
    _settle(store)
    [line] = _lines(client)
    assert line["who"] == {"kind": "key", "name": "root", "address": "127.0.0.1"}
    assert (line["what"], line["resource"], line["reason"], line["request_id"]) == (
        "created",
        "destination/d1",
        "asked by Bob",
        "r-1",
    )
    assert (line["number"], len(line["hash"])) == (1, 64)
    assert "s3cr3t" not in str(list(store.mongo.collection("audit").find({})))


def test_every_answer_to_what_may_change_something_names_the_request(client: FlaskClient) -> None:
    bad = ROOT | {REQUEST_ID_HEADER: "with a space"}
    answers = [client.delete("/api/v1/destinations/none", headers=bad) for _ in range(2)]
    first, second = (each.headers[REQUEST_ID_HEADER] for each in answers)
    assert len(first) == len(second) == 16
    assert first != second
    assert REQUEST_ID_HEADER not in client.get("/api/v1/destinations", headers=ROOT).headers


def test_secrets_are_told_apart_by_digests(client: FlaskClient, store: Store) -> None:
    for token in ("a", "b", "a"):
        client.put("/api/v1/destinations/d1", json={"url": URL, "headers": {"X-Token": token}}, headers=ROOT)
    back, changed, made = _lines(client)
    assert changed["before"]["secrets"] == made["after"]["secrets"] == back["after"]["secrets"]
    assert changed["after"]["secrets"] != changed["before"]["secrets"]


def test_the_list_is_filtered(client: FlaskClient, store: Store) -> None:
    client.put("/api/v1/destinations/d1", json={"url": URL}, headers=ROOT)
    client.put("/api/v1/destinations/d2", json={"url": URL}, headers=ROOT)
    made = client.post(
        "/api/v1/keys", json={"name": "ann", "scopes": ["read", "write", "admin"]}, headers=ROOT
    ).get_json()
    ann = {"X-API-Key": made["key"]}
    client.delete("/api/v1/destinations/d1", headers=ann)
    assert [each["what"] for each in _lines(client, resource="destination/d1")] == [
        "deleted",
        "deletion begun",
        "created",
    ]
    assert {each["resource"] for each in _lines(client, resource="destination")} == {
        "destination/d1",
        "destination/d2",
    }
    assert [each["who"] for each in _lines(client, who="ann", what="deleted")] == [
        {"kind": "key", "name": "ann", "key": made["id"], "address": "127.0.0.1"}
    ]
    assert _lines(client, to="2020-01-01T00:00:00Z") == []
    first = client.get("/api/v1/audit?limit=2", headers=ROOT).get_json()
    rest = _lines(client, cursor=first["next_cursor"], limit=9)
    assert [*first["lines"], *rest] == _lines(client, limit=9)
    for query in ("resource=/x", "resource=Schedule", "from=yesterday", "who="):
        assert client.get(f"/api/v1/audit?{query}", headers=ROOT).status_code == 422, query


def test_a_tenant_sees_its_own_lines_alone(client: FlaskClient, store: Store) -> None:
    client.put("/api/v1/tenants/acme", json={}, headers=ROOT)
    scopes = ["read", "write", "admin"]
    keys = {
        tenant: client.post(
            "/api/v1/keys", json={"name": tenant, "tenant": tenant, "scopes": scopes}, headers=ROOT
        ).get_json()["key"]
        for tenant in ("default", "acme")
    }
    for tenant, key in keys.items():
        client.put(f"/api/v1/destinations/{tenant}", json={"url": URL}, headers={"X-API-Key": key})
    client.put("/api/v1/destinations/ours", json={"url": URL}, headers=ROOT | {"Scheduler-Tenant": "acme"})
    acme = _lines(client, {"X-API-Key": keys["acme"]})
    assert [each["resource"] for each in acme if each["resource"].startswith("destination")] == [
        "destination/ours",
        "destination/acme",
    ]
    assert "address" not in acme[0]["who"], "it is the installation's"
    own = {each["resource"] for each in _lines(client, {"X-API-Key": keys["default"]})}
    assert "destination/default" in own
    assert "tenant/acme" not in own
    assert _lines(client, {"X-API-Key": keys["default"]}, resource="destination/acme:acme") == []
    everything = {each["resource"] for each in _lines(client, limit=99)}
    assert {"destination/default", "tenant/acme"} <= everything
    assert "destination/acme" not in everything


def test_only_the_scope_admin_opens_it(client: FlaskClient) -> None:
    made = client.post(
        "/api/v1/keys", json={"name": "k", "scopes": ["read", "write"]}, headers=ROOT
    ).get_json()
    for path in ("", "/export", "/verification"):
        answer = client.get(f"/api/v1/audit{path}", headers={"X-API-Key": made["key"]})
        assert (answer.status_code, "admin" in answer.get_json()["detail"]) == (403, True)


def test_the_export_has_every_line(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler_app.usecases.questions.audit.EXPORTED_AT_ONCE", 2)
    for number in range(5):
        client.put(f"/api/v1/destinations/d{number}", json={"url": URL}, headers=ROOT)
    answer = client.get("/api/v1/audit/export", headers=ROOT)
    assert answer.mimetype == "application/x-ndjson"
    assert [json.loads(each) for each in answer.text.splitlines()] == _lines(client, limit=99)
    assert client.get("/api/v1/audit/export?what=none", headers=ROOT).text == ""


def test_the_verification_says_how_far_and_what_is_wrong(
    client: FlaskClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def verified(after: int = 0) -> dict[str, Any]:
        found: dict[str, Any] = client.get(
            f"/api/v1/audit/verification?after={after}", headers=ROOT
        ).get_json()
        return found

    assert verified() == {"ok": True, "lines": 0, "wrong": None, "next": None, "last_hash": None}
    for number in range(5):
        client.put(f"/api/v1/destinations/d{number}", json={"url": URL}, headers=ROOT)
    _settle(store)
    monkeypatch.setattr("scheduler_app.usecases.questions.audit.MOST_VERIFIED", 3)
    newest, *_ = _lines(client)
    assert (verified()["next"], verified(3)["next"], verified(3)["lines"]) == (3, None, 2)
    assert verified(3)["last_hash"] == newest["hash"]
    store.mongo.collection("audit").update_one({"number": 4}, {"$set": {"by.name": "eve"}})
    assert (verified()["ok"], verified(3)["ok"], verified(3)["lines"]) == (True, False, 0)
    assert verified(3)["wrong"].startswith("line 4 ")


def test_other_routes_do_by_the_same_verbs(client: FlaskClient, store: Store) -> None:
    own_id = "t1"
    task = {"id": own_id, "name": "n", "command": "echo hello"}
    assert client.post("/tasks", json=task, headers=ROOT).status_code == 201
    client.put(f"/tasks/{own_id}", json={"name": "m"}, headers=ROOT)
    client.delete(f"/tasks/{own_id}", headers=ROOT)
    _settle(store)
    assert [each["what"] for each in _lines(client, resource=f"schedule/{own_id}")] == [
        "deleted",
        "edited",
        "created",
    ]
    key = client.post("/api/v1/keys", json={"name": "k", "scopes": ["read"]}, headers=ROOT).get_json()
    client.post("/api/v1/keys/revoke-leaked", json={"key": key["key"]})
    [line] = _lines(client, resource=f"key/{key['id']}", what="deleted")
    assert line["who"]["kind"] == "nobody"


def test_wrong_keys_have_one_line_for_an_address(client: FlaskClient, store: Store) -> None:
    for number in range(3):
        wrong = {"X-API-Key": f"wrong-key-number-{number}"}
        assert client.get("/api/v1/schedules", headers=wrong).status_code == 401
    [line] = _lines(client, what="refused")
    assert line["who"] == {"kind": "nobody", "address": "127.0.0.1"}
    assert line["resource"] == "access/api.key_refused"


def test_lines_of_wrong_keys_are_bounded(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler_app.api.auth.MAX_TOLD", 2)
    for number in range(5):
        client.get(
            "/api/v1/schedules",
            headers={"X-API-Key": "wrong-key-of-sixteen"},
            environ_base={"REMOTE_ADDR": f"203.0.113.{number}"},
        )
    assert len(_lines(client, what="refused")) == 2


def test_events_say_whose_act_they_are_of(client: FlaskClient) -> None:
    given = ROOT | {REASON_HEADER: "asked by Bob", REQUEST_ID_HEADER: "r-1"}
    body = {"callback_url": URL, "payload": {}, "scheduled_at": "2040-01-01T00:00:00Z"}
    made = client.post("/api/v1/messages", json=body, headers=given).get_json()["id"]
    client.post(f"/api/v1/messages/{made}/cancel", headers=ROOT)
    lines = client.get(f"/api/v1/messages/{made}", headers=ROOT).get_json()["status"]
    first, last = lines[0], lines[-1]
    assert (first["by"], first["reason"], first["request_id"]) == ("root", "asked by Bob", "r-1")
    assert (last["by"], len(last["request_id"])) == ("root", 16)

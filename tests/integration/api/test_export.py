"""Every schedule as a line, and back."""

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from cryptography.fernet import Fernet
from flask import Flask
from flask.testing import FlaskClient

from scheduler_app.api.routes import bulk
from scheduler_app.domain.masking import MASK
from scheduler_app.store import Store
from tests.builders import schedule

EXPORT = "/api/schedules/export"
GOOD = {"name": "n", "callback_url": "https://example.com/"}
MANY: list[dict[str, Any]] = [
    {"id": "bare", "rrule": "FREQ=DAILY;INTERVAL=2"},
    {"id": "zoned", "rrule": "FREQ=WEEKLY;BYDAY=MO;COUNT=9", "timezone": "Europe/Zurich", "gap": "skip"},
    {"id": "once", "run_at": "2040-01-01T00:00:00.250Z", "overlap": "last", "signing": True},
    {"id": "text", "rrule": "FREQ=HOURLY", "body": "é\nline", "headers": {"X-Team": "ops", "x-b": "2"}},
    {"id": "json", "rrule": "FREQ=HOURLY", "json": {"n": None}, "tags": ["a", "b"], "method": "POST"},
    {"id": "bytes", "rrule": "FREQ=HOURLY", "body_base64": "/wA=", "success_codes": [204, "3xx"]},
    {
        "id": "policies",
        "rrule": "FREQ=HOURLY",
        "max_retries": 7,
        "retry_backoff_seconds": 2.5,
        "retry_backoff_max_seconds": 60,
        "retry_codes": ["500-504"],
        "timeout_seconds": 30,
    },
]


SECRET = {"headers", "body", "json", "body_base64"}


def unsealed(line: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in line.items() if name != "sealed"}


def lines(client: FlaskClient, **query: str) -> list[dict[str, Any]]:
    answer = client.get(EXPORT, query_string=query)
    assert (answer.status_code, answer.mimetype) == (200, "application/x-ndjson")
    return [json.loads(line) for line in answer.text.splitlines()]


def occurrences(client: FlaskClient, schedule_id: str) -> Any:
    """The first ones from long ago on: those that do not depend on when they are asked for."""
    query = {"after": "2026-01-01T00:00:00Z", "limit": "5"}
    found = client.get(f"/api/schedules/{schedule_id}/preview", query_string=query).get_json()["occurrences"]
    assert found, schedule_id
    return found


def test_what_is_exported_is_taken_back_secrets_too_and_exported_the_same(
    make_api: Callable[..., Flask], store: Store
) -> None:
    app = make_api(secrets_key=Fernet.generate_key().decode())
    client = app.test_client()
    items = [GOOD | item for item in MANY]
    assert client.post("/api/schedules/bulk", json={"schedules": items}).get_json()["created"] == len(MANY)
    first = {line["id"]: line for line in lines(client)}
    actions = {key: app.extensions["scheduler"].manager.get(key).action for key in first}
    for item in items:
        given = {name: value for name, value in item.items() if name not in ("rrule", *SECRET)}
        assert given.items() <= first[item["id"]].items()
        for name in SECRET & item.keys():
            masks = dict.fromkeys(item[name], MASK) if name == "headers" else MASK
            assert first[item["id"]][name] == masks
    assert "DTSTART:" in first["bare"]["rrule"]
    before = {key: occurrences(client, key) for key in first}
    store.mongo.collection("schedules").delete_many({})
    taken = client.post("/api/schedules/bulk", json={"schedules": list(first.values())}).get_json()
    assert taken["created"] == len(MANY), taken
    assert {key: app.extensions["scheduler"].manager.get(key).action for key in first} == actions
    # A token is another each time; what it holds was compared.
    assert [unsealed(line) for line in lines(client)] == [unsealed(line) for line in first.values()]
    assert {key: occurrences(client, key) for key in first} == before


def test_secrets_stay_masked_and_a_mask_is_not_taken_for_one(client: FlaskClient) -> None:
    secret = GOOD | {"id": "s", "rrule": "FREQ=DAILY", "headers": {"Authorization": "Bearer real"}}
    client.post("/api/schedules", json=secret | {"signing": True})
    text = client.get(EXPORT).text
    assert "real" not in text
    assert "whsec_" not in text
    (line,) = lines(client)
    assert line["headers"] == {"Authorization": MASK}
    refused = client.post("/api/schedules", json=line | {"id": "other"})
    assert (refused.status_code, refused.get_json()["errors"][0]["pointer"]) == (422, "/headers")


def test_the_filters_are_those_of_the_list(client: FlaskClient, create: Callable[..., Any]) -> None:
    create(id="a", tags=["t"])
    create(id="b", name="other")
    create(id="c")
    client.post("/api/schedules/c/pause")
    client.delete(f"/api/schedules/{create(id='gone')['id']}")
    assert {line["id"] for line in lines(client)} == {"a", "b", "c"}
    assert [line["id"] for line in lines(client, state="paused")] == ["c"]
    assert [line["id"] for line in lines(client, name="other")] == ["b"]
    assert [line["id"] for line in lines(client, tag="t", state="active")] == ["a"]
    assert client.get(f"{EXPORT}?limit=3").status_code == 422


def test_a_document_that_cannot_be_read_is_told_of(
    client: FlaskClient, store: Store, create: Callable[..., Any]
) -> None:
    create(id="bent")
    store.mongo.collection("schedules").update_one({"_id": "bent"}, {"$unset": {"action": ""}})
    (line,) = lines(client)
    assert line["id"] == "bent"
    assert "action" in line["reason"]


def test_lines_are_sent_before_the_last_is_read(
    app: Flask, client: FlaskClient, store: Store, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "A_PAGE", 10)
    monkeypatch.setattr(bulk, "A_PIECE", 1)
    store.schedules.insert_many([schedule(now, f"s{number:03}") for number in range(95)])
    answer = client.get(EXPORT, buffered=False)
    chunks = answer.iter_encoded()
    begun = next(chunks)
    assert begun.count(b"\n") == 1
    # What is not read yet can still go.
    store.mongo.collection("schedules").delete_many({"_id": {"$lt": "s050"}})
    rest = b"".join(chunks)
    assert begun.count(b"\n") + rest.count(b"\n") == 45


def test_nothing_is_no_line_and_no_key_is_no_export(
    client: FlaskClient, make_api: Callable[..., Flask]
) -> None:
    assert lines(client) == []
    assert make_api(api_keys=("a-key-of-16-letters",)).test_client().get(EXPORT).status_code == 401

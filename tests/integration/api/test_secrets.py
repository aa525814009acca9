"""Secrets of a schedule: masked wherever it is shown, sealed where it is stored, bound to their origin."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from cryptography.fernet import Fernet
from flask import Flask
from flask.testing import FlaskClient

from scheduler_app.config import Settings
from scheduler_app.domain.http_action import HttpAction, http_action
from scheduler_app.domain.masking import MASK
from scheduler_app.domain.schedule import Schedule
from scheduler_app.store import Store
from scheduler_app.store.schedules.documents import CorruptSchedule

URL = "https://example.com/hook?tenant=acme&sig=query-secret"
HEADERS = {
    "Authorization": "Bearer header-secret",
    "Ocp-Apim-Subscription-Key": "header-secret-2",
    "X-JWT": "header-secret-3",
    "X-Anything": "header-secret-4",
    "Accept": "text/plain",
}
SECRET: dict[str, Any] = {
    "id": "s",
    "name": "n",
    "callback_url": URL,
    "headers": HEADERS,
    "json": {"password": "body-secret"},
    "rrule": "DTSTART:20400101T000000Z\nRRULE:FREQ=DAILY",
    "signing": True,
}
ELSEWHERE = "https://evil.example/hook"
KEY, OTHER_KEY = Fernet.generate_key().decode(), Fernet.generate_key().decode()


def action(store: Store, schedule_id: str = "s") -> HttpAction:
    """The request as a worker would make it."""
    found = store.schedules.for_delivery([schedule_id])[schedule_id]
    assert isinstance(found, Schedule), found
    return http_action(found.action)


@pytest.fixture
def sealing(settings: Settings, store: Store) -> Iterator[Store]:
    """A worker's store, with the key of the API."""
    with closing(Store(replace(settings, secrets_key=KEY))) as made:
        yield made


@pytest.fixture
def keyed(make_api: Callable[..., Flask]) -> FlaskClient:
    return make_api(secrets_key=KEY).test_client()


def test_whatever_shows_a_schedule_masks_all_but_harmless_values(client: FlaskClient) -> None:
    once = {"Idempotency-Key": "k"}
    answers = [
        client.post("/api/schedules", json=SECRET, headers=once),
        client.post("/api/schedules", json=SECRET, headers=once),
        client.get("/api/schedules/s"),
        client.get("/api/schedules"),
        client.put("/api/schedules/s", json={"name": "m"}),
        client.post("/api/schedules/s/pause"),
        client.post("/api/schedules/s/resume"),
        client.get("/api/schedules/export"),
    ]
    for answer in answers:
        assert answer.status_code < 300
        assert "-secret" not in answer.text
    shown = answers[2].get_json()
    assert shown["headers"] == dict.fromkeys(HEADERS, MASK) | {"Accept": "text/plain"}
    assert shown["callback_url"] == f"https://example.com/hook?tenant={MASK}&sig={MASK}"
    assert shown["json"] == MASK


@pytest.mark.parametrize("key", ["", KEY], ids=["without a key", "with a key"])
def test_what_is_read_edited_and_written_back_keeps_its_secrets(
    make_api: Callable[..., Flask], settings: Settings, key: str
) -> None:
    client, store = make_api(secrets_key=key).test_client(), Store(replace(settings, secrets_key=key))
    client.post("/api/schedules", json=SECRET)
    before = action(store)
    shown = client.get("/api/schedules/s").get_json()
    fields = ("name", "callback_url", "method", "headers", "json", "rrule", "tags", "max_retries")
    edited = {name: shown[name] for name in fields} | {
        "name": "renamed",
        "headers": shown["headers"] | {"X-JWT": "header-secret-new"},
        "callback_url": shown["callback_url"].replace("/hook", "/other"),
    }
    answer = client.put("/api/schedules/s", json=edited)
    assert answer.status_code == 200, answer.text
    after = action(store)
    assert after.url == URL.replace("/hook", "/other")
    assert dict(after.headers) == HEADERS | {"X-JWT": "header-secret-new"}
    assert after.body == before.body
    # What is given anew replaces, and what is taken away goes.
    client.put("/api/schedules/s", json={"headers": {}, "body": None, "callback_url": "https://example.com/"})
    assert action(store) == HttpAction("https://example.com/", "POST")
    client.delete("/api/schedules/s/signing-secret")
    assert "sealed" not in (store.mongo.collection("schedules").find_one({"_id": "s"}) or {})
    store.close()


def test_no_way_to_change_the_url_sends_a_secret_to_another_origin(
    keyed: FlaskClient, sealing: Store
) -> None:
    keyed.post("/api/schedules", json=SECRET)
    before = action(sealing)
    shown = keyed.get("/api/schedules/s").get_json()
    (line,) = (json.loads(each) for each in keyed.get("/api/schedules/export").text.splitlines())
    clone = {name: value for name, value in line.items() if name not in ("id", "signing")}
    asked: list[tuple[str, str, dict[str, Any]]] = [
        ("PUT", "/api/schedules/s", {"callback_url": ELSEWHERE}),
        ("PUT", "/api/schedules/s", {"callback_url": ELSEWHERE, "headers": shown["headers"], "body": None}),
        ("PUT", "/api/schedules/s", {"callback_url": ELSEWHERE, "headers": {}, "json": MASK}),
        ("PUT", "/api/schedules/s", {"callback_url": f"{ELSEWHERE}?sig={MASK}", "headers": {}, "body": None}),
        ("PUT", "/api/schedules/s", clone | {"callback_url": ELSEWHERE}),
        ("POST", "/api/schedules", clone | {"callback_url": ELSEWHERE}),
        (
            "POST",
            "/api/schedules",
            {**clone, "callback_url": ELSEWHERE, "json": 1, "headers": {"A": MASK}},
        ),
    ]
    for method, path, body in asked:
        answer = keyed.open(path, method=method, json=body)
        assert answer.status_code == 422, (body, answer.text)
        assert answer.get_json()["errors"][0]["pointer"] == "/callback_url", answer.text
    (result,) = keyed.post(
        "/api/schedules/bulk", json={"schedules": [clone | {"callback_url": ELSEWHERE}]}
    ).get_json()["results"]
    assert result["status"] == 422
    first = keyed.put("/api/schedules/s", json={"callback_url": ELSEWHERE}).get_json()["detail"]
    for named in ("Authorization", "X-JWT", "the body", "https://example.com:443"):
        assert named in first
    assert "Accept" not in first
    assert action(sealing) == before
    given = {"callback_url": ELSEWHERE, "headers": {"X-JWT": "another"}, "body": "new"}
    assert keyed.put("/api/schedules/s", json=given).status_code == 200
    assert dict(action(sealing).headers) == {"X-JWT": "another"}


def test_an_export_restores_secrets_for_the_same_origin_and_with_the_same_key_alone(
    keyed: FlaskClient, make_api: Callable[..., Flask], sealing: Store
) -> None:
    keyed.post("/api/schedules", json=SECRET)
    before = action(sealing)
    (line,) = (json.loads(each) for each in keyed.get("/api/schedules/export").text.splitlines())
    rotated = make_api(secrets_key=f"{OTHER_KEY},{KEY}").test_client()
    for client, name in ((keyed, "same"), (rotated, "rotated")):
        assert client.post("/api/schedules", json=line | {"id": name}).status_code == 201
    assert action(sealing, "same") == before
    stranger = make_api(secrets_key=OTHER_KEY).test_client()
    token = (sealing.mongo.collection("schedules").find_one({"_id": "s"}) or {})["sealed"].decode()
    for client, sealed in (
        (stranger, line["sealed"]),
        (keyed, "x"),
        (keyed, "x" * 524_289),
        (keyed, line["sealed"][:-9]),
        (keyed, token),
    ):
        refused = client.post("/api/schedules", json=line | {"id": "other", "sealed": sealed})
        assert refused.status_code == 422, refused.text
        assert refused.get_json()["errors"][0]["pointer"] == "/sealed"


def test_a_sealed_document_holds_no_secret_and_is_left_alone_without_its_key(
    keyed: FlaskClient, client: FlaskClient, store: Store, sealing: Store
) -> None:
    made = keyed.post("/api/schedules", json=SECRET).get_json()
    row = sealing.mongo.collection("schedules").find_one({"_id": "s"}) or {}
    assert "secret" not in str({key: value for key, value in row.items() if key != "signing"})
    assert made["signing_secret"].removeprefix("whsec_") not in str(row)
    found = sealing.schedules.for_delivery(["s"])["s"]
    assert isinstance(found, Schedule)
    assert found.signing is not None
    assert found.signing.secret == made["signing_secret"]
    elsewhere = store.schedules.for_delivery(["s"])["s"]
    assert isinstance(elsewhere, CorruptSchedule)
    assert elsewhere.readable_elsewhere
    refused = client.put("/api/schedules/s", json={"name": "m"})
    assert (refused.status_code, "SECRETS_KEY" in refused.get_json()["detail"]) == (409, True)
    assert client.delete("/api/schedules/s").status_code == 200, "what cannot be read can still go"
    # Without secrets nothing is sealed, and an older release reads the document.
    plain = SECRET | {"id": "p", "callback_url": "https://example.com/", "headers": {"Accept": "text/plain"}}
    keyed.post("/api/schedules", json={k: v for k, v in plain.items() if k not in ("json", "signing")})
    row = sealing.mongo.collection("schedules").find_one({"_id": "p"}) or {}
    assert ("sealed" in row, row["v"]) == (False, 1)


@pytest.mark.parametrize(
    "change",
    [
        {"$unset": {"sealed": ""}},
        {"$set": {"sealed": "text"}},
        {"$set": {"action.headers": []}},
        {"$set": {"action.headers": [["A", None]] * 9}},
        {"$set": {"action.body": 5}},
        {"$set": {"signing.retiring": [{"until": 5}]}},
        {"$set": {"action": "x"}},
    ],
    ids=str,
)
def test_a_sealed_document_that_somebody_bent_is_never_sent_without_its_secrets(
    keyed: FlaskClient, sealing: Store, change: dict[str, Any]
) -> None:
    keyed.post("/api/schedules", json=SECRET)
    sealing.mongo.collection("schedules").update_one({"_id": "s"}, change)
    found = sealing.schedules.for_delivery(["s"])["s"]
    assert isinstance(found, CorruptSchedule)
    assert not found.readable_elsewhere


def test_a_deleted_schedule_keeps_none_of_its_secrets_and_its_history_stays(
    make_api: Callable[..., Flask], store: Store
) -> None:
    rows = store.mongo.collection("schedules")
    for key in (KEY, ""):
        client = make_api(secrets_key=key).test_client()
        client.post("/api/schedules", json=SECRET)
        event = client.post("/api/schedules/s/trigger").get_json()["event_id"]
        assert client.delete("/api/schedules/s").status_code == 200
        row = rows.find_one({"_id": "s"}) or {}
        assert "secret" not in str(row)
        assert "sealed" not in row
        assert (row["action"]["url"], row["state"], row["version"]) == (
            "https://example.com/hook",
            "deleted",
            2,
        )
        # A worker that has an event of it reads it, and sees that it was withdrawn.
        found = store.schedules.for_delivery(["s"])["s"]
        assert isinstance(found, Schedule)
        assert found.is_cancelled_by_edit(1, found.created_at)
        history = client.get("/api/schedules/s/events/history").get_json()["events"]
        assert event in [each["_id"] for each in history]
        rows.delete_one({"_id": "s"})


@pytest.mark.parametrize(
    "bent", [{"action": "x"}, {"action": {"url": 5}}, {"version": "x", "signing": 7}], ids=str
)
def test_a_bent_document_is_wiped_too(keyed: FlaskClient, store: Store, bent: dict[str, Any]) -> None:
    keyed.post("/api/schedules", json=SECRET)
    rows = store.mongo.collection("schedules")
    rows.update_one({"_id": "s"}, {"$set": bent})
    assert keyed.delete("/api/schedules/s").status_code == 200
    row = rows.find_one({"_id": "s"}) or {}
    assert (row["state"], row["action"]["headers"]) == ("deleted", [])
    assert not {"sealed", "signing"} & row.keys()

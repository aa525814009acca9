"""Signing secrets: shown once, rotated with an overlap, found nowhere else."""

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from cryptography.fernet import Fernet
from flask import Flask
from flask.testing import FlaskClient
from standardwebhooks import Webhook, WebhookVerificationError

from scheduler_app.actions.http.request import request_of
from scheduler_app.api.services import Services
from scheduler_app.domain.deliverable import MAX_RETIRING
from scheduler_app.domain.masking import MASK
from scheduler_app.domain.schedule import Schedule
from scheduler_app.store import Store
from tests.builders import event

BODY = {
    "name": "n",
    "callback_url": "http://127.0.0.1:9/",
    "rrule": "DTSTART:20400101T000000Z\nRRULE:FREQ=DAILY",
    "method": "POST",
    "json": {"order": 4711},
}


def verified(app: Flask, schedule_id: str, secret: str, later: timedelta = timedelta(0)) -> bool:
    """Whether a callback that starts now is signed with `secret`, in the eyes of the reference verifier."""
    services: Services = app.extensions["scheduler"]
    now = services.now()
    schedule = services.store.schedules.for_delivery([schedule_id])[schedule_id]
    assert isinstance(schedule, Schedule)
    if later and schedule.signing:
        # The verifier refuses old timestamps: instead of the clock, the overlap is moved.
        old = tuple(replace(each, until=each.until - later) for each in schedule.signing.retiring)
        schedule = replace(schedule, signing=replace(schedule.signing, retiring=old))
    request = request_of(event(now, schedule_id), schedule, now)
    try:
        Webhook(secret).verify(request.body or b"", {name.lower(): value for name, value in request.headers})
    except WebhookVerificationError:
        return False
    return True


def test_a_signed_schedule_s_callbacks_verify_and_its_secret_is_shown_once(
    app: Flask, client: FlaskClient
) -> None:
    made = client.post("/api/schedules", json=BODY | {"signing": True}).get_json()
    assert verified(app, made["id"], made["signing_secret"])
    url = f"/api/schedules/{made['id']}"
    answers = [
        client.get(url),
        client.put(url, json={"name": "m"}),
        client.post(f"{url}/pause"),
        client.post(f"{url}/resume"),
        client.get("/api/schedules"),
    ]
    assert all(made["signing_secret"] not in answer.text for answer in answers)
    shown = answers[0].get_json()
    assert (shown["signing"], "signing_since" in shown) == (True, True)
    assert verified(app, made["id"], made["signing_secret"])


def test_during_a_rotation_both_secrets_verify_and_afterwards_the_new_one(
    app: Flask, client: FlaskClient
) -> None:
    made = client.post("/api/schedules", json=BODY).get_json()["id"]
    url = f"/api/schedules/{made}/signing-secret"
    first = client.post(url).get_json()
    second = client.post(url, json={"overlap_seconds": 3600}).get_json()
    third = client.post(url, json={"overlap_seconds": 60}).get_json()
    secrets = [answer["signing_secret"] for answer in (first, second, third)]
    assert len(set(secrets)) == 3
    assert "signing_overlap_until" not in first
    assert all(verified(app, made, secret) for secret in secrets)
    over = [verified(app, made, secret, timedelta(seconds=61)) for secret in secrets]
    assert over == [True, False, True]
    assert not verified(app, made, "whsec_" + "A" * 44)


def test_a_rotation_without_overlap_ends_the_old_secret_at_once(app: Flask, client: FlaskClient) -> None:
    made = client.post("/api/schedules", json=BODY | {"signing": True}).get_json()
    url = f"/api/schedules/{made['id']}/signing-secret"
    new = client.post(url, json={"overlap_seconds": 0}).get_json()["signing_secret"]
    assert not verified(app, made["id"], made["signing_secret"])
    assert verified(app, made["id"], new)


def test_signing_that_was_removed_signs_no_more(app: Flask, client: FlaskClient, store: Store) -> None:
    made = client.post("/api/schedules", json=BODY | {"signing": True}).get_json()
    assert client.delete(f"/api/schedules/{made['id']}/signing-secret").status_code == 200
    assert not verified(app, made["id"], made["signing_secret"])
    assert client.get(f"/api/schedules/{made['id']}").get_json()["signing"] is False
    assert "signing" not in (store.mongo.collection("schedules").find_one() or {})


def test_a_rotation_that_would_drop_a_secret_within_its_overlap_is_refused_with_the_remedy(
    app: Flask, client: FlaskClient
) -> None:
    made = client.post("/api/schedules", json=BODY | {"signing": True}).get_json()
    url = f"/api/schedules/{made['id']}/signing-secret"
    secrets = [made["signing_secret"]]
    secrets += [client.post(url).get_json()["signing_secret"] for _ in range(MAX_RETIRING)]
    refused = client.post(url)
    assert refused.status_code == 409
    assert "overlap_seconds: 0" in refused.get_json()["detail"]
    assert all(verified(app, made["id"], secret) for secret in secrets)
    # The remedy for a secret that has leaked must not wait for the overlap of others.
    new = client.post(url, json={"overlap_seconds": 0}).get_json()["signing_secret"]
    assert [verified(app, made["id"], secret) for secret in (secrets[0], secrets[-1], new)] == [
        True,
        False,
        True,
    ]


@pytest.mark.parametrize("overlap", [-1, 30 * 86_400 + 1, "a day", 1.5, None])
def test_an_overlap_that_is_none_is_refused(client: FlaskClient, overlap: Any) -> None:
    made = client.post("/api/schedules", json=BODY).get_json()["id"]
    answer = client.post(f"/api/schedules/{made}/signing-secret", json={"overlap_seconds": overlap})
    assert answer.status_code == 422
    assert answer.get_json()["errors"][0]["pointer"] == "/overlap_seconds"


def test_with_a_key_no_secret_is_in_the_database_the_logs_or_a_second_answer(
    make_api: Callable[..., Flask],
    store: Store,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    key = Fernet.generate_key().decode()
    client = make_api(secrets_key=key, api_keys=("a-key-of-16-letters",)).test_client()
    auth = {"X-API-Key": "a-key-of-16-letters"}
    headers = {"Authorization": "Bearer hunter2-hunter2", "X-Api-Key": "swordfish-swordfish"}
    body = BODY | {"signing": True, "headers": headers}
    made = client.post("/api/schedules", json=body, headers=auth).get_json()
    one = f"/api/schedules/{made['id']}"
    found = [made["signing_secret"]]
    for path, asked in (
        ("/api/schedules", body),
        ("/api/schedules/bulk", {"schedules": [body, body]}),
        (f"{one}/signing-secret", {}),
    ):
        once = {**auth, "Idempotency-Key": path}
        first = client.post(path, json=asked, headers=once).get_json()
        secrets = [each["signing_secret"] for each in first.get("results", [first])]
        replay = client.post(path, json=asked, headers=once)
        assert replay.headers["Idempotent-Replayed"] == "true"
        assert not any(secret in replay.text for secret in secrets)
        assert MASK in replay.text
        found += secrets
    assert len(set(found)) == 5
    assert client.put(one, json={"headers": {"Cookie": "\r\nhunter2"}}, headers=auth).status_code == 422
    db = store.mongo.db
    dump = "".join(str(list(db[name].find())) for name in db.list_collection_names())
    printed = capfd.readouterr()
    logs = caplog.text + printed.out + printed.err
    shown = client.get("/api/schedules", headers=auth).text
    secret_parts = [secret.removeprefix("whsec_") for secret in found]
    for secret in (*secret_parts, "hunter2", "swordfish", "a-key-of-16-letters", key):
        assert secret not in dump
        assert secret not in logs
        assert secret not in shown

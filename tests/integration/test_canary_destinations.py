"""No secret of a destination, or of what is told of an end, is in anything stored, answered or logged."""

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from typing import Any
from urllib.parse import quote

import pytest
from flask.testing import FlaskClient

from scheduler_app.api.wire.destination import DestinationInput
from scheduler_app.clock import clock
from scheduler_app.config import Settings
from scheduler_app.domain.event import Event
from scheduler_app.store import Store
from scheduler_app.usecases.duties.notifications import Notifications
from scheduler_app.worker import Pipeline
from tests import canaries
from tests.integration.actions.receiver import Receiver
from tests.integration.test_canary_data import AUTH, client, dump, keyed, receiver, worker
from tests.processes import PATIENCE_SECONDS

__all__ = ["client", "keyed", "receiver", "worker"]  # fixtures

TOKEN, PASSWORD = "canary-bearer-token-61fa", "canary-password-of-destination-c0d4"
QUERY, HEADER = "canary-query-of-destination-77ab", "canary-header-of-destination-9e02"
OWN = {"token": TOKEN, "password": PASSWORD, "query of destination": QUERY, "header of destination": HEADER}
#: Where a destination may hold a secret; the test gives a canary in each.
SECRET = {"url", "headers", "auth", "signing"}
OPEN = {
    *("method", "allowed_methods", "max_retries", "retry_backoff_seconds", "retry_backoff_max_seconds"),
    *("retry_codes", "success_codes", "timeout_seconds", "rate_per_second", "burst", "concurrency"),
    *("breaker", "paused", "queue"),
}


def test_every_field_is_one_that_may_hold_a_secret_or_cannot() -> None:
    fields = {field.data_key or name for name, field in DestinationInput().fields.items()}
    assert fields == SECRET | OPEN
    assert not SECRET & OPEN


def test_no_canary_of_a_destination_or_of_a_notification_is_stored_answered_or_logged(
    client: FlaskClient,
    worker: Pipeline,
    keyed: Settings,
    store: Store,
    receiver: Receiver,
    capsys: pytest.CaptureFixture[str],
) -> None:
    signing: dict[str, str] = {}
    answers: list[str] = []

    def ask(method: str, path: str, body: Any = None, status: int = 200) -> dict[str, Any]:
        answer = client.open(path, method=method, json=body, headers=AUTH)
        assert answer.status_code == status, answer.text
        found: dict[str, Any] = json.loads(answer.text)
        text = answer.text
        if secret := found.get("signing_secret"):
            signing[f"signing secret {len(signing)}"] = secret.removeprefix("whsec_")
            text = text.replace(secret, "")
        answers.append(text)
        return found

    url = f"http://localhost:{receiver.port}"
    basic = {"type": "basic", "username": "user", "password": PASSWORD}
    for name, auth in (("ok", {"type": "bearer", "token": TOKEN}), ("fails", basic)):
        secret = {
            "url": f"{url}/{name}?sig={quote(QUERY)}",
            "headers": {"X-Own": HEADER},
            "auth": auth,
            "signing": True,
        }
        ask("PUT", f"/api/destinations/{name}", secret | {"max_retries": 0}, 201)
        ask("PATCH", f"/api/destinations/{name}", {"method": "POST"})
        ask("PUT", f"/api/destinations/{name}", secret | {"auth": {**auth, "type": "none"}}, 422)
        ask("PUT", f"/api/destinations/{name}", secret | {"url": f"ftp://x/?{QUERY}"}, 422)
        ask("PATCH", f"/api/destinations/{name}", {"headers": {"X-Own": f"{HEADER}\r\n"}}, 422)
        ask("GET", f"/api/destinations/{name}")
        ask("POST", f"/api/destinations/{name}/test")
    ask("GET", "/api/destinations")
    fields = canaries.request_fields(f"{url}/fails") | {"max_retries": 0}
    rule = {"on_demand": True, "name": "x", "on_failure": "ok", "on_success": "fails"}
    ask("POST", "/api/schedules", {"id": "plain", **rule, **fields}, 201)
    ask("POST", "/api/schedules", {"id": "named", **rule, "destination": "fails", "path": f"?p={QUERY}"}, 201)
    events = [
        ask("POST", f"/api/schedules/{each}/trigger", None, 202)["event_id"] for each in ("plain", "named")
    ]
    message = canaries.message_fields(f"{url}/ok") | {"id": "m", "on_success": "ok", "on_failure": "fails"}
    events.append(ask("POST", "/api/messages", message, 201)["event_id"])
    assert worker.delivery.deliver(events) == 3
    assert worker.wait_until_empty(PATIENCE_SECONDS)
    told: list[str] = []

    def note(made: Sequence[Event], now: datetime) -> None:
        told.extend(each.id for each in made)

    with closing(Store(replace(keyed))) as own:
        Notifications(own, note, max_retries=0).notify_page(clock.now())
    assert len(told) == 3
    assert worker.delivery.deliver(told) == 3
    assert worker.wait_until_empty(PATIENCE_SECONDS)
    bodies = [seen.body.decode() for seen in receiver.seen if b'"answer"' in seen.body]
    assert len(bodies) == 3
    assert canaries.found_in("".join(bodies), **OWN, **signing) == [], "what one is told of another's request"
    for path in ("/api/messages", "/api/events", *(f"/api/events/{each}" for each in [*events, *told])):
        ask("GET", path)
    shown, stored = "".join(answers), dump(store)
    assert canaries.found_in(shown, **OWN, **signing) == []
    assert canaries.found_in(stored, **OWN, **signing) == []
    logged = "".join(capsys.readouterr())
    assert "destination.created" in logged
    assert canaries.found_in(logged, **OWN, **signing) == []
    for each in ("plain", "named"):
        ask("DELETE", f"/api/schedules/{each}")
    for each in ("ok", "fails"):
        ask("DELETE", f"/api/destinations/{each}")
    assert store.mongo.collection("destinations").count_documents({}) == 0

"""No secret is in anything that is stored, exported or answered, whatever was done with its schedule."""

import json
import socket
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from flask.testing import FlaskClient

from scheduler_app.clock import clock
from scheduler_app.config import Settings
from scheduler_app.store import Store
from scheduler_app.worker import Pipeline
from tests import canaries
from tests.executors import executors
from tests.integration.actions.receiver import Receiver, Seen, says
from tests.integration.api.conftest import start, stop
from tests.processes import PATIENCE_SECONDS

NEVER = "DTSTART:20400101T000000Z\nRRULE:FREQ=DAILY"
TOKEN_HEADER = "x-scheduler-completion-token"
AUTH = {"X-API-Key": canaries.API_KEY}


def echoes(seen: Seen, connection: socket.socket) -> bool:
    """Answers with all that it was sent, and redirects to it."""
    echo = {"path": seen.path, "headers": seen.headers, "body": seen.body.decode("utf-8", "replace")}
    status, *headers = {
        "/ok": ("200 OK",),
        "/fails": ("500 Oh No",),
        "/moves": ("302 Found", f"Location: http://localhost{seen.path}"),
    }[seen.path.partition("?")[0]]
    return says(status, *headers, body=json.dumps(echo).encode())(seen, connection)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with closing(Receiver(echoes)) as made:
        yield made


@pytest.fixture
def keyed(settings: Settings) -> Settings:
    return replace(settings, secrets_key=canaries.SECRETS_KEY, api_keys=(canaries.API_KEY,))


@pytest.fixture
def client(keyed: Settings, store: Store) -> Iterator[FlaskClient]:
    app = start(keyed)
    app.extensions["scheduler"].heartbeat("api").beat_once()
    yield app.test_client()
    stop(app)


@pytest.fixture
def worker(keyed: Settings) -> Iterator[Pipeline]:
    with closing(Store(keyed)) as store:
        pipeline = Pipeline(
            store,
            executors(),
            now=clock.now,
            worker="w1",
            horizon_seconds=5,
            max_events=1_000,
        )
        pipeline.start()
        yield pipeline
        pipeline.stop_starting()
        assert pipeline.wait_until_empty(PATIENCE_SECONDS)
        pipeline.stop()


def dump(store: Store) -> str:
    """Every document of every collection."""
    db = store.mongo.db
    return "".join(repr(list(db[name].find())) for name in db.list_collection_names())


def test_no_canary_is_in_the_database_in_exports_or_in_answers(
    client: FlaskClient, worker: Pipeline, store: Store, receiver: Receiver
) -> None:
    signing: dict[str, str] = {}
    answers: list[str] = []

    def ask(method: str, path: str, body: Any = None, status: int = 200) -> dict[str, Any]:
        """Twice under one key where that means something: what is kept is answered again."""
        once = AUTH | ({"Idempotency-Key": f"{len(answers)}"} if method == "POST" else {})
        answer = client.open(path, method=method, json=body, headers=once)
        assert answer.status_code == status, answer.text
        found: dict[str, Any] = json.loads(answer.text) if answer.is_json else {}
        text = answer.text
        imported = [part for item in found.get("items", []) for part in item["schedules"]]
        for each in found.get("results", imported or [found]):
            if token := each.get("token"):
                signing["calendar feed"] = token.partition(".")[2]
                text = text.replace(token, "")
            if secret := each.get("signing_secret"):
                signing[f"signing secret {len(signing)}"] = secret.removeprefix("whsec_")
                text = text.replace(secret, "")
        answers.append(text)
        if method == "POST" and status < 500 and status != 409:
            answers.append(client.open(path, method=method, json=body, headers=once).text)
        return found

    url = f"http://localhost:{receiver.port}"
    for name in ("ok", "fails", "moves"):
        fields = canaries.request_fields(f"{url}/{name}")
        ask(
            "POST",
            "/api/schedules",
            {"id": name, "name": name, "rrule": NEVER, "signing": True, **fields},
            201,
        )
    awaited = {"id": "job", "name": "job", "rrule": NEVER, "completion": "callback"}
    ask("POST", "/api/schedules", awaited | canaries.request_fields(f"{url}/ok"), 201)
    text = {**canaries.request_fields(f"{url}/ok"), "name": "t", "rrule": NEVER, "signing": True}
    text["body"] = f"user=anne&password={canaries.TEXT_BODY}"
    del text["json"]
    ask("POST", "/api/schedules/bulk", {"schedules": [text | {"id": "text"}, text | {"id": "text"}]})
    shared = {name: value for name, value in text.items() if name not in ("name", "rrule")}
    inner = "BEGIN:VEVENT\nUID:1\nDTSTART:20400101T000000Z\nRRULE:FREQ=DAILY\nEND:VEVENT\n"
    imported = ask(
        "POST",
        "/api/schedules/import",
        {"ics": f"BEGIN:VCALENDAR\n{inner}END:VCALENDAR\n", "schedule": shared},
    )
    taken = imported["items"][0]["schedules"][0]["id"]
    feed = ask("POST", "/api/calendar-feeds", {"name": "x"}, 201)
    # Refusals, whose answers are kept as well.
    ask("POST", "/api/schedules", text | {"rrule": "FREQ=NEVER"}, 422)
    ask("POST", "/api/schedules", text | {"headers": {"X-Key": f"{canaries.CUSTOM_HEADER}\r\n"}}, 422)
    ask("POST", "/api/schedules", text | {"callback_url": f"ftp://h/?{canaries.QUERY}"}, 422)
    ask("POST", "/api/schedules", text | {"sealed": canaries.BODY}, 422)
    ask("PUT", "/api/schedules/ok", {"callback_url": "http://elsewhere.example/"}, 422)
    ask("PUT", "/api/schedules/ok", {"name": "renamed"})
    ask("POST", "/api/schedules/ok/signing-secret", None, 201)
    ids = ("ok", "fails", "moves", "text", taken, "job")
    events = [ask("POST", f"/api/schedules/{each}/trigger", None, 202)["event_id"] for each in ids]
    for name in ("ok", "fails", "moves"):
        sent = {"id": name, "event_name": "orders", "signing": True, "max_retries": 0}
        events.append(
            ask("POST", "/api/messages", canaries.message_fields(f"{url}/{name}") | sent, 201)["event_id"]
        )
    later = canaries.message_fields(f"{url}/ok") | {"scheduled_at": "2040-01-01T00:00:00Z"}
    ask("POST", "/api/messages/bulk", {"messages": [later | {"id": "waits"}, later | {"id": "cancelled"}]})
    ask("POST", "/api/messages", later | {"id": "waits", "metadata": {"trace": "another"}}, 409)
    ask("POST", "/api/messages", later | {"metadata": {"a b": canaries.METADATA}}, 422)
    ask("POST", "/api/messages/cancelled/cancel")
    ask("POST", "/api/messages/waits/reschedule", {"delay_seconds": 86_400})
    for path in ("/api/messages", "/api/messages/waits"):
        ask("GET", path)
    assert worker.delivery.deliver(events) == len(events)
    assert worker.wait_until_empty(PATIENCE_SECONDS)
    (token,) = {value for seen in receiver.seen if (value := seen.headers.get(TOKEN_HEADER))}
    signing["completion token"] = token
    for word in ("fail", "complete"):
        told = {TOKEN_HEADER: token, "Idempotency-Key": word}
        answers.append(client.post(f"/api/events/{events[-4]}/{word}", headers=told).text)
    assert {seen.headers["authorization"] for seen in receiver.seen} == {f"Bearer {canaries.HEADER}"}
    for path in (
        *(
            f"/api/schedules/{each}{rest}"
            for each in ids
            for rest in ("", "/events/history", "/events/pending")
        ),
        *("/api/schedules", "/api/schedules/export", "/api/events", "/api/calendar-feeds"),
        *("/api/schedules/fails.ics", "/api/calendar.ics", feed["path"]),
        *(f"/api/events/{each}" for each in events),
    ):
        ask("GET", path)
    shown = "".join(answers)
    assert canaries.found_in(shown, **signing) == []
    assert "********" in shown
    assert "user=anne" not in shown
    stored = dump(store)
    assert canaries.found_in(stored, **signing) == []
    assert "snippet" in stored
    # Three messages that ended, which may be sent again and are in the archive's view, too; one that waits.
    assert stored.count("'sealed'") == len(ids) + 3 * 2 + 1
    for each in ids:
        ask("DELETE", f"/api/schedules/{each}")
    ask("DELETE", "/api/messages/waits")
    after = dump(store)
    assert canaries.found_in(after, **signing) == []
    assert after.count("'sealed'") == 3 * 2
    assert all(event in after for event in events), "history stays"


@pytest.mark.parametrize("place", sorted(canaries.CANARIES))
def test_a_canary_that_were_stored_would_be_found(place: str, store: Store) -> None:
    canary = canaries.CANARIES[place]
    for form in (canary, canary.encode(), [{"x": f"prefix {canary} suffix"}]):
        store.mongo.collection("anything").replace_one({"_id": 1}, {"value": form}, upsert=True)
        assert place in canaries.found_in(dump(store))

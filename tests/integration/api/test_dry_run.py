"""`?dry_run=true` answers what a write would do, and changes nothing."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from pymongo import ReplaceOne, UpdateOne
from pymongo.collection import Collection
from redis import Redis

from scheduler_app.api.wire import examples
from scheduler_app.broker.redis.backend import key_prefix
from scheduler_app.domain.api_key import ALL_SCOPES, StoredKey, new_key
from scheduler_app.domain.calendar_feed import CalendarFeed
from scheduler_app.domain.cause import Tally, failing_key
from scheduler_app.domain.command_line import new_verifier
from scheduler_app.domain.ids import WholeId
from scheduler_app.domain.masking import MASK
from scheduler_app.domain.person import Person, PersonSession
from scheduler_app.domain.redrive import Redrive
from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.store.dry_run import READS, DryRunDocuments, NotInDryRun
from tests.builders import event
from tests.integration.api.openapi import specification_of

SCHEDULES = "/api/v1/schedules"
BODY = {"name": "n", "callback_url": "http://127.0.0.1:9/", "rrule": "FREQ=MINUTELY"}
IMPORT = {"ics": examples.IMPORT["ics"], "schedule": {"callback_url": "http://127.0.0.1:9/"}}
LATER = BODY | {"rrule": "DTSTART:20400101T000000Z\nRRULE:FREQ=YEARLY"}
OK = {200, 201, 202}


def everything(store: Store, redis_url: str) -> Any:
    """All that is kept, but for what processes say of themselves."""
    names = sorted(set(store.mongo.db.list_collection_names()) - {"nodes"})
    kept = {name: list(store.mongo.collection(name).find({}, sort=[("_id", 1)])) for name in names}
    # That somebody has shown a wrong key is true of a dry run, too.
    kept["audit"] = [line for line in kept["audit"] if line["what"] != "refused"]
    return kept, published(store, redis_url)


def published(store: Store, redis_url: str) -> dict[bytes, int]:
    """How many messages wait in each lane of the broker."""
    with Redis.from_url(redis_url) as broker:
        lanes = broker.keys(f"{key_prefix(store.mongo.db.name)}callbacks*")
        return {lane: broker.llen(lane) for lane in lanes}


#: What `POST /api/v1/destinations/{name}/test` shows of a call that was made.
ANSWER_OF_A_RECEIVER = {"outcome", "duration_ms", "error", "snippet", "status_code"}
MESSAGE = {
    "id": "m1",
    "payload": {"order": 1},
    "scheduled_at": "2040-01-01T00:00:00Z",
    "callback_url": "http://127.0.0.1:9/",
}


@pytest.fixture
def dead(client: FlaskClient, store: Store) -> str:
    """A dead letter of the schedule `there`, which waits, signed, among `mine`, which is paused."""
    for schedule_id, more in (("there", {"signing": True}), ("mine", {"state": "paused"})):
        assert client.put(f"{SCHEDULES}/{schedule_id}", json=LATER | more).status_code == 201
    now = datetime.now(UTC)
    made = [event(now.replace(microsecond=0), "there"), event(now.replace(year=2040, microsecond=0), "there")]
    store.events.insert(made, now, "made")
    change = {"$set": {"state": State.ERROR, "archived_at": now}, "$unset": {"due_at": ""}}
    store.mongo.collection("events").update_one({"_id": made[0].id}, change)
    return made[0].id


def test_every_write_has_a_dry_run_which_changes_nothing_and_answers_as_the_write_does(
    client: FlaskClient, store: Store, redis_url: str, dead: str
) -> None:
    waiting = store.mongo.collection("events").find_one({"state": State.READY_QUEUE})["_id"]  # type: ignore[index]
    events = "/api/v1/events"
    edited = client.put(f"{SCHEDULES}/there", json={"tags": ["first"]})
    assert edited.status_code == 200
    edit = client.get(f"{SCHEDULES}/there/edits").get_json()["edits"][0]["id"]
    now = datetime.now(UTC).replace(microsecond=0)
    [cause] = store.causes.touch([Tally(failing_key(dead, "http://127.0.0.1:9", 500, None), now, now)])
    redrive = Redrive(id=WholeId("r1"), cause=None, before=now, next_due_at=now, started_at=now)
    assert store.redrives.start(redrive)
    # Each leaves something to do for the next, when they are done in earnest.
    writes: list[tuple[str, str, Any]] = [
        ("POST", SCHEDULES, BODY | {"id": "new", "signing": True}),
        ("POST", SCHEDULES, BODY | {"id": "there"}),
        ("POST", SCHEDULES, BODY | {"rrule": "NO RULE"}),
        ("PUT", f"{SCHEDULES}/other", BODY),
        ("PUT", f"{SCHEDULES}/there", BODY | {"tags": ["x"]}),
        ("PUT", f"{SCHEDULES}/nobody", {"name": "n"}),
        ("POST", f"{SCHEDULES}/bulk", {"schedules": [BODY, BODY | {"id": "b"}, BODY | {"id": "b"}]}),
        ("POST", f"{SCHEDULES}/import", IMPORT),
        ("POST", f"{SCHEDULES}/import", IMPORT),
        ("POST", "/api/v1/calendar-feeds", {"name": "ops"}),
        ("DELETE", "/api/v1/calendar-feeds/made", None),
        ("DELETE", "/api/v1/calendar-feeds/none", None),
        (
            "POST",
            f"{SCHEDULES}/there/backfill",
            {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"},
        ),
        ("DELETE", f"{SCHEDULES}/there/backfill", None),
        ("POST", "/api/v1/backlog/expire", {"all": True}),
        ("POST", f"{SCHEDULES}/there/pause", None),
        ("POST", f"{SCHEDULES}/mine/resume", None),
        ("POST", f"{SCHEDULES}/there/trigger", None),
        ("POST", f"{SCHEDULES}/there/signing-secret", None),
        ("DELETE", f"{SCHEDULES}/there/signing-secret", None),
        ("POST", f"{events}/{waiting}/cancel", None),
        ("POST", f"{events}/{dead}/cancel", None),
        ("POST", f"{events}/{waiting}/complete", None),
        ("POST", f"{events}/{waiting}/fail", {"reason": "no"}),
        ("POST", f"{events}/{waiting}/redrive", None),
        ("POST", f"{events}/{dead}/redrive", None),
        ("POST", f"{events}/redrive", {"schedule_id": "there"}),
        ("POST", f"/api/v1/failures/{cause.id}/dismiss", {"note": "known", "events": True}),
        ("POST", "/api/v1/failures/none/dismiss", None),
        ("DELETE", "/api/v1/redrives/r1", None),
        ("DELETE", "/api/v1/redrives/none", None),
        ("POST", f"{SCHEDULES}/pause", {"all": True}),
        ("POST", f"{SCHEDULES}/resume", {"name": "n"}),
        ("POST", f"{SCHEDULES}/delete", {"name": "n"}),
        ("PUT", "/api/v1/calendars/zurich", {"country": "CH"}),
        ("PUT", "/api/v1/calendars/zurich", {"country": "CH", "subdivision": "ZH"}),
        ("DELETE", "/api/v1/calendars/zurich", None),
        ("DELETE", "/api/v1/calendars/zurich", None),
        ("POST", "/api/v1/messages", MESSAGE),
        ("POST", "/api/v1/messages", MESSAGE),
        ("POST", "/api/v1/messages/bulk", {"messages": [MESSAGE | {"id": "m2"}, {}]}),
        ("POST", "/api/v1/messages/m1/reschedule", {"delay_seconds": 600}),
        ("POST", "/api/v1/messages/m1/cancel", None),
        ("DELETE", "/api/v1/messages/m2", None),
        ("DELETE", "/api/v1/messages/none", None),
        ("PUT", "/api/v1/destinations/billing", {"url": "http://127.0.0.1:9/"}),
        ("PATCH", "/api/v1/destinations/billing", {"rate_per_second": 5}),
        ("POST", "/api/v1/destinations/billing/pause", None),
        ("POST", "/api/v1/destinations/billing/resume", None),
        ("POST", "/api/v1/destinations/billing/test", None),
        ("DELETE", "/api/v1/destinations/billing", None),
        ("DELETE", "/api/v1/destinations/billing", None),
        ("PUT", "/api/v1/kill-switch", {"tag": "nobody-has-it"}),
        ("DELETE", "/api/v1/kill-switch?tag=nobody-has-it", None),
        ("DELETE", "/api/v1/kill-switch?tag=nobody-has-it", None),
        ("PUT", "/api/v1/blackouts/night", examples.BLACKOUT),
        ("DELETE", "/api/v1/blackouts/night", None),
        ("DELETE", "/api/v1/blackouts/night", None),
        ("PUT", "/api/v1/heartbeats/backup", examples.HEARTBEAT),
        ("POST", "/api/v1/heartbeats/backup/ping", None),
        ("POST", "/api/v1/heartbeats/backup/token", None),
        ("DELETE", "/api/v1/heartbeats/backup", None),
        ("PUT", "/api/v1/notifications/ops", examples.NOTIFICATION),
        ("POST", "/api/v1/notifications/ops/test", None),
        ("DELETE", "/api/v1/notifications/ops", None),
        ("DELETE", "/api/v1/notifications/ops", None),
        ("PUT", "/api/v1/silences/night", examples.SILENCE),
        ("DELETE", "/api/v1/silences/night", None),
        ("DELETE", "/api/v1/silences/night", None),
        ("POST", "/api/v1/keys", examples.KEY),
        ("POST", "/api/v1/keys/4k2m9x0p7q1z/rotate", {"overlap_seconds": 60}),
        ("DELETE", "/api/v1/keys/4k2m9x0p7q1z", None),
        ("DELETE", "/api/v1/keys/4k2m9x0p7q1z", None),
        ("POST", "/api/v1/keys/revoke-leaked", {"key": new_key(WholeId("4k2m9x0p7q1z"))}),
        ("POST", "/api/v1/sign-in/token", {"verifier": new_verifier()}),
        ("POST", "/api/v1/sign-in/end", {"token": "rrp_unknown"}),
        ("DELETE", f"/api/v1/people/{'p' * 24}/sessions", None),
        ("DELETE", "/api/v1/people/nobody/sessions", None),
        ("PUT", "/api/v1/tenants/acme", {"note": "n"}),
        ("PUT", "/api/v1/tenants/acme", {"state": "suspended"}),
        (
            "POST",
            "/api/v1/tenants/acme/import",
            {"lines": ['{"rrule_scheduler_export": 1, "tenant": "elsewhere"}', "no line"]},
        ),
        ("DELETE", "/api/v1/tenants/acme?confirm=acme", None),
        ("DELETE", "/api/v1/tenants/acme", None),
        ("POST", f"{SCHEDULES}/there/edits/{edit}/revert", None),
        ("PUT", f"{SCHEDULES}/leaver", BODY | {"tags": ["leaving"]}),
        ("DELETE", "/api/v1/tags?tag=leaving", None),
        ("DELETE", "/api/v1/tags?tag=leaving&confirm=leaving", None),
        ("DELETE", f"{SCHEDULES}/there", None),
        ("DELETE", f"{SCHEDULES}/nobody", None),
        ("POST", SCHEDULES, BODY | {"id": "there"}),
    ]
    store.api_keys.insert(StoredKey(WholeId("4k2m9x0p7q1z"), "k", ALL_SCOPES, now, "0" * 64))
    person = Person(WholeId("p" * 24), "ann", ALL_SCOPES, now, now)
    store.people.seen(person)
    until = datetime.now(UTC) + timedelta(hours=1)
    store.person_sessions.open(PersonSession("s", "s", person.id, "ann", person.grant, "x", now, until), {})
    store.calendar_feeds.insert(CalendarFeed("made", "x", "0" * 64, datetime.now(UTC)))
    operations = written_operations(client)
    for method, path, body in writes:
        before = everything(store, redis_url)
        headers = {"Idempotency-Key": "k"} if method == "POST" else {}
        dry = client.open(
            f"{path}{'&' if '?' in path else '?'}dry_run=true", method=method, json=body, headers=headers
        )
        assert everything(store, redis_url) == before, (method, path)
        real = client.open(path, method=method, json=body)
        assert dry.status_code == real.status_code, (method, path, dry.text, real.text)
        operations.discard((method, generic(path.split("?")[0])))
        if dry.status_code in OK:
            shown = dry.get_json()
            assert shown.pop("dry_run") is True
            # How much would be deleted is counted for the dry run alone.
            assert ("confirm=leaving" in path) == bool(shown.pop("found", None))
            # A dry run calls nobody, and so has no answer of a receiver to show.
            seen = ANSWER_OF_A_RECEIVER if path.endswith("/test") else set()
            assert shown.keys() == real.get_json().keys() - seen, path
            assert "whsec_" not in dry.text
            assert not {"ETag", "Location"} & {name for name, _ in dry.headers}
            told, done = _told(shown), _told(real.get_json())
            assert told == done, path
        else:
            assert dry.get_json() == real.get_json()
        if path.endswith(("/pause", "/resume")) and body is None:
            client.put(f"{SCHEDULES}/there", json={"state": "active"})
    operations = {each for each in operations if not each[1].startswith("/tasks")}  # below
    assert not operations, "writes without a dry run in this test"
    assert published(store, redis_url), "no write has published a message that a dry run might have"


def test_a_dry_run_of_the_tasks_of_the_seed_changes_nothing(
    make_api: Callable[..., Flask], store: Store, redis_url: str
) -> None:
    client = make_api(tasks_api=True, allowed_commands=("echo *",)).test_client()
    task = "/tasks/my-task-1"
    assert client.post("/tasks", json=examples.TASK).status_code == 201
    writes: list[tuple[str, str, Any]] = [
        ("POST", "/tasks", examples.TASK | {"id": "another"}),
        ("PUT", task, examples.TASK_CHANGE),
        ("POST", f"{task}/schedule", examples.TASK_TIME),
        ("POST", f"{task}/execute", None),
        ("DELETE", task, None),
    ]
    for method, path, body in writes:
        before = everything(store, redis_url)
        dry = client.open(f"{path}?dry_run=true", method=method, json=body)
        assert everything(store, redis_url) == before, (method, path)
        assert client.open(path, method=method, json=body).status_code == dry.status_code, (path, dry.text)
        assert dry.status_code in OK | {204}


def _told(answer: dict[str, Any]) -> dict[str, Any]:
    """What an answer says was done. An event that is really brought back is dispatched at once, too."""
    names = ("state", "message", "created", "refused", "redriven", "paused", "resumed", "deleted")
    told = {name: answer.get(name) for name in names}
    return told | ({"state": State.READY_QUEUE} if told["state"] == State.WORKER_QUEUE else {})


def written_operations(client: FlaskClient) -> set[tuple[str, str]]:
    """Every operation of the specification that is no look; each must take the parameter."""
    found = set()
    for path, item in specification_of(client)["paths"].items():
        for method, operation in item.items():
            if method not in ("get", "parameters") and operation["operationId"] != "preview_rule":
                assert "dry_run" in {each.get("name") for each in operation["parameters"]}, path
                found.add((method.upper(), path))
    return found


def generic(path: str) -> str:
    parts = path.removeprefix("/api/v1/").split("/")
    if parts[0] == "sign-in":
        return path
    if len(parts) > 1 and not (
        parts[1] in ("bulk", "import", "pause", "resume", "delete", "redrive", "expire", "revoke-leaked")
        and len(parts) == 2
    ):
        names = {
            "events": "{event_id}",
            "calendars": "{name}",
            "calendar-feeds": "{feed_id}",
            "messages": "{message_id}",
            "destinations": "{name}",
            "blackouts": "{name}",
            "people": "{person_id}",
            "failures": "{failure_id}",
            "redrives": "{redrive_id}",
            "heartbeats": "{name}",
            "notifications": "{name}",
            "silences": "{name}",
            "keys": "{key_id}",
            "tenants": "{name}",
        }
        parts[1] = names.get(parts[0], "{schedule_id}")
        if len(parts) > 3 and parts[2] == "edits":
            parts[3] = "{edit_id}"
    return "/api/v1/" + "/".join(parts)


def test_a_dry_run_shows_masks_for_secrets_and_keeps_no_idempotency_record(
    client: FlaskClient, store: Store
) -> None:
    key = {"Idempotency-Key": "k"}
    for _ in range(2):
        answer = client.post(f"{SCHEDULES}?dry_run=true", json=LATER | {"signing": True}, headers=key)
        assert (answer.status_code, answer.get_json()["signing_secret"]) == (201, MASK)
        assert "Idempotent-Replayed" not in answer.headers
    made = client.post(SCHEDULES, json=LATER | {"signing": True}, headers=key)
    assert made.get_json()["signing_secret"].startswith("whsec_")
    assert store.mongo.collection("idempotency").count_documents({}) == 1


def test_a_dry_run_that_is_neither_true_nor_false_is_refused_and_does_nothing(
    client: FlaskClient, store: Store
) -> None:
    for value in ("yes", "", "TRUE", "1"):
        answer = client.post(f"{SCHEDULES}?dry_run={value}", json=LATER)
        assert (answer.status_code, answer.get_json()["errors"][0]["pointer"]) == (422, "/dry_run"), value
    assert store.mongo.collection("schedules").count_documents({}) == 0
    assert client.post(f"{SCHEDULES}?dry_run=false", json=LATER).get_json().get("dry_run") is None
    assert store.mongo.collection("schedules").count_documents({}) == 1


def test_a_dry_run_by_a_body_is_the_same(
    client: FlaskClient, store: Store, create: Callable[..., dict[str, Any]], redis_url: str
) -> None:
    create(tags=["t"])
    before = everything(store, redis_url)
    answer = client.post(
        f"{SCHEDULES}/delete", json={"tag": "t", "dry_run": True}, headers={"Idempotency-Key": "k"}
    )
    assert (answer.get_json()["deleted"], answer.get_json()["dry_run"]) == (1, True)
    assert everything(store, redis_url) == before
    assert client.get(f"{SCHEDULES}?tag=t").get_json()["schedules"]


def test_the_next_request_of_the_same_thread_is_no_dry_run(client: FlaskClient, app: Flask) -> None:
    client.delete(f"{SCHEDULES}/nobody?dry_run=true")
    assert client.post(SCHEDULES, json=LATER | {"id": "real"}).status_code == 201
    assert client.get(f"{SCHEDULES}/real").status_code == 200


def test_what_is_not_known_to_be_a_read_is_refused(store: Store) -> None:
    documents = store.dry_run().mongo.collection("schedules")
    verbs = {
        name for name in dir(Collection) if not name.startswith("_") and callable(getattr(Collection, name))
    }
    assert verbs - READS <= vars(DryRunDocuments).keys()
    refused: list[Callable[[], Any]] = [
        lambda: documents.insert_one({"_id": 1}),
        lambda: documents.delete_many({}),
        lambda: documents.with_options().replace_one({}, {}),
        lambda: documents.update_one({}, {"$set": {}}, upsert=True),
        lambda: documents.bulk_write([UpdateOne({}, {"$set": {"a": 1}})]),
        lambda: documents.aggregate([{"$out": "x"}]),
        lambda: store.dry_run().mongo.command("drop", "schedules"),
    ]
    for write in refused:
        with pytest.raises(NotInDryRun):
            write()
    assert documents.bulk_write([ReplaceOne({"_id": "x"}, {"_id": "x"})]).matched_count == 0

"""PUT creates what is not there; an id is free again when its schedule is deleted."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from scheduler_app.api.services import Services
from scheduler_app.domain.schedule import Schedule
from scheduler_app.domain.states import Kind, State
from scheduler_app.domain.triggers import ONE_OF
from scheduler_app.store import Store
from tests.builders import event

SCHEDULES = "/api/schedules"
RULE = "DTSTART:20400101T000000Z\nRRULE:FREQ=YEARLY"
BODY = {"name": "n", "callback_url": "http://127.0.0.1:9/", "rrule": RULE}
HOUR = timedelta(hours=1)


def put(client: FlaskClient, body: dict[str, Any], query: str = "", **headers: str) -> TestResponse:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.put(f"{SCHEDULES}/mine{query}", json=body, headers=named)


def stored(store: Store, schedule_id: str = "mine") -> Schedule:
    found = store.schedules.get(schedule_id)
    assert isinstance(found, Schedule)
    return found


def test_put_creates_what_is_not_there_and_changes_what_is(client: FlaskClient) -> None:
    first = put(client, BODY | {"id": "mine", "signing": True})
    assert first.status_code == 201, first.text
    assert first.headers["Location"] == "/api/schedules/mine"
    assert first.get_json()["signing_secret"].startswith("whsec_")
    second = put(client, {"name": "other"})
    assert (second.status_code, second.get_json()["name"]) == (200, "other")
    assert "signing_secret" not in second.get_json()
    same = put(client, BODY | {"name": "other", "signing": True})
    assert same.get_json()["version"] == second.get_json()["version"], "nothing changes"
    assert same.headers["ETag"] == second.headers["ETag"]
    assert put(client, {"signing": False}).get_json()["signing"] is False


def test_put_says_what_a_new_schedule_would_need(client: FlaskClient) -> None:
    answer = put(client, {"timeout_seconds": 3, "name": "n"})
    assert answer.status_code == 404
    assert answer.get_json()["detail"].endswith(
        f"to create it, give callback_url, destination or action, one of {ONE_OF} too"
    )
    assert put(client, BODY | {"id": "other"}).get_json()["errors"][0]["pointer"] == "/id"
    wrong = client.put(f"{SCHEDULES}/a_b", json=BODY)
    assert (wrong.status_code, wrong.get_json()["errors"][0]["pointer"]) == (422, "/id")


def test_the_conditions_of_a_put_are_those_of_http(client: FlaskClient) -> None:
    for absent in ({"If_Match": "*"}, {"If_Match": '"1"'}, {"If_Match": '"1", "2"'}):
        assert put(client, BODY, **absent).status_code == 412, absent
    assert put(client, BODY, If_None_Match="*").status_code == 201
    for query, headers in (("", {"If_None_Match": "*"}), ("?if-absent", {}), ("?if-absent=true", {})):
        assert put(client, BODY | {"name": "m"}, query, **headers).status_code == 412, query
    tag = client.get(f"{SCHEDULES}/mine").headers["ETag"]
    assert put(client, {"name": "m"}, If_None_Match=tag).status_code == 412
    assert put(client, {"name": "m"}, If_Match=tag).status_code == 200
    assert put(client, {"name": "o"}, If_Match=tag).status_code == 412
    assert put(client, {"name": "o"}, If_Match="*").status_code == 200
    assert put(client, {"name": "p"}, If_None_Match=tag).status_code == 200
    client.delete(f"{SCHEDULES}/mine")
    assert put(client, BODY, "?if-absent").status_code == 201


def test_of_those_who_create_at_once_one_does_and_the_others_change(app: Flask) -> None:
    gate, answers = threading.Barrier(6), list[int]()

    def ask(number: int) -> None:
        client = app.test_client()
        gate.wait()
        answers.append(client.put(f"{SCHEDULES}/mine", json=BODY | {"name": str(number)}).status_code)

    for again in range(3):
        threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(answers) == [200] * 5 + [201], again
        answers.clear()
        app.test_client().delete(f"{SCHEDULES}/mine")


@pytest.mark.parametrize("way", ["POST", "PUT", "bulk"])
def test_an_id_is_free_again_and_no_event_s_id_comes_twice(
    client: FlaskClient, store: Store, way: str
) -> None:
    client.put(f"{SCHEDULES}/mine", json=BODY | {"rrule": "FREQ=SECONDLY"})
    client.put(f"{SCHEDULES}/mine", json={"rrule": "FREQ=SECONDLY;INTERVAL=2"})
    before = {row["_id"] for row in store.mongo.collection("events").find({}, {"_id": 1})}
    old = client.get(f"{SCHEDULES}/mine")
    assert client.delete(f"{SCHEDULES}/mine").status_code == 200
    again = BODY | {"id": "mine", "rrule": "FREQ=SECONDLY"}
    if way == "bulk":
        made = client.post(f"{SCHEDULES}/bulk", json={"schedules": [again, again, BODY]}).get_json()
        assert [each["status"] for each in made["results"]] == [201, 409, 201]
    else:
        path = f"{SCHEDULES}/mine" if way == "PUT" else SCHEDULES
        assert client.open(path, method=way, json=again).status_code == 201
    new = stored(store)
    assert new.revision == new.first_revision == 3
    events = list(store.mongo.collection("events").find({"schedule_id": "mine"}))
    living = [row for row in events if row["state"] in (State.READY_QUEUE, State.WORKER_QUEUE)]
    assert living
    assert all(row["revision"] == 3 for row in living)
    assert not {row["_id"] for row in living} & before
    stale = client.put(f"{SCHEDULES}/mine", json={"name": "x"}, headers={"If-Match": old.headers["ETag"]})
    assert stale.status_code == 412
    history = client.get(f"{SCHEDULES}/mine/events/history?limit=100&include=cancelled").get_json()["events"]
    assert {row["state"] for row in history} == {"cancelled"}, "the deleted one's stays readable"


def test_what_a_deleted_schedule_has_left_is_not_sent_by_its_successor(
    client: FlaskClient, store: Store
) -> None:
    """A deletion died between its two writes; a beat that had claimed the schedule inserts late."""
    client.put(f"{SCHEDULES}/mine", json=BODY)
    now = datetime.now(UTC)
    retrying, late = event(now - HOUR, "mine"), event(now + HOUR, "mine")
    manual = event(now - 2 * HOUR, "mine")._replace(id="mine-manual-1", kind=Kind.MANUAL)
    store.events.insert([retrying, manual], now, "made")
    assert store.schedules.delete("mine", now) is not None
    assert put(client, BODY).status_code == 201
    states = {row["_id"]: row["state"] for row in store.mongo.collection("events").find({})}
    assert {states[each.id] for each in (retrying, manual)} == {"cancelled"}
    store.events.insert([late], now, "made late")
    assert stored(store).is_cancelled_by_edit(late.revision, late.run_time)


def test_a_deletion_that_comes_late_leaves_the_successor_s_events_alone(
    app: Flask, client: FlaskClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    services: Services = app.extensions["scheduler"]
    put(client, BODY)
    cancel_all = services.store.cancellations.cancel_all

    def meanwhile(*args: Any, **options: Any) -> int:
        """Somebody creates it again between the deletion's two writes."""
        monkeypatch.setattr(services.store.cancellations, "cancel_all", cancel_all)
        assert put(client, BODY | {"rrule": "FREQ=SECONDLY"}).status_code == 201
        return cancel_all(*args, **options)

    monkeypatch.setattr(services.store.cancellations, "cancel_all", meanwhile)
    assert client.delete(f"{SCHEDULES}/mine").status_code == 200
    pending = client.get(f"{SCHEDULES}/mine/events/pending").get_json()["events"]
    assert pending
    assert client.get(f"{SCHEDULES}/mine").status_code == 200


def test_a_creation_begun_again_does_not_bring_back_what_was_deleted_since(
    app: Flask, client: FlaskClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    services: Services = app.extensions["scheduler"]
    key = {"Idempotency-Key": "k"}
    for path, body in (
        (SCHEDULES, BODY | {"id": "mine"}),
        (SCHEDULES, BODY),
        (f"{SCHEDULES}/bulk", {"schedules": [BODY | {"id": "b"}]}),
    ):
        with monkeypatch.context() as patch:
            # The process ends between the deed and the record of its answer.
            patch.setattr(services.store.idempotency, "finish", lambda *_: True)
            made = client.post(path, json=body, headers=key).get_json()
        made = made.get("results", [made])[0]
        client.delete(f"{SCHEDULES}/{made['id']}")
        lease = [{"$set": {"lease_until": {"$subtract": ["$$NOW", 1]}}}]
        store.mongo.collection("idempotency").update_many({}, lease)
        again = client.post(path, json=body, headers=key)
        results = again.get_json().get("results", [{"status": again.status_code}])
        assert results[0]["status"] == 409, again.text
        assert client.get(f"{SCHEDULES}/{made['id']}").status_code == 404
        store.mongo.collection("idempotency").delete_many({})


def test_an_id_whose_deleted_document_is_corrupt_is_not_to_be_had(client: FlaskClient, store: Store) -> None:
    put(client, BODY)
    client.delete(f"{SCHEDULES}/mine")
    store.mongo.collection("schedules").update_one({"_id": "mine"}, {"$set": {"revision": "three"}})
    answer = put(client, BODY)
    assert (answer.status_code, "another id" in answer.get_json()["detail"]) == (409, True)


def test_an_id_that_retention_has_freed_begins_anew(client: FlaskClient, store: Store) -> None:
    put(client, BODY)
    client.delete(f"{SCHEDULES}/mine")
    store.schedules.remove("mine")
    assert put(client, BODY).get_json()["revision"] == 1


def test_states_may_be_put_and_restored(client: FlaskClient, create: Callable[..., dict[str, Any]]) -> None:
    assert put(client, BODY | {"state": "paused"}).get_json()["state"] == "paused"
    active = put(client, {"state": "active"}).get_json()
    assert (active["state"], active["next_run_at"]) == ("active", "2040-01-01T00:00:00Z")
    assert put(client, {"state": "paused"}).get_json()["revision"] == active["revision"] + 1
    failed = create(id="failed", state="error", reason="the rule broke")
    assert failed["reason"] == "the rule broke"
    assert create(id="done", state="finished", run_at="2020-01-01T00:00:00Z")["state"] == "finished"
    assert put(client, {"state": "deleted"}).status_code == 422

"""One Idempotency-Key, one deed."""

import itertools
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from scheduler_app.api.services import Services
from scheduler_app.domain.ids import TENANT
from scheduler_app.store import Store, idempotency
from scheduler_app.store.idempotency import Answered, Begun, InFlight

BODY = {
    "name": "n",
    "callback_url": "http://127.0.0.1:9/",
    "rrule": "DTSTART:20400101T000000Z\nRRULE:FREQ=DAILY",
}
KEY = {"Idempotency-Key": "order-4711"}


def records(store: Store) -> Any:
    return store.mongo.collection("idempotency")


def schedules(store: Store) -> int:
    return store.mongo.collection("schedules").count_documents({})


def test_the_same_request_is_answered_the_same_again(client: FlaskClient, store: Store) -> None:
    first = client.post("/api/schedules", json=BODY, headers=KEY)
    again = client.post("/api/schedules", json=BODY, headers=KEY)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.data == first.data
    assert again.headers["ETag"] == first.headers["ETag"]
    assert "Idempotent-Replayed" not in first.headers
    assert again.headers["Idempotent-Replayed"] == "true"
    assert schedules(store) == 1


def test_a_key_used_for_another_request_is_refused(client: FlaskClient, store: Store) -> None:
    client.post("/api/schedules", json=BODY, headers=KEY)
    other = client.post("/api/schedules", json=BODY | {"name": "m"}, headers=KEY)
    assert other.status_code == 422
    assert other.get_json()["errors"][0]["pointer"] == "/Idempotency-Key"
    assert client.post("/api/events/redrive", json={}, headers=KEY).status_code == 422
    assert schedules(store) == 1


def test_two_clients_with_one_key_at_the_same_moment_make_one_schedule(app: Flask, store: Store) -> None:
    for number in range(10):
        together = threading.Barrier(4)
        answers: list[TestResponse] = []

        def ask(key: str, gate: threading.Barrier, found: list[TestResponse]) -> None:
            client = app.test_client()
            gate.wait()
            found.append(client.post("/api/schedules", json=BODY, headers={"Idempotency-Key": key}))

        threads = [threading.Thread(target=ask, args=(f"k{number}", together, answers)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert schedules(store) == number + 1
        assert {answer.status_code for answer in answers} <= {201, 409}
        assert len({answer.get_json()["id"] for answer in answers if answer.status_code == 201}) == 1
        assert all(answer.headers["Retry-After"] for answer in answers if answer.status_code == 409)


def test_a_crash_before_the_answer_frees_the_key_when_its_lease_is_over_and_makes_nothing_twice(
    app: Flask, client: FlaskClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    services: Services = app.extensions["scheduler"]
    with monkeypatch.context() as patch:
        # The process ends between the deed and the record of its answer.
        patch.setattr(services.store.idempotency, "finish", lambda *_: True)
        lost = client.post("/api/schedules", json=BODY, headers=KEY).get_json()
    assert client.post("/api/schedules", json=BODY, headers=KEY).status_code == 409
    records(store).update_one({}, [{"$set": {"lease_until": {"$subtract": ["$$NOW", 1]}}}])
    other = client.post("/api/schedules", json=BODY | {"name": "m"}, headers=KEY)
    assert other.status_code == 422
    again = client.post("/api/schedules", json=BODY, headers=KEY)
    assert (again.status_code, again.get_json()["id"]) == (201, lost["id"])
    assert schedules(store) == 1
    assert client.post("/api/schedules", json=BODY, headers=KEY).headers["Idempotent-Replayed"] == "true"


def test_a_trigger_a_bulk_and_a_backfill_begun_again_after_a_crash_make_nothing_twice(
    app: Flask, client: FlaskClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = {"rrule": "DTSTART:20200101T000000Z\nRRULE:FREQ=DAILY"}
    made = client.post("/api/schedules", json=BODY | older).get_json()["id"]
    past = {"from": "2020-01-01T00:00:00Z", "to": "2020-01-10T00:00:00Z"}
    services: Services = app.extensions["scheduler"]
    for path, body in (
        (f"/api/schedules/{made}/trigger", None),
        (f"/api/schedules/{made}/backfill", past),
        ("/api/schedules/bulk", {"schedules": [BODY | {"signing": True}] * 3}),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(services.store.idempotency, "finish", lambda *_: True)
            first = client.post(path, json=body, headers={"Idempotency-Key": path})
        records(store).update_many({}, [{"$set": {"lease_until": {"$subtract": ["$$NOW", 1]}}}])
        assert client.post(path, json=body, headers={"Idempotency-Key": path}).get_json() == first.get_json()
    assert schedules(store) == 4
    assert store.mongo.collection("events").count_documents({"kind": "manual"}) == 1


def test_a_chosen_id_is_found_again_after_a_crash_by_the_same_request_alone(
    app: Flask, client: FlaskClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    services: Services = app.extensions["scheduler"]
    for path, body in (
        ("/api/schedules", BODY | {"id": "mine", "signing": True}),
        ("/api/schedules/bulk", {"schedules": [BODY | {"id": "b1"}, BODY | {"id": "b1"}, BODY]}),
    ):
        key = {"Idempotency-Key": path}
        with monkeypatch.context() as patch:
            patch.setattr(services.store.idempotency, "finish", lambda *_: True)
            first = client.post(path, json=body, headers=key)
        records(store).update_many({}, [{"$set": {"lease_until": {"$subtract": ["$$NOW", 1]}}}])
        other = client.post(path, json=body, headers={"Idempotency-Key": "other"})
        again = client.post(path, json=body, headers=key)
        assert (again.status_code, again.get_json()) == (first.status_code, first.get_json())
        if path.endswith("bulk"):
            assert [each["status"] for each in again.get_json()["results"]] == [201, 409, 201]
            assert [each["status"] for each in other.get_json()["results"]] == [409, 409, 201]
        else:
            assert (again.status_code, other.status_code) == (201, 409)
    assert schedules(store) == 4


def test_a_late_answer_of_a_lost_lease_is_not_kept(store: Store) -> None:
    slow = store.idempotency.begin(TENANT, "me", "k", "request")
    records(store).update_one({}, [{"$set": {"lease_until": {"$subtract": ["$$NOW", 1]}}}])
    second = store.idempotency.begin(TENANT, "me", "k", "request")
    assert isinstance(slow, Begun)
    assert isinstance(second, Begun)
    assert slow.request_seed == second.request_seed
    assert not store.idempotency.finish(slow, 201, {}, b"slow")
    assert store.idempotency.finish(second, 201, {}, b"second")


def test_a_request_that_a_fault_has_broken_off_is_begun_again_at_once_with_its_seed(store: Store) -> None:
    def begin(key: str = "k") -> Begun:
        found = store.idempotency.begin(TENANT, "owner", key, "request")
        assert isinstance(found, Begun)
        return found

    first = begin()
    store.idempotency.release(first)
    second = begin()
    assert (second.request_seed, second.token != first.token) == (first.request_seed, True)
    store.idempotency.release(first)
    assert isinstance(store.idempotency.begin(TENANT, "owner", "k", "request"), InFlight)
    store.idempotency.give_up(second)
    assert begin().request_seed != first.request_seed


def test_a_conflict_may_be_asked_again_with_the_same_key(client: FlaskClient) -> None:
    body = BODY | {"id": "mine"}
    client.post("/api/schedules", json=body)
    assert client.post("/api/schedules", json=body, headers=KEY).status_code == 409
    assert client.post("/api/schedules", json=body | {"id": "other"}, headers=KEY).status_code == 201


def test_a_refusal_is_an_answer_too(client: FlaskClient) -> None:
    wrong = BODY | {"rrule": "NOT A RULE"}
    first = client.post("/api/schedules", json=wrong, headers=KEY)
    again = client.post("/api/schedules", json=wrong, headers=KEY)
    assert (first.status_code, again.status_code) == (422, 422)
    assert (again.data, again.mimetype) == (first.data, "application/problem+json")


def test_a_key_belongs_to_who_sent_it_and_the_owner_is_no_key(
    make_api: Callable[..., Flask], store: Store
) -> None:
    keys = ("key-of-the-first-one", "key-of-the-second-one")
    client = make_api(api_keys=keys).test_client()
    made = {
        client.post("/api/schedules", json=BODY, headers={**KEY, "X-API-Key": key}).get_json()["id"]
        for key in keys
    }
    assert len(made) == 2
    kept = str(list(records(store).find()))
    assert not any(key in kept for key in keys)


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "é"])
def test_a_key_that_is_none_is_refused(client: FlaskClient, key: str) -> None:
    answer = client.post("/api/schedules", json=BODY, headers={"Idempotency-Key": key})
    assert answer.status_code == 422
    assert answer.get_json()["errors"][0]["pointer"] == "/Idempotency-Key"


def test_a_preview_is_not_kept(client: FlaskClient, store: Store) -> None:
    for rule in ("FREQ=DAILY", "FREQ=HOURLY"):
        answer = client.post("/api/schedules/preview", json={"rrule": rule}, headers=KEY)
        assert answer.status_code == 200, answer.text
        assert "Idempotent-Replayed" not in answer.headers
    assert records(store).count_documents({}) == 0
    odd = client.post(
        "/api/schedules/preview", json={"rrule": "FREQ=DAILY"}, headers={"Idempotency-Key": "a b"}
    )
    assert odd.status_code == 422, "a key that is none is refused all the same"
    assert client.post("/api/schedules", json=BODY, headers=KEY).status_code == 201


@pytest.mark.parametrize(("answers", "size"), [(20, 1), (3, 500)], ids=["by number", "by size"])
def test_what_is_kept_for_one_owner_is_bounded_and_others_lose_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch, answers: int, size: int
) -> None:
    monkeypatch.setattr(idempotency, "MAX_ANSWERS", 10)
    monkeypatch.setattr(idempotency, "MAX_BYTES", 1_000)
    monkeypatch.setattr(idempotency, "ANSWERS_BETWEEN_COUNTS", 5)
    monkeypatch.setattr(idempotency, "BYTES_BETWEEN_COUNTS", 400)

    def keep(owner: str, key: str) -> None:
        begun = store.idempotency.begin(TENANT, owner, key, "request")
        assert isinstance(begun, Begun)
        assert store.idempotency.finish(begun, 200, {}, b"x" * size)
        # Records of the same millisecond go together.
        age = {"$set": {"created_at": begun_at + timedelta(seconds=next(second))}}
        records(store).update_one({"_id": f"{owner}:{key}"}, age)

    begun_at, second = store.mongo.server_time() - timedelta(hours=1), itertools.count()
    keep("other", "k")
    at_work = store.idempotency.begin(TENANT, "me", "at work", "request")
    records(store).update_one({"_id": "me:at work"}, {"$set": {"created_at": begun_at}})
    for number in range(4 * answers):
        keep("me", f"k{number:03}")
    kept = sorted(row["_id"] for row in records(store).find({"owner": "me", "answer": {"$exists": True}}))
    assert len(kept) <= (10 + 5 if size == 1 else 3)
    assert kept[-1] == f"me:k{4 * answers - 1:03}"
    assert isinstance(store.idempotency.begin(TENANT, "other", "k", "request"), Answered)
    assert isinstance(at_work, Begun)
    assert store.idempotency.finish(at_work, 200, {}, b"")


def test_answers_are_kept_for_a_day_by_mongods_clock(client: FlaskClient, store: Store) -> None:
    client.post("/api/schedules", json=BODY, headers=KEY)
    index = records(store).index_information()["kept_v1"]
    assert index["expireAfterSeconds"] == timedelta(days=1).total_seconds()
    age = store.mongo.server_time() - records(store).find_one()["created_at"]
    assert timedelta(0) <= age < timedelta(minutes=1)

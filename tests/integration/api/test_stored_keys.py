"""Keys that are kept in MongoDB: made, rotated, deleted and expired, by every process within seconds."""

import json
import re
import zlib
from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from scheduler_app.api import known_keys
from scheduler_app.api.known_keys import RecentlyRead
from scheduler_app.domain import api_key
from scheduler_app.domain.api_key import ALL_SCOPES, Caller, KeyDraft, KeyScope
from scheduler_app.domain.ids import whole_id
from scheduler_app.store import Store
from scheduler_app.usecases.deeds.api_keys import KeyService
from tests.integration.api.conftest import ToldTime
from tests.integration.api.test_pages_access import sign_in

ROOT = "0123456789abcdef"
KEYS = "/api/v1/keys"


class Monotonic:
    """The clock by which a process knows how old is what it knows."""

    def __init__(self) -> None:
        self.at = 1_000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def monotonic(monkeypatch: pytest.MonkeyPatch) -> Monotonic:
    told = Monotonic()
    monkeypatch.setattr(known_keys, "monotonic", told)
    return told


@pytest.fixture
def processes(make_api: Callable[..., Flask]) -> list[FlaskClient]:
    """Three processes of the API."""
    return [make_api(api_keys=(f"root:{ROOT}",)).test_client() for _ in range(3)]


def by(key: str) -> dict[str, str]:
    return {"X-API-Key": key}


def make(client: FlaskClient, key: str = ROOT, **fields: Any) -> dict[str, Any]:
    body = {"name": "deploys", "scopes": ["read"]} | fields
    answer = client.post(KEYS, json=body, headers=by(key))
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.get_json()
    return found


def counted(client: FlaskClient) -> list[str]:
    """The ids of the keys that this process has asked MongoDB for from now on."""
    asked: list[str] = []
    service = client.application.extensions["scheduler"].keys

    def read(key_id: str) -> Any:
        asked.append(key_id)
        return service.shown(key_id)

    client.application.extensions["known_keys"].stored = RecentlyRead(read)
    return asked


def status(client: FlaskClient, key: str, path: str = "/api/v1/schedules") -> int:
    return client.get(path, headers=by(key)).status_code


def test_a_key_is_shown_once_and_only_a_hash_of_it_is_kept(
    processes: list[FlaskClient], store: Store, time: ToldTime
) -> None:
    client = processes[0]
    ends = "2040-01-01T00:00:00Z"
    time.at = datetime(2026, 11, 27, 16, 48, 15, tzinfo=UTC)
    made = make(client, scopes=["trigger", "read"], expires_at=ends)
    assert made["created_at"] == "2026-11-27T16:48:15Z"
    key = made.pop("key")
    time.at += timedelta(milliseconds=18)
    assert re.fullmatch(r"rrs_[0-9a-z]{12}_[0-9A-Za-z]{38}", key)
    assert made["scopes"] == ["read", "trigger"]
    assert (made["created_by"], made["tenant"], made["expires_at"]) == (
        "root",
        "default",
        "2040-01-01T00:00:00Z",
    )
    assert [status(each, key) for each in processes] == [200, 200, 200]
    shown = client.get(f"{KEYS}/{made['id']}", headers=by(ROOT)).get_json()
    assert shown.pop("last_used_from") == "127.0.0.1"
    assert shown.pop("last_used_at") == "2026-11-27T16:48:15.018Z"
    assert shown == made
    listed = client.get(KEYS, headers=by(ROOT))
    assert [each["id"] for each in listed.get_json()["keys"]] == [made["id"]]
    secret = key.split("_")[2]
    assert secret not in listed.text
    for name in store.mongo.db.list_collection_names():
        for row in store.mongo.collection(name).find({}):
            assert secret not in str(row), name


def test_a_request_that_is_sent_again_makes_one_key_and_shows_a_secret_that_opens(
    processes: list[FlaskClient], store: Store, monotonic: Monotonic
) -> None:
    other = make(processes[0], scopes=["admin", "read"])["key"]
    headers, body = by(ROOT) | {"Idempotency-Key": "once"}, {"name": "n", "scopes": ["read"]}
    first, again = (client.post(KEYS, json=body, headers=headers) for client in processes[:2])
    assert [each.status_code for each in (first, again)] == [201, 201]
    old, new = first.get_json().pop("key"), again.get_json().pop("key")
    assert first.get_json()["id"] == again.get_json()["id"]
    assert store.api_keys.count("default") == 2
    assert [status(processes[2], each) for each in (old, new)] == [401, 200]
    # Another caller with the same Idempotency-Key asks for a key of its own.
    foreign = processes[0].post(KEYS, json=body, headers=headers | by(other)).get_json()
    assert foreign["id"] != first.get_json()["id"]
    kept = str(list(store.mongo.collection("idempotency").find({})))
    assert not [each for each in (old, new) if each.split("_")[2] in kept]


def test_a_rotation_that_is_sent_again_keeps_the_overlap_of_the_first(
    processes: list[FlaskClient], monotonic: Monotonic
) -> None:
    client, made = processes[0], make(processes[0])
    path, headers = f"{KEYS}/{made['id']}/rotate", by(ROOT) | {"Idempotency-Key": "turn"}
    lost, shown = (client.post(path, json={"overlap_seconds": 600}, headers=headers).get_json() for _ in "ab")
    assert lost["previous_until"] == shown["previous_until"]
    assert [status(client, each["key"]) for each in (made, lost, shown)] == [200, 401, 200]


def test_a_key_that_was_rotated_since_is_not_given_by_the_request_that_made_it(
    processes: list[FlaskClient], monotonic: Monotonic
) -> None:
    client, headers = processes[0], by(ROOT) | {"Idempotency-Key": "once"}
    body = {"name": "n", "scopes": ["read"]}
    made = client.post(KEYS, json=body, headers=headers).get_json()
    newer = client.post(f"{KEYS}/{made['id']}/rotate", headers=by(ROOT)).get_json()
    again = client.post(KEYS, json=body, headers=headers)
    assert (again.status_code, "rotate it again" in again.text) == (409, True)
    assert status(client, newer["key"]) == 200


def test_a_deleted_rotated_or_expired_key_opens_nothing_in_any_process_within_seconds(
    processes: list[FlaskClient], monotonic: Monotonic, time: ToldTime
) -> None:
    client = processes[0]
    deleted, rotated = make(client), make(client)
    expiring = make(client, expires_at=(time.at + timedelta(seconds=30)).isoformat())
    for each in processes:
        assert [status(each, it["key"]) for it in (deleted, rotated, expiring)] == [200, 200, 200]
    assert client.delete(f"{KEYS}/{deleted['id']}", headers=by(ROOT)).status_code == 200
    answer = client.post(f"{KEYS}/{rotated['id']}/rotate", json={"overlap_seconds": 60}, headers=by(ROOT))
    newer = answer.get_json()
    assert newer["key"] != rotated["key"]
    monotonic.at += known_keys.KNOWN_SECONDS
    assert known_keys.KNOWN_SECONDS <= 3
    for each in processes:
        assert [status(each, it["key"]) for it in (deleted, rotated, newer)] == [401, 200, 200]
    time.at += timedelta(seconds=31)
    for each in processes:
        assert [status(each, it["key"]) for it in (rotated, newer, expiring)] == [200, 200, 401]
    time.at += timedelta(seconds=30)
    for each in processes:
        assert [status(each, it["key"]) for it in (rotated, newer)] == [401, 200]
    assert client.post(f"{KEYS}/{rotated['id']}/rotate", headers=by(ROOT)).status_code == 200
    monotonic.at += known_keys.KNOWN_SECONDS
    assert [status(each, newer["key"]) for each in processes] == [401, 401, 401]


def test_requests_of_a_known_key_ask_for_it_and_note_it_seldom(
    processes: list[FlaskClient], monotonic: Monotonic, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = processes[0]
    key = make(client)["key"]
    services = client.application.extensions["scheduler"]
    asked = counted(client)
    used: list[str] = []
    noted = services.store.api_keys.used

    def note(*given: Any, **more: Any) -> None:
        used.append(given[0])
        noted(*given, **more)

    monkeypatch.setattr(services.store.api_keys, "used", note)
    for _ in range(30):
        assert status(client, key) == 200
        monotonic.at += 1
    assert len(asked) == 10
    assert len(used) == 1
    monotonic.at += 60
    assert status(client, key) == 200
    assert len(used) == 2


def test_what_a_process_knows_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_keys, "MAX_KNOWN", 3)
    known: RecentlyRead[str] = RecentlyRead(lambda name: None if name == "none" else name)
    for name in ("a", "b", "none", "c", "d"):
        known.get(name)
    assert len(known) == 3


def test_a_wrong_key_is_refused_without_a_look_and_many_are_limited(processes: list[FlaskClient]) -> None:
    client = processes[0]
    key = make(client)["key"]
    asked = counted(client)
    mistyped = key[:-1] + ("a" if key[-1] != "a" else "b")
    other = api_key.new_key(whole_id("default", key.split("_")[1]))
    unknown = api_key.new_key(whole_id("default", api_key.new_key_id()))
    assert status(client, mistyped) == 401
    assert asked == []
    assert [status(client, each) for each in (other, unknown)] == [401, 401]
    assert len(asked) == 2
    assert {status(client, unknown) for _ in range(10)} == {401, 429}
    assert status(client, key) == 200


def test_the_checksum_is_a_crc_that_a_scanner_can_compute() -> None:
    key = api_key.new_key(whole_id("acme", "4k2m9x0p7q1z"))
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    value = 0
    for each in key[-6:]:
        value = value * 62 + digits.index(each)
    assert value == zlib.crc32(key[:-6].encode())
    assert api_key.key_id_of(key) == "4k2m9x0p7q1z"
    assert api_key.key_id_of(key + "x") is None


@pytest.mark.parametrize(
    ("fields", "status", "said"),
    [
        ({"scopes": []}, 422, "scopes"),
        ({"scopes": ["all"]}, 422, "scopes"),
        ({"name": ""}, 422, "name"),
        ({"tenant": "none-such"}, 422, "there is no tenant none-such"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, 422, "has passed"),
        ({"tags": []}, 422, "tags"),
        ({"tags": ["t"], "installation": True}, 422, "leave installation out"),
        ({"tag": "t"}, 422, "tag: Unknown field"),
    ],
)
def test_what_cannot_be_made_is_refused(
    processes: list[FlaskClient], fields: dict[str, Any], status: int, said: str
) -> None:
    body = {"name": "n", "scopes": ["read"]} | fields
    answer = processes[0].post(KEYS, json=body, headers=by(ROOT))
    assert (answer.status_code, said in answer.text) == (status, True), answer.text


def test_nobody_gives_more_than_he_has(processes: list[FlaskClient]) -> None:
    client = processes[0]
    for tenant in ("acme", "globex"):
        assert client.put(f"/api/v1/tenants/{tenant}", json={}, headers=by(ROOT)).status_code == 201
    everything = make(client, scopes=["read", "trigger", "write", "admin"], tenant="acme")
    admin = make(client, scopes=["admin", "read"], tenant="acme")["key"]
    foreign = make(client, scopes=["read"], tenant="globex")
    wide = make(client, installation=True, scopes=["read"], tenant="default")
    made = make(client, admin, scopes=["read"])
    assert made["tenant"] == "acme"
    for fields in (
        {"scopes": ["write"]},
        {"tenant": "globex"},
        {"tenant": "default"},
        {"installation": True},
    ):
        answer = client.post(KEYS, json={"name": "n", "scopes": ["read"]} | fields, headers=by(admin))
        assert (answer.status_code, "your own key" in answer.text) == (403, True), answer.text
    answer = client.post(f"{KEYS}/{everything['id']}/rotate", headers=by(admin))
    assert (answer.status_code, "your own key" in answer.text) == (403, True)
    for other in (foreign, wide):
        for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/rotate")):
            answer = client.open(f"{KEYS}/{other['id']}{path}", method=method, headers=by(admin))
            assert answer.status_code == 404, answer.text
    assert {each["tenant"] for each in client.get(KEYS, headers=by(admin)).get_json()["keys"]} == {"acme"}
    assert client.get("/api/v1/tenants", headers=by(admin)).status_code == 403
    assert client.get("/metrics", headers=by(admin)).status_code == 403
    assert client.get("/metrics", headers=by(wide["key"])).status_code == 200
    # What may do more may not be made by one that belongs to `default` either.
    own = make(client, scopes=["admin"])["key"]
    assert client.get(f"{KEYS}/{wide['id']}", headers=by(own)).status_code == 404
    assert client.delete(f"{KEYS}/{wide['id']}", headers=by(ROOT)).status_code == 200


def test_a_tenant_has_a_bounded_number_of_keys(
    processes: list[FlaskClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scheduler_app.usecases.deeds.api_keys.MAX_KEYS", 2)
    for _ in range(2):
        make(processes[0])
    answer = processes[0].post(KEYS, json={"name": "n", "scopes": ["read"]}, headers=by(ROOT))
    assert (answer.status_code, "there are 2 keys" in answer.text) == (409, True)


def test_a_session_of_a_stored_key_ends_with_it(processes: list[FlaskClient], monotonic: Monotonic) -> None:
    client, browser = processes[0], processes[1]
    made = make(client, scopes=["read"])
    assert sign_in(browser, made["key"]).status_code == 303
    page = browser.get("/you")
    assert (page.status_code, "deploys" in page.text) == (200, True)
    assert browser.get("/new-schedule").status_code == 403
    client.post(f"{KEYS}/{made['id']}/rotate", headers=by(ROOT))
    monotonic.at += known_keys.KNOWN_SECONDS
    assert browser.get("/you").headers["Location"].startswith("/sign-in")


def test_whoever_has_a_key_can_take_it_away(processes: list[FlaskClient], monotonic: Monotonic) -> None:
    client, path = processes[0], f"{KEYS}/revoke-leaked"
    leaked, other = make(client), make(client)
    client.post(f"{KEYS}/{leaked['id']}/rotate", json={"overlap_seconds": 600}, headers=by(ROOT))
    wrong = client.post(path, json={"key": leaked["key"][:-40] + other["key"][-40:]})
    assert (wrong.status_code, "none of the stored keys" in wrong.text) == (404, True)
    assert client.post(path, json={"key": ROOT}).status_code == 404
    assert client.post(path, json={"key": leaked["key"]}).status_code == 200
    monotonic.at += known_keys.KNOWN_SECONDS
    assert [status(client, each["key"]) for each in (leaked, other)] == [401, 200]
    assert client.post(path, json={"key": leaked["key"]}).status_code == 404
    assert {client.post(path, json={"key": "guessed"}).status_code for _ in range(10)} == {404, 429}


def test_a_dry_run_makes_no_key(processes: list[FlaskClient], store: Store) -> None:
    body = {"name": "n", "scopes": ["read"]}
    answer = processes[0].post(f"{KEYS}?dry_run=true", json=body, headers=by(ROOT)).get_json()
    assert (answer["dry_run"], answer["key"]) == (True, "********")
    assert store.api_keys.count("default") == 0


def test_a_corrupt_document_opens_nothing_and_harms_no_other(
    processes: list[FlaskClient], store: Store
) -> None:
    client = processes[0]
    sound, bent = make(client), make(client)
    store.mongo.collection("api_keys").update_one({"_id": bent["id"]}, {"$set": {"scopes": "all"}})
    assert [status(client, each["key"]) for each in (sound, bent)] == [200, 401]
    listed = client.get(KEYS, headers=by(ROOT)).get_json()["keys"]
    assert [each["id"] for each in listed] == [sound["id"]]


def test_without_api_keys_a_stored_key_does_what_it_may_and_no_more(client: FlaskClient) -> None:
    body = {"name": "n", "scopes": ["read"]}
    made = json.loads(client.post(KEYS, json=body).text)
    assert status(client, made["key"]) == 200
    assert client.put("/api/v1/schedules/x", json={}, headers=by(made["key"])).status_code == 403
    assert status(client, made["key"][:-1] + "!") == 200  # no key at all: everybody on this machine may
    assert status(client, api_key.new_key(whole_id("default", api_key.new_key_id()))) == 401


def test_beyond_loopback_stored_keys_alone_suffice_and_nobody_gets_in_without_one(
    make_api: Callable[..., Flask], store: Store, time: ToldTime, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = {"api_host": "0.0.0.0"}
    keys = KeyService(store, api_key.new_key)

    def stored(name: str, scopes: Collection[KeyScope], **more: Any) -> str:
        draft = KeyDraft(name, frozenset(scopes), "default", **more)
        return keys.create(draft, Caller("settings", "settings"), time.at)[1]

    stored("of its tenant", ALL_SCOPES)
    stored("reads", (KeyScope.READ,), is_installations=True)
    stored("ends", ALL_SCOPES, is_installations=True, expires_at=time.at + timedelta(seconds=1))
    time.at += timedelta(seconds=1)
    with pytest.raises(SystemExit):
        make_api(**elsewhere)
    said = capsys.readouterr().err
    assert "API_KEYS must be set when API_HOST is 0.0.0.0" in said
    assert "scheduler keys create NAME --admin" in said
    first = stored("first", ALL_SCOPES, is_installations=True)
    client = make_api(**elsewhere).test_client()
    assert client.get("/api/v1/schedules").status_code == 401
    assert client.get("/").headers["Location"].startswith("/sign-in")
    assert status(client, first) == 200
    assert sign_in(client, first).status_code == 303
    assert client.get("/you").status_code == 200


def test_no_path_is_open_because_it_begins_like_an_open_one(processes: list[FlaskClient]) -> None:
    client = processes[0]
    for method, path in (
        ("GET", "revoke-leaked"),
        ("DELETE", "revoke-leaked"),
        ("POST", "revoke-leaked/rotate"),
        ("DELETE", "revoke-leaked-2"),
    ):
        assert client.open(f"{KEYS}/{path}", method=method).status_code == 401, (method, path)


def test_a_key_that_was_replaced_takes_nothing_away_but_itself(
    processes: list[FlaskClient], monotonic: Monotonic, time: ToldTime
) -> None:
    client, path = processes[0], f"{KEYS}/revoke-leaked"
    leaked = make(client)
    rotate = f"{KEYS}/{leaked['id']}/rotate"
    newer = client.post(rotate, json={"overlap_seconds": 600}, headers=by(ROOT)).get_json()
    assert client.post(path, json={"key": leaked["key"]}).status_code == 200
    monotonic.at += known_keys.KNOWN_SECONDS
    assert [status(client, each["key"]) for each in (leaked, newer)] == [401, 200]
    assert client.post(path, json={"key": leaked["key"]}).status_code == 404
    newest = client.post(rotate, json={"overlap_seconds": 60}, headers=by(ROOT)).get_json()
    time.at += timedelta(seconds=61)
    monotonic.at += known_keys.KNOWN_SECONDS
    assert client.post(path, json={"key": newer["key"]}).status_code == 404
    assert status(client, newest["key"]) == 200


def test_what_needs_no_key_has_nothing_written_for_its_idempotency_key(
    processes: list[FlaskClient], store: Store
) -> None:
    client, headers = processes[0], {"Idempotency-Key": "once"}
    unknown = api_key.new_key(whole_id("default", api_key.new_key_id()))
    assert client.post(f"{KEYS}/revoke-leaked", json={"key": unknown}, headers=headers).status_code == 404
    assert client.post("/ping/none-such", headers=headers).status_code == 404
    assert client.post("/sign-in", headers=headers).status_code == 403
    assert store.mongo.collection("idempotency").count_documents({}) == 0


def test_a_sign_in_is_a_use_of_the_key(processes: list[FlaskClient]) -> None:
    client = processes[0]
    made = make(client)
    assert sign_in(client, made["key"]).status_code == 303
    shown = client.get(f"{KEYS}/{made['id']}", headers=by(ROOT)).get_json()
    assert shown["last_used_from"] == "127.0.0.1"

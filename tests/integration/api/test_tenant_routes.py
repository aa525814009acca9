"""Tenants: made, suspended and deleted, and in which one a request acts."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from scheduler_app.api import known_keys
from scheduler_app.clock import clock
from scheduler_app.domain.ids import name_of
from scheduler_app.domain.kill_switch import Scope, Target
from scheduler_app.store import Store
from scheduler_app.usecases.stops import KillSwitchGate
from tests.builders import event, schedule
from tests.integration.api.test_pages_access import sign_in
from tests.integration.api.test_stored_keys import ROOT, Monotonic, by, make

TENANTS = "/api/v1/tenants"
SCHEDULE = {"name": "x", "callback_url": "http://127.0.0.1:9/", "rrule": "FREQ=DAILY"}


@pytest.fixture
def monotonic(monkeypatch: pytest.MonkeyPatch) -> Monotonic:
    told = Monotonic()
    monkeypatch.setattr(known_keys, "monotonic", told)
    return told


@pytest.fixture
def client(make_api: Callable[..., Flask]) -> FlaskClient:
    client = make_api(api_keys=(ROOT,)).test_client()
    client.environ_base["HTTP_X_API_KEY"] = ROOT
    return client


def put(client: FlaskClient, name: str, **fields: Any) -> tuple[int, dict[str, Any]]:
    answer = client.put(f"{TENANTS}/{name}", json=fields)
    return answer.status_code, answer.get_json()


def test_tenants_are_made_changed_and_listed_and_default_is_always_one(client: FlaskClient) -> None:
    assert client.get(TENANTS).get_json() == {"tenants": [{"name": "default", "state": "active"}]}
    status, made = put(client, "acme", note="Zurich")
    assert (status, made["result"], made["state"], made["note"]) == (201, "created", "active", "Zurich")
    assert put(client, "acme", note="Zurich")[1]["result"] == "unchanged"
    status, changed = put(client, "acme", state="suspended")
    assert (status, changed["result"], "note" in changed) == (200, "changed", False)
    assert changed["created_at"] == made["created_at"]
    assert [each["name"] for each in client.get(TENANTS).get_json()["tenants"]] == ["acme", "default"]
    assert client.get(f"{TENANTS}/acme").get_json()["state"] == "suspended"
    assert client.get(f"{TENANTS}/none-such").status_code == 404
    assert put(client, "default", note="ours")[0] == 201


@pytest.mark.parametrize(
    ("name", "fields", "said"),
    [
        ("Acme", {}, "lower-case letters"),
        ("-a", {}, "lower-case letters"),
        ("a" * 64, {}, "lower-case letters"),
        ("default", {"state": "suspended"}, "default cannot be suspended"),
        ("acme", {"state": "gone"}, "state"),
        ("acme", {"limits": {"none_such": 1}}, "none_such"),
        ("acme", {"retention_days": 0}, "retention_days"),
        ("acme", {"retention_days": 1.5}, "retention_days"),
        ("acme", {"retention_days": 31}, "must be 30 at most"),
    ],
)
def test_what_no_tenant_can_be_is_refused(
    client: FlaskClient, name: str, fields: dict[str, Any], said: str
) -> None:
    answer = client.put(f"{TENANTS}/{name}", json=fields)
    assert (answer.status_code, said in answer.text) == (422, True), answer.text


def test_there_is_a_bounded_number_of_tenants(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduler_app.usecases.deeds.api_keys.MAX_TENANTS", 1)
    assert put(client, "acme")[0] == 201
    assert put(client, "globex")[0] == 409
    assert put(client, "acme", note="n")[0] == 200


def test_a_key_of_the_installation_acts_in_the_tenant_that_a_header_names(client: FlaskClient) -> None:
    put(client, "acme")
    in_acme = {"Scheduler-Tenant": "acme"}
    assert client.put("/api/v1/schedules/mine", json=SCHEDULE, headers=in_acme).status_code == 201
    assert client.get("/api/v1/schedules/mine").status_code == 404
    assert client.get("/api/v1/schedules/mine", headers=in_acme).status_code == 200
    refused = client.get("/api/v1/schedules/mine", headers={"Scheduler-Tenant": "globex"})
    assert (refused.status_code, "there is no tenant 'globex'" in refused.text) == (404, True)
    own = make(client, tenant="acme")["key"]
    assert client.get("/api/v1/schedules/mine", headers=by(own)).status_code == 200
    assert client.get("/api/v1/schedules/mine", headers=by(own) | in_acme).status_code == 200
    foreign = client.get("/api/v1/schedules/mine", headers=by(own) | {"Scheduler-Tenant": "default"})
    assert (foreign.status_code, "in the tenant acme alone" in foreign.text) == (403, True)


def test_a_suspended_tenant_s_keys_open_nothing_and_nothing_of_it_is_sent(
    client: FlaskClient, store: Store, monotonic: Monotonic
) -> None:
    now = clock.now()
    put(client, "acme")
    own = make(client, tenant="acme")["key"]
    assert client.get("/api/v1/schedules", headers=by(own)).status_code == 200
    for each in ("acme:s1", "s1"):
        store.schedules.insert(schedule(now, each))
        store.events.insert([event(now, each)], now, "made")
    put(client, "acme", state="suspended")
    monotonic.at += known_keys.KNOWN_SECONDS
    refused = client.get("/api/v1/schedules", headers=by(own))
    assert (refused.status_code, "acme is suspended" in refused.text) == (403, True)
    # Who runs the installation may still look.
    assert client.get("/api/v1/schedules", headers={"Scheduler-Tenant": "acme"}).status_code == 200
    assert store.kill_switches.everybodys().targets == {Target("acme", Scope.ALL)}
    due = store.outbox.due(now + timedelta(seconds=1), limit=9)
    until = now + timedelta(minutes=1)
    passed = KillSwitchGate(store).passed(due, until, now)
    assert {name_of(each.id): each.id for each in passed}.keys() == {each.id for each in passed}
    assert len(passed) == 1
    services = client.application.extensions["scheduler"]
    assert services.held_events.release_page(now) is False
    assert store.holding.keys() == [Target("acme", Scope.ALL).key]
    put(client, "acme")
    services.held_events.release_page(now)
    assert store.holding.keys() == []
    monotonic.at += known_keys.KNOWN_SECONDS
    assert client.get("/api/v1/schedules", headers=by(own)).status_code == 200


def test_a_tenant_is_deleted_with_everything_that_it_has(
    client: FlaskClient, store: Store, monotonic: Monotonic
) -> None:
    put(client, "acme")
    in_acme = {"Scheduler-Tenant": "acme"}
    own = make(client, tenant="acme", scopes=["read", "write", "admin"])["key"]
    other = make(client, scopes=["admin"])["key"]
    browser = client.application.test_client()
    assert sign_in(browser, own).status_code == 303
    for name, status in (("x", 201), ("y", 200)):
        body = SCHEDULE | {"name": name}
        assert client.put("/api/v1/schedules/mine", json=body, headers=by(own)).status_code == status
    for name, confirm, said in (
        ("default", "default", (409, "default is always there")),
        ("globex", "globex", (404, "there is no tenant globex")),
        ("acme", "Acme", (422, "confirm: must be acme")),
        ("acme", None, (422, "confirm: must be acme")),
    ):
        answer = client.delete(f"{TENANTS}/{name}", query_string={"confirm": confirm} if confirm else {})
        assert (answer.status_code, said[1] in answer.text) == (said[0], True), answer.text
    whole = f"{TENANTS}/acme?confirm=acme"
    for key in (own, other):
        assert client.delete(whole, headers=by(key)).status_code == 403
        assert client.get("/api/v1/deletions", headers=by(key)).get_json() == {"deletions": []}
    assert client.delete(f"{whole}&dry_run=true").status_code == 202
    assert client.get(f"{TENANTS}/acme").get_json()["state"] == "active"
    asked = client.delete(whole)
    assert asked.status_code == 202
    deletion = asked.get_json()
    assert (deletion["state"], deletion["tenant"], deletion["counts"]) == ("deleting", "acme", {})
    assert client.delete(whole).get_json() == deletion
    # Its keys, and the header, open nothing; nothing of it is sent; its name is taken.
    monotonic.at += known_keys.KNOWN_SECONDS
    assert client.get("/api/v1/schedules", headers=by(own)).status_code == 403
    assert client.get("/api/v1/schedules", headers=in_acme).status_code == 404
    assert store.kill_switches.everybodys().targets == {Target("acme", Scope.ALL)}
    assert client.get(f"{TENANTS}/acme").get_json()["state"] == "deleting"
    for state in ("active", "suspended"):
        status, refused = put(client, "acme", state=state)
        assert (status, "is being deleted" in refused["detail"]) == (409, True)
    assert put(client, "globex", state="deleting")[0] == 422
    wanted = {"name": "k", "scopes": ["read"], "tenant": "acme"}
    assert client.post("/api/v1/keys", json=wanted).status_code == 422
    duty = client.application.extensions["scheduler"].deletion_duty
    now = clock.now()
    for after in range(0, 120, 5):
        while duty.work_page(now + timedelta(seconds=after)):
            continue
    ended = client.get(f"/api/v1/deletions/{deletion['id']}").get_json()
    assert ended["state"] == "deleted"
    counts = dict(ended["counts"])
    assert counts.pop("audit") > 0
    counts.pop("events", None)
    assert counts == {"schedules": 1, "sessions": 1, "api_keys": 1}
    assert client.get("/api/v1/deletions").get_json() == {"deletions": [ended]}
    assert client.get("/api/v1/deletions/none").status_code == 404
    assert client.get(f"{TENANTS}/acme").status_code == 404
    monotonic.at += known_keys.KNOWN_SECONDS
    assert client.get("/api/v1/schedules", headers=by(own)).status_code == 401
    assert browser.get("/schedules").status_code == 303
    # One made anew has nothing of it.
    assert put(client, "acme")[0] == 201
    assert client.get("/api/v1/schedules", headers=in_acme).get_json()["schedules"] == []
    assert client.get("/api/v1/edits", headers=in_acme).get_json()["edits"] == []


def test_a_corrupt_tenant_is_suspended_and_can_be_set_again(client: FlaskClient, store: Store) -> None:
    put(client, "acme")
    store.mongo.collection("tenants").update_one({"_id": "acme"}, {"$set": {"state": 7}})
    shown = client.get(f"{TENANTS}/acme").get_json()
    assert (shown["state"], "cannot be read" in shown["note"]) == ("suspended", True)
    assert store.kill_switches.everybodys().targets == {Target("acme", Scope.ALL)}
    assert put(client, "acme")[1]["result"] == "changed"
    assert not store.kill_switches.everybodys()


def test_a_browser_of_a_suspended_tenant_signs_in_by_another_key(
    client: FlaskClient, monotonic: Monotonic
) -> None:
    put(client, "acme")
    key, other = make(client, tenant="acme")["key"], make(client)["key"]
    browser = client.application.test_client()
    assert sign_in(browser, key).status_code == 303
    put(client, "acme", state="suspended")
    monotonic.at += known_keys.KNOWN_SECONDS
    assert browser.get("/schedules").status_code == 403
    assert sign_in(browser, other).status_code == 303
    assert browser.get("/schedules").status_code == 200


def test_a_tenant_is_exported_by_itself_without_secrets_and_by_the_installation(client: FlaskClient) -> None:
    put(client, "acme")
    put(client, "globex")
    own = make(client, tenant="acme", scopes=["read", "trigger", "write", "admin"])["key"]
    reader = make(client, tenant="acme", scopes=["read"])["key"]
    body = SCHEDULE | {"headers": {"Authorization": "Bearer of-acme"}}
    assert client.put("/api/v1/schedules/mine", json=body, headers=by(own)).status_code == 201
    for key, path, status in (
        (own, "acme/export", 200),
        (own, "acme/export?secrets=true", 403),
        (own, "globex/export", 403),
        (own, "none-such/export", 403),
        (reader, "acme/export", 403),
        (ROOT, "acme/export", 200),
        (ROOT, "none-such/export", 404),
        (ROOT, "default/export", 200),
    ):
        answer = client.get(f"{TENANTS}/{path}", headers=by(key))
        assert answer.status_code == status, (path, answer.text)
        assert "of-acme" not in answer.text
    whole = client.get(f"{TENANTS}/acme/export?secrets=true", headers=by(ROOT))
    first, *lines, last = map(json.loads, whole.text.splitlines())
    assert (whole.mimetype, first["tenant"], first["secrets"]) == ("application/x-ndjson", "acme", True)
    schedules = [each["document"] for each in lines if each["collection"] == "schedules"]
    assert [each["_id"] for each in schedules] == ["acme:mine"]
    assert "Bearer of-acme" in str(schedules)
    assert (last["end"], last["documents"]["schedules"]) == (True, 1)


def test_everything_with_a_tag_is_deleted_by_who_administers_the_tenant(client: FlaskClient) -> None:
    put(client, "acme")
    own = by(make(client, tenant="acme", scopes=["read", "write", "admin"])["key"])
    writer = by(make(client, tenant="acme", scopes=["read", "write"])["key"])
    tagged = by(make(client, tenant="acme", scopes=["read", "admin"], tags=["customer:a/b"])["key"])
    for name, tags in (("mine", ["customer:a/b"]), ("shared", ["customer:a/b", "x"]), ("other", ["x"])):
        body = SCHEDULE | {"tags": tags}
        assert client.put(f"/api/v1/schedules/{name}", json=body, headers=own).status_code == 201
    which = {"tag": "customer:a/b", "confirm": "customer:a/b"}
    for headers, query, status in (
        (own, {"tag": "customer:a/b"}, 422),
        (own, {"confirm": "customer:a/b"}, 422),
        (own, which | {"confirm": "customer:a"}, 422),
        (own, {"tag": "none", "confirm": "none"}, 404),
        (writer, which, 403),
        (tagged, which, 403),
        ({}, which, 404),
    ):
        assert client.delete("/api/v1/tags", query_string=query, headers=headers).status_code == status
    dry = client.delete("/api/v1/tags", query_string=which | {"dry_run": "true"}, headers=own).get_json()
    assert (dry["dry_run"], dry["found"]["schedules"], dry["found"]["with_other_tags"]) == (True, 2, 1)
    assert client.get("/api/v1/deletions", headers=own).get_json() == {"deletions": []}
    asked = client.delete("/api/v1/tags", query_string=which, headers=own)
    deletion = asked.get_json()
    assert (asked.status_code, deletion["state"], deletion["counts"]) == (202, "deleting", {})
    assert (deletion["tenant"], deletion["tag"]) == ("acme", "customer:a/b")
    assert "found" not in deletion
    work(client)
    shown = f"/api/v1/deletions/{deletion['id']}"
    ended = client.get(shown, headers=own).get_json()
    assert (ended["state"], ended["counts"]["schedules"]) == ("deleted", 2)
    assert client.get(shown, headers={"Scheduler-Tenant": "acme"}).get_json() == ended
    assert client.get(shown).status_code == 404
    assert client.get("/api/v1/deletions").get_json() == {"deletions": [ended]}
    left = client.get("/api/v1/schedules", headers=own).get_json()["schedules"]
    assert [each["id"] for each in left] == ["other"]
    lines = client.get("/api/v1/audit", query_string={"what": "deleted"}, headers=own).get_json()["lines"]
    (line,) = (each for each in lines if each["resource"].startswith("tag/"))
    assert (line["resource"], line["after"]) == ("tag/customer:a/b", {"removed": ended["counts"]})


def test_an_import_is_for_keys_of_the_installation_and_into_a_tenant_that_there_is(
    client: FlaskClient,
) -> None:
    put(client, "acme")
    put(client, "globex")
    own = by(make(client, tenant="acme", scopes=["read", "write", "admin"])["key"])
    assert client.put("/api/v1/schedules/mine", json=SCHEDULE, headers=own).status_code == 201
    lines = client.get(f"{TENANTS}/acme/export?secrets=true").text.splitlines()
    into = f"{TENANTS}/globex/import"
    assert client.post(into, json={"lines": lines}, headers=own).status_code == 403
    assert client.post(f"{TENANTS}/none/import", json={"lines": lines}).status_code == 404
    wrong: list[dict[str, Any]] = [{}, *({"lines": each} for each in ([], ["x"], ["x"] * 1_001, [5]))]
    for body in wrong:
        assert client.post(into, json=body).status_code == 422
    asked = {"lines": [*lines[:1], "x", *lines[1:]]}
    dry = client.post(f"{into}?dry_run=true", json=asked).get_json()
    done = client.post(into, json=asked).get_json()
    assert dry == done | {"dry_run": True}
    assert (done["made"], done["there"], done["refused"]) == ({"schedules": 1}, {}, 1)
    assert (done["refusals"][0]["line"], "is no JSON" in done["refusals"][0]["reason"]) == (2, True)
    again = client.post(into, json=asked).get_json()
    assert (again["made"], again["there"]) == ({}, {"schedules": 1})
    shown = client.get("/api/v1/schedules/mine", headers={"Scheduler-Tenant": "globex"}).get_json()
    assert (shown["state"], shown["note"][:8]) == ("paused", "imported")
    assert client.delete(f"{TENANTS}/globex?confirm=globex").status_code == 202
    assert client.post(into, json=asked).status_code == 409


def work(client: FlaskClient) -> None:
    """What beats do within some minutes."""
    services = client.application.extensions["scheduler"]
    services.store.mongo.collection("schedules").update_many({}, {"$unset": {"unlogged": ""}})
    now = clock.now()
    for after in range(0, 200, 5):
        while services.deletion_duty.work_page(now + timedelta(seconds=after)):
            continue

"""Who has signed in: administrators see them, and end all their sign-ins at once."""

import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from werkzeug.serving import BaseWSGIServer, make_server

from scheduler_app.api import known_keys
from scheduler_app.domain.api_key import ALL_SCOPES
from scheduler_app.domain.ids import WholeId
from scheduler_app.domain.person import Person
from scheduler_app.embedded.server import free_port
from scheduler_app.store import Store
from scheduler_app.store import people as store_people
from tests.integration.api.test_command_line_sign_in import status_of, token_for
from tests.integration.conftest import NOON
from tests.openid_provider import (
    BACK_CHANNEL,
    KEY,
    Browser,
    OpenIdProvider,
    be_patient,
    openid_provider,
    sign_in_settings,
)
from tests.processes import wait_until

PEOPLE = "/api/v1/people"
ROOT = {"X-API-Key": KEY}


@pytest.fixture(autouse=True)
def _nothing_is_known_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_keys, "KNOWN_SECONDS", 0.0)


def people_of(app: Flask, **headers: str) -> list[dict[str, Any]]:
    answer = app.test_client().get(PEOPLE, headers=ROOT | headers)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.get_json()["people"]
    return found


def test_everything_of_one_person_ends_at_once(
    browser: Browser, signing_in: Flask, provider: OpenIdProvider
) -> None:
    browser.sign_in("ann")
    second, other = Browser(signing_in, provider), Browser(signing_in, provider)
    second.sign_in("ann")
    other.sign_in("rob")
    token = token_for(browser, signing_in)
    rob, ann = people_of(signing_in)
    assert (rob["mail"], ann["mail"]) == ("rob@example.com", "ann@example.com")
    assert rob["scopes"] == ["read"]
    client = signing_in.test_client()
    assert client.get(f"{PEOPLE}/{ann['id']}", headers=ROOT).get_json() == ann
    ended = client.delete(f"{PEOPLE}/{ann['id']}/sessions", headers=ROOT)
    assert ended.get_json() == {"ended": 3}
    assert not browser.is_signed_in()
    assert not second.is_signed_in()
    assert status_of(signing_in, token) == 401
    assert other.is_signed_in()
    assert client.delete(f"{PEOPLE}/{ann['id']}/sessions", headers=ROOT).get_json() == {"ended": 0}
    assert client.delete(f"{PEOPLE}/nobody/sessions", headers=ROOT).status_code == 404


def test_the_page_of_people_is_for_administrators(
    browser: Browser, signing_in: Flask, provider: OpenIdProvider
) -> None:
    rob = Browser(signing_in, provider)
    rob.sign_in("rob")
    assert rob.get("/people").status_code == 403
    browser.sign_in("ann")
    page = browser.get("/people").text
    assert page.count('data-test="person"') == 2
    assert page.count('<div class="dim sm">from 127.0.0.1</div>') == 2
    person = next(each for each in people_of(signing_in) if each["mail"] == "rob@example.com")
    assert browser.post("/people/end", "/people", person=person["id"]).status_code == 303
    assert not rob.is_signed_in()


def test_people_of_a_tenant_and_of_the_installation_are_kept_apart(
    browser: Browser, signing_in: Flask, provider: OpenIdProvider
) -> None:
    client = signing_in.test_client()
    assert client.put("/api/v1/tenants/acme", json={}, headers=ROOT).status_code == 201
    theirs, everywhere = Browser(signing_in, provider), Browser(signing_in, provider)
    browser.sign_in("ann")
    theirs.sign_in("acme")
    everywhere.sign_in("root")
    assert {each["mail"] for each in people_of(signing_in)} == {"ann@example.com", "root@example.com"}
    (boss,) = people_of(signing_in, **{"Scheduler-Tenant": "acme"})
    assert boss["tenant"] == "acme"
    token = token_for(browser, signing_in)
    shown = client.get(PEOPLE, headers={"X-API-Key": token}).get_json()["people"]
    assert [each["mail"] for each in shown] == ["ann@example.com"]
    for path in (f"{PEOPLE}/{boss['id']}", f"{PEOPLE}/nobody"):
        assert client.get(path, headers={"X-API-Key": token}).status_code == 404
    root = next(each for each in people_of(signing_in) if each.get("installation"))
    answer = client.delete(f"{PEOPLE}/{root['id']}/sessions", headers={"X-API-Key": token})
    assert answer.status_code == 404
    assert everywhere.is_signed_in()


def test_who_was_seen_longest_ago_is_forgotten(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_people, "MAX_PEOPLE", 2)
    ids = [WholeId(each * 24) for each in "abc"]
    for number, person_id in enumerate(ids):
        seen = NOON + timedelta(minutes=number)
        forgotten = store.people.seen(Person(person_id, "s", ALL_SCOPES, seen, seen))
    assert forgotten == ids[:1]
    assert [each.id for each in store.people.of("default")] == [ids[2], ids[1]]


@pytest.fixture
def told(
    make_api: Callable[..., Flask], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Flask, OpenIdProvider]]:
    """An application that its provider reaches, too."""
    be_patient(monkeypatch)
    port = free_port()
    here = f"http://localhost:{port}"
    with openid_provider(tmp_path, here, f"http://127.0.0.1:{port}{BACK_CHANNEL}") as provider:
        app = make_api(**sign_in_settings(provider))
        server: BaseWSGIServer = make_server("127.0.0.1", port, app, threaded=True)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield app, provider
        finally:
            server.shutdown()
            thread.join()


def test_what_ends_at_the_provider_ends_here(told: tuple[Flask, OpenIdProvider]) -> None:
    """By its own word: nothing here asks it."""
    app, provider = told
    browser, other = Browser(app, provider), Browser(app, provider)
    browser.sign_in("ann")
    other.sign_in("rob")
    token = token_for(browser, app)
    browser.sign_out_there(f"{provider.issuer}/session/end?client_id=scheduler")
    wait_until(lambda: not browser.is_signed_in(), "the session to be over")
    assert status_of(app, token) == 401
    assert other.is_signed_in()
    line = app.test_client().get("/api/v1/audit?what=signed%20out", headers=ROOT).get_json()["lines"][0]
    assert (line["what"], line["who"]["kind"]) == ("signed out", "nobody")


@pytest.mark.parametrize("token", ["", "x", "e30.e30.e30", "x" * 9_000])
def test_nobody_else_ends_sessions_by_the_back_channel(
    browser: Browser, signing_in: Flask, token: str
) -> None:
    browser.sign_in("ann")
    answer = signing_in.test_client().post(BACK_CHANNEL, data={"logout_token": token})
    assert answer.status_code in (400, 413)
    assert browser.is_signed_in()


def test_an_id_token_is_no_logout_token(browser: Browser, signing_in: Flask) -> None:
    browser.sign_in("ann")
    store: Store = signing_in.extensions["scheduler"].store
    row = store.mongo.collection("sessions").find_one({})
    assert row
    id_token = store.person_sessions.tokens_of(row["_id"])["id_token"]
    assert id_token
    client = signing_in.test_client()
    answer = client.post(BACK_CHANNEL, data={"logout_token": id_token})
    assert (answer.status_code, "no logout token" in answer.text) == (400, True)
    assert browser.is_signed_in()
    codes = [client.post(BACK_CHANNEL, data={"logout_token": id_token}).status_code for _ in range(10)]
    assert codes == [400] * 9 + [429]

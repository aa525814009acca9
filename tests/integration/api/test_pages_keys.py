"""Keys and tenants on the pages: a key is shown by the answer to its own form, and by nothing after it."""

import html
import re
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from scheduler_app.api import known_keys
from scheduler_app.store import Store
from tests.integration.api.page_forms import form_token
from tests.integration.api.test_pages_access import sign_in
from tests.integration.api.test_stored_keys import KEYS, ROOT, Monotonic, by, make, monotonic, status

__all__ = ["monotonic"]


@pytest.fixture
def app(make_api: Callable[..., Flask]) -> Flask:
    return make_api(api_keys=(f"root:{ROOT}",))


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    client = app.test_client()
    assert sign_in(client, ROOT).status_code == 303
    return client


def send(client: FlaskClient, path: str, **fields: Any) -> TestResponse:
    return client.post(path, data={"form_token": form_token(client, "/you")} | fields)


def hidden(page: TestResponse, name: str) -> str:
    found = re.search(rf'name="{name}" value="([^"]*)"', page.text)
    assert found is not None
    return html.unescape(found[1])


def shown_key(answer: TestResponse) -> str:
    found = re.search(r'data-test="new-key-text">(rrs_\w+)<', answer.text)
    assert found is not None, answer.text[:2_000]
    return found[1]


def test_a_key_is_made_by_a_form_and_shown_once(client: FlaskClient, store: Store) -> None:
    once = hidden(client.get("/keys"), "once")
    fields = {"name": "deploys", "scopes": ["read", "trigger"], "tags": "a, b", "days": "2", "once": once}
    made = send(client, "/keys", **fields)
    key = shown_key(made)
    assert made.headers["Cache-Control"] == "no-store"
    assert status(client, key) == 403, "it has two tags, and names none"
    assert status(client, key, "/api/v1/schedules?tag=b") == 200
    [kept] = client.get(KEYS, headers=by(ROOT)).get_json()["keys"]
    assert (kept["name"], kept["scopes"], kept["tags"]) == ("deploys", ["read", "trigger"], ["a", "b"])
    assert kept["expires_at"]
    # The answer loaded again sends the form again: no second key, and the secret stays what it was.
    again = send(client, "/keys", **fields)
    assert (again.status_code, again.headers["Location"]) == (303, "/keys?done=created")
    assert store.api_keys.count("default") == 1
    assert status(client, key, "/api/v1/schedules?tag=b") == 200
    page = client.get("/keys").text
    assert key.split("_")[2] not in page
    for said in ("deploys", "root", "run, pause and send again", kept["id"], "127.0.0.1"):
        assert said in page, said


def test_a_key_is_replaced_with_an_overlap_and_deleted(client: FlaskClient, monotonic: Monotonic) -> None:
    old = make(client)
    fields = {"key_id": old["id"], "overlap": "3600", "once": hidden(client.get("/keys"), "once")}
    newer = shown_key(send(client, "/keys/rotate", **fields))
    assert send(client, "/keys/rotate", **fields).headers["Location"] == "/keys?done=saved"
    assert [status(client, each) for each in (old["key"], newer)] == [200, 200]
    assert "the one before" in client.get("/keys").text
    assert send(client, "/keys/delete", key_id=old["id"]).headers["Location"] == "/keys?done=deleted"
    monotonic.at += known_keys.KNOWN_SECONDS
    assert [status(client, each) for each in (old["key"], newer)] == [401, 401]
    assert send(client, "/keys/delete", key_id=old["id"]).status_code == 404


def test_what_is_wrong_with_a_key_stands_beside_its_field(client: FlaskClient) -> None:
    for fields, said in (
        ({"name": "n"}, "wrong-scopes"),
        ({"scopes": ["read"]}, "wrong-name"),
        ({"name": "n", "scopes": ["read"], "tags": "a", "installation": "yes"}, "wrong-tags"),
    ):
        refused = send(client, "/keys", **fields)
        assert (refused.status_code, said in refused.text) == (422, True), refused.text[:500]


def test_who_may_not_manage_keys_sees_no_page_of_them(app: Flask, client: FlaskClient) -> None:
    reader, admin = (make(client, scopes=scopes) for scopes in (["read"], ["read", "admin"]))
    browser = app.test_client()
    assert sign_in(browser, reader["key"]).status_code == 303
    assert "/keys" not in browser.get("/you").text
    for path in ("/keys", "/tenants"):
        assert browser.get(path).status_code == 403
    browser = app.test_client()
    assert sign_in(browser, admin["key"]).status_code == 303
    page = browser.get("/keys").text
    assert "API_KEYS" not in page, "the keys of the settings are the installation's"
    assert 'value="write"' not in page, "nobody gives what he lacks"
    assert 'href="/tenants"' not in page
    assert browser.get("/tenants").status_code == 403
    assert send(browser, "/tenants", name="acme").status_code == 403


def test_a_tenant_is_made_limited_suspended_and_deleted_by_forms(client: FlaskClient) -> None:
    fields = {
        "name": "acme",
        "note": "a customer",
        "requests_per_second": "5",
        "retention_days": "7",
        "delivery_slots": "4",
    }
    assert send(client, "/tenants", **fields).headers["Location"] == "/tenants?done=saved"

    def shown() -> dict[str, Any]:
        found: dict[str, Any] = client.get("/api/v1/tenants/acme", headers=by(ROOT)).get_json()
        return found

    assert (shown()["note"], shown()["limits"]) == (
        "a customer",
        {"requests_per_second": 5.0, "delivery_slots": 4},
    )
    assert shown()["retention_days"] == 7
    assert "7 days" in client.get("/tenants").text
    edit = client.get("/tenants?edit=acme").text
    assert 'value="a customer"' in edit
    assert 'name="requests_per_second" value="5"' in edit
    assert send(client, "/tenants/state", name="acme", state="suspended").status_code == 303
    assert (shown()["state"], shown()["note"], shown()["retention_days"]) == ("suspended", "a customer", 7)
    assert send(client, "/tenants", name="acme", note="another").status_code == 303
    assert (shown()["state"], shown()["note"], shown().get("limits")) == ("suspended", "another", None)
    refused = send(client, "/tenants", name="acme", requests_per_second="many")
    assert (refused.status_code, "wrong-requests_per_second" in refused.text) == (422, True)
    assert send(client, "/tenants", name="Not A Name").status_code == 422
    assert send(client, "/tenants/delete", name="acme", confirm="acmee").status_code >= 400
    assert shown()["state"] == "suspended"
    assert send(client, "/tenants/delete", name="acme", confirm="acme").status_code == 303
    assert shown()["state"] == "deleting"
    assert "Being deleted" in client.get("/tenants").text

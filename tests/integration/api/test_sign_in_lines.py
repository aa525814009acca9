"""The audit has a line of each sign-in of a person, each that is refused, and each end."""

from typing import Any

import pytest
from flask import Flask

from scheduler_app.usecases.deeds import sign_ins
from tests.integration.api.test_command_line_sign_in import END, token_for
from tests.openid_provider import KEY, Browser, OpenIdProvider

ROOT = {"X-API-Key": KEY}
PEOPLE = "/api/v1/people"


def lines(app: Flask, **headers: str) -> list[dict[str, Any]]:
    """Those of sign-ins, the oldest first."""
    answer = app.test_client().get("/api/v1/audit?limit=100", headers=ROOT | headers)
    assert answer.status_code == 200, answer.text
    found = [each for each in answer.get_json()["lines"] if each["resource"].startswith("access/")]
    return found[::-1]


def told(app: Flask, **headers: str) -> list[tuple[str, str, str]]:
    found = lines(app, **headers)
    return [(each["what"], each["who"]["kind"], each["who"].get("name", "")) for each in found]


def person_id(app: Flask) -> str:
    found: str = app.test_client().get(PEOPLE, headers=ROOT).get_json()["people"][0]["id"]
    return found


def test_who_signs_in_and_out_has_lines(browser: Browser, signing_in: Flask) -> None:
    browser.sign_in("ann")
    token = token_for(browser, signing_in)
    assert signing_in.test_client().post(END, json={"token": token}).status_code == 200
    assert signing_in.test_client().post(END, json={"token": token}).status_code == 404
    browser.sign_out()
    browser.sign_in("ann")
    browser.sign_out(everywhere="yes")
    ann = "person", "ann@example.com"
    own = [(what, *ann) for what in ("signed in", "signed in", "signed out", "signed out", "signed in")]
    found = [each for each in told(signing_in) if each[0] != "refused"]
    assert found == [*own, ("signed out everywhere", *ann)]
    assert {each["resource"] for each in lines(signing_in) if each["what"] != "refused"} == {
        f"access/{person_id(signing_in)}"
    }
    assert lines(signing_in)[0]["who"]["address"] == "127.0.0.1"


def test_what_a_person_changes_has_the_person_in_its_line(browser: Browser, signing_in: Flask) -> None:
    browser.sign_in("ann")
    token = token_for(browser, signing_in)
    client = signing_in.test_client()
    body = {"dates": [{"date": "2040-01-02"}]}
    made = client.put("/api/v1/calendars/c1", json=body, headers={"Authorization": f"Bearer {token}"})
    assert made.status_code == 201, made.text
    (line,) = client.get("/api/v1/audit?resource=calendar/c1", headers=ROOT).get_json()["lines"]
    assert line["who"] == {"kind": "person", "name": "ann@example.com", "address": "127.0.0.1"}


def test_who_is_not_let_in_has_one_line_that_says_why(browser: Browser, signing_in: Flask) -> None:
    for _ in range(2):
        assert browser.sign_in("eve").status_code == 403
    (line,) = lines(signing_in)
    assert (line["what"], line["who"]["kind"]) == ("refused", "nobody")
    assert line["resource"] == "access/sign_in.refused"
    assert "no line of OIDC_ROLES" in line["after"]["why"]


def test_refused_sign_ins_of_one_address_are_limited(
    browser: Browser, signing_in: Flask, provider: OpenIdProvider
) -> None:
    assert [browser.sign_in("eve").status_code for _ in range(11)] == [403] * 10 + [429]
    assert Browser(signing_in, provider).sign_in("ann").status_code == 200


def test_whoever_else_ends_a_sign_in_stands_in_its_line(
    browser: Browser, signing_in: Flask, provider: OpenIdProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser.sign_in("rob")
    client, path = signing_in.test_client(), f"{PEOPLE}/{person_id(signing_in)}/sessions"
    for _ in range(2):
        assert client.delete(path, headers=ROOT).status_code == 200
    browser.sign_in("rob")
    monkeypatch.setattr(sign_ins, "CHECK_SECONDS", 0.0)
    provider.change("groups", "nobody")
    assert not browser.is_signed_in()
    rob = "signed in", "person", "rob@example.com"
    by_root, by_provider = ("signed out everywhere", "key", "root"), ("signed out", "scheduler", "")
    assert told(signing_in) == [rob, by_root, rob, by_provider]


def test_another_role_at_a_check_has_a_line_and_the_same_one_none(
    browser: Browser, signing_in: Flask, provider: OpenIdProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert signing_in.test_client().put("/api/v1/tenants/acme", json={}, headers=ROOT).status_code == 201
    browser.sign_in("rob")
    rob = person_id(signing_in)
    monkeypatch.setattr(sign_ins, "CHECK_SECONDS", 0.0)
    assert browser.is_signed_in()
    for groups, tenant in (("ops", "default"), ("ops", "default"), ("acme", "acme")):
        provider.change("groups", groups)
        assert browser.is_signed_in()
        # Whoever lists people sees what is so now, and not what was so at the sign-in.
        in_tenant = ROOT | {"Scheduler-Tenant": tenant}
        (person,) = signing_in.test_client().get(PEOPLE, headers=in_tenant).get_json()["people"]
        assert person["scopes"] == ["read", "trigger", "write", "admin"]
    found = [each for each in lines(signing_in) if each["what"] != "signed in"]
    more, moved = ["admin", "read", "trigger", "write"], "role changed"
    assert [(each["what"], each["resource"]) for each in found] == [(moved, f"access/{rob}")] * 2
    assert [(each["before"], each["after"]) for each in found] == [
        ({"scopes": ["read"]}, {"scopes": more}),
        ({"tenant": "default"}, {"tenant": "acme"}),
    ]
    assert {each["who"]["kind"] for each in found} == {"scheduler"}
    assert told(signing_in, **{"Scheduler-Tenant": "acme"}) == []


def test_lines_of_a_person_of_a_tenant_are_the_tenants(browser: Browser, signing_in: Flask) -> None:
    assert signing_in.test_client().put("/api/v1/tenants/acme", json={}, headers=ROOT).status_code == 201
    browser.sign_in("acme")
    assert told(signing_in) == []
    ((what, kind, _),) = told(signing_in, **{"Scheduler-Tenant": "acme"})
    assert (what, kind) == ("signed in", "person")

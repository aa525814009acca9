"""People sign in with an account of a real OpenID provider: who is let in, and what is refused."""

import urllib.parse
from collections.abc import Callable
from datetime import timedelta

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from scheduler_app.oidc import tokens
from scheduler_app.store import Store
from scheduler_app.usecases.deeds import sign_ins
from tests.integration.api.conftest import ToldTime
from tests.openid_provider import (
    CLIENT_SECRET,
    KEY,
    PUBLIC_URL,
    Browser,
    OpenIdProvider,
    led_to,
)
from tests.processes import PATIENCE_SECONDS


def sees(answer: TestResponse, status: int, test: str) -> None:
    assert answer.status_code == status, answer.text
    assert f'data-test="{test}"' in answer.text, answer.text


def test_somebody_signs_in_and_comes_to_the_page_that_was_asked_for(browser: Browser, store: Store) -> None:
    asked = browser.get("/schedules?tag=a")
    wanted = urllib.parse.parse_qs(urllib.parse.urlsplit(asked.headers["Location"]).query)["next"][0]
    answer = browser.sign_in("ann", wanted)
    assert answer.status_code == 200, answer.text
    assert led_to(answer) == "/schedules?tag=a"
    you = browser.get("/you").text
    assert "ann@example.com" in you
    assert "read, trigger, write, admin" in you
    cookies = answer.headers.getlist("Set-Cookie")
    session = next(each for each in cookies if each.startswith("scheduler_session="))
    assert "HttpOnly" in session
    assert "SameSite=Strict" in session
    flow = next(each for each in cookies if each.startswith("scheduler_flow="))
    assert "Max-Age=0" in flow
    (person,) = store.people.of("default")
    assert (person.mail, person.name, person.subject) == ("ann@example.com", "Ann Onymous", "ann")


def test_a_person_may_do_what_the_lines_give_and_no_more(browser: Browser) -> None:
    browser.sign_in("rob")
    assert browser.get("/schedules").status_code == 200
    assert browser.get("/new-schedule").status_code == 403
    assert browser.post("/new-schedule", "/you", name="n").status_code == 403


@pytest.mark.parametrize("account", ["eve"])
def test_somebody_whom_no_line_gives_anything_is_not_let_in(
    browser: Browser, account: str, store: Store
) -> None:
    """Nor by the address of somebody else, which the provider has not verified."""
    sees(browser.sign_in(account), 403, "refused")
    assert not browser.is_signed_in()
    assert store.people.of("default") == []
    assert store.mongo.collection("sessions").count_documents({}) == 0


def test_somebody_of_a_tenant_that_is_not_there_is_not_let_in(
    browser: Browser, signing_in: Flask, provider: OpenIdProvider
) -> None:
    sees(browser.sign_in("acme"), 403, "refused")
    root = {"X-API-Key": KEY}
    assert signing_in.test_client().put("/api/v1/tenants/acme", json={}, headers=root).status_code == 201
    assert browser.sign_in("acme").status_code == 200
    assert browser.is_signed_in()
    body = {"state": "suspended"}
    assert signing_in.test_client().put("/api/v1/tenants/acme", json=body, headers=root).status_code == 200
    sees(Browser(signing_in, provider).sign_in("acme"), 403, "refused")


@pytest.mark.parametrize(
    "mode",
    [
        *(
            "alg none",
            "wrong nonce",
            "no nonce",
            "wrong audience",
            "two audiences",
            "wrong issuer",
            "expired",
        ),
        *("secret as key", "wrong key"),
    ],
)
def test_a_forged_token_lets_nobody_in(browser: Browser, provider: OpenIdProvider, mode: str) -> None:
    provider.change("mode", mode)
    sees(browser.sign_in("ann"), 403, "refused")
    assert not browser.is_signed_in()
    provider.change("mode")
    assert browser.sign_in("ann").status_code == 200


def test_what_is_sent_back_counts_once_and_in_its_own_browser_alone(
    signing_in: Flask, browser: Browser, provider: OpenIdProvider
) -> None:
    back = browser.visit(browser.leave())
    other = Browser(signing_in, provider)
    sees(other.get(back), 400, "refused")
    other.leave()
    sees(other.get(back), 400, "refused")
    flow = browser.here.get_cookie("scheduler_flow")
    assert flow
    assert browser.get(back).status_code == 200
    assert browser.is_signed_in()
    # The same again: without its cookie, and by who has kept it.
    sees(browser.get(back), 400, "refused")
    thief = Browser(signing_in, provider)
    thief.here.set_cookie("scheduler_flow", flow.value)
    sees(thief.get(back), 403, "refused")
    assert not thief.is_signed_in()


def test_an_answer_of_another_provider_is_refused(browser: Browser) -> None:
    back = browser.visit(browser.leave())
    iss = urllib.parse.quote("http://127.0.0.1:9", safe="")
    there = urllib.parse.parse_qs(back.partition("?")[2])["iss"][0]
    sees(browser.get(back.replace(urllib.parse.quote(there, safe=""), iss)), 403, "refused")


def test_a_session_that_was_there_before_is_not_the_one_of_the_person(browser: Browser) -> None:
    browser.here.set_cookie("scheduler_session", "chosen-by-an-attacker")
    browser.sign_in("ann")
    session = browser.here.get_cookie("scheduler_session")
    assert session
    assert session.value != "chosen-by-an-attacker"


@pytest.mark.parametrize(
    "wanted", ["https://evil.example/", "//evil.example/", "/\\evil.example", "/api/schedules"]
)
def test_a_sign_in_leads_to_no_other_site(browser: Browser, wanted: str) -> None:
    assert led_to(browser.sign_in("ann", wanted)) == "/"


def test_signing_out_ends_it_here_and_there(browser: Browser, store: Store) -> None:
    browser.sign_in("ann")
    url = led_to(browser.sign_out())
    assert not browser.is_signed_in()
    assert store.mongo.collection("sessions").count_documents({}) == 0
    assert browser.sign_out_there(url).startswith(f"{PUBLIC_URL}/sign-in")


def test_signing_out_everywhere_ends_every_session_of_the_person_alone(
    signing_in: Flask, browser: Browser, provider: OpenIdProvider
) -> None:
    second, other = Browser(signing_in, provider), Browser(signing_in, provider)
    for each, account in ((browser, "ann"), (second, "ann"), (other, "rob")):
        each.sign_in(account)
    browser.sign_out(everywhere="yes")
    assert [each.is_signed_in() for each in (browser, second, other)] == [False, False, True]


def test_a_provider_that_is_down_leaves_keys_and_sessions_as_they_are(
    signing_in: Flask, browser: Browser, provider: OpenIdProvider, time: ToldTime
) -> None:
    browser.sign_in("ann")
    late = Browser(signing_in, provider)
    back = late.visit(late.leave())
    provider.stop()
    try:
        sees(late.get(back), 503, "provider-away")
        time.at += timedelta(seconds=sign_ins.CHECK_SECONDS + 1)
        assert browser.is_signed_in()
        signing_in.extensions["scheduler"].sign_ins.provider._discovered_at = float("-inf")
        sees(late.post("/sign-in/provider"), 503, "provider-away")
        assert late.post("/sign-in", key=KEY).status_code == 303
        assert late.is_signed_in()
    finally:
        provider.start()


def test_a_session_goes_on_while_the_provider_says_so(
    browser: Browser, provider: OpenIdProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser.sign_in("ann")
    monkeypatch.setattr(sign_ins, "CHECK_SECONDS", 0.0)
    for _ in range(3):
        assert browser.is_signed_in()
    provider.change("groups", "readers")
    assert browser.get("/new-schedule").status_code == 403
    assert browser.is_signed_in()
    provider.change("remove", "ann")
    try:
        assert not browser.is_signed_in()
        monkeypatch.undo()
        assert not browser.is_signed_in()
    finally:
        provider.change("reset")


def test_a_session_ends_when_its_roles_are_gone(
    browser: Browser, provider: OpenIdProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser.sign_in("rob")
    monkeypatch.setattr(sign_ins, "CHECK_SECONDS", 0.0)
    assert browser.is_signed_in()
    provider.change("groups", "nobody")
    assert not browser.is_signed_in()
    provider.change("groups", "readers")
    assert not browser.is_signed_in()


def test_a_session_ends_with_its_hours(
    make_signing_in: Callable[..., Flask], provider: OpenIdProvider, time: ToldTime
) -> None:
    browser = Browser(make_signing_in(session_hours=1.0), provider)
    browser.sign_in("ann")
    time.at += timedelta(minutes=61)
    assert not browser.is_signed_in()


def test_a_session_ends_with_other_roles(
    make_signing_in: Callable[..., Flask], browser: Browser, provider: OpenIdProvider
) -> None:
    browser.sign_in("ann")
    later = Browser(make_signing_in(oidc_roles="groups=readers=read"), provider)
    session = browser.here.get_cookie("scheduler_session")
    assert session
    later.here.set_cookie("scheduler_session", session.value)
    assert not later.is_signed_in()
    assert browser.is_signed_in()


def test_keys_of_the_provider_may_be_rotated(
    browser: Browser, provider: OpenIdProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "KEYS_AGAIN_SECONDS", PATIENCE_SECONDS)
    assert browser.sign_in("ann").status_code == 200
    provider.change("rotate")
    browser.sign_out()
    assert browser.sign_in("ann").status_code == 200
    # Whoever forges key ids does not make us ask for the keys again and again.
    provider.change("rotate")
    browser.sign_out()
    sees(browser.sign_in("ann"), 403, "refused")
    monkeypatch.setattr(tokens, "KEYS_AGAIN_SECONDS", 0.0)
    assert browser.sign_in("ann").status_code == 200


def test_no_token_and_no_secret_is_kept_in_the_clear(
    signing_in: Flask, browser: Browser, store: Store
) -> None:
    back = browser.visit(browser.leave())
    browser.get(back)
    session = browser.here.get_cookie("scheduler_session")
    assert session
    row = store.mongo.collection("sessions").find_one({})
    assert row
    kept = repr(row)
    code = urllib.parse.parse_qs(back.partition("?")[2])["code"][0]
    issued = signing_in.extensions["scheduler"].store.person_sessions.tokens_of(row["_id"])
    assert issued.keys() == {"id_token", "refresh_token"}
    for secret in (
        session.value,
        CLIENT_SECRET,
        code,
        *issued["id_token"].split("."),
        issued["refresh_token"],
    ):
        assert secret not in kept
    found = store.person_sessions.tokens_of(row["_id"])
    assert found == {}  # sealed by the secret of the client, which this store was not given

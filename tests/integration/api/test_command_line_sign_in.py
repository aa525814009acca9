"""A command line that a person lets in: by a code that the browser brings, or one that the person types."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from scheduler_app.api import known_keys
from scheduler_app.domain.api_key import ALL_SCOPES
from scheduler_app.domain.command_line import challenge_of, new_verifier, typed_code_of
from scheduler_app.domain.person import Grant
from scheduler_app.store import Store
from scheduler_app.store import people as store_people
from scheduler_app.usecases.deeds import sign_ins
from tests.integration.api.conftest import ToldTime
from tests.openid_provider import KEY, Browser, OpenIdProvider, led_to

ASK, TOKEN, END = "/sign-in/command-line", "/api/v1/sign-in/token", "/api/v1/sign-in/end"


@pytest.fixture(autouse=True)
def _nothing_is_known_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_keys, "KNOWN_SECONDS", 0.0)


def let_in(browser: Browser, verifier: str, port: int = 40_000) -> tuple[str, str]:
    """What the browser brings to the port: a code and the state."""
    asked = {"challenge": challenge_of(verifier), "port": str(port), "state": "mine"}
    page = browser.here.get(ASK, query_string=asked)
    assert "Only if you have just begun" in page.text
    url = urlsplit(led_to(browser.post(ASK, "/you", **asked)))
    assert (url.scheme, url.netloc) == ("http", f"127.0.0.1:{port}")
    said = parse_qs(url.query)
    return said["code"][0], said["state"][0]


def redeem(app: Flask, verifier: str, code: str | None = None) -> TestResponse:
    body = {"verifier": verifier} | ({} if code is None else {"code": code})
    return app.test_client().post(TOKEN, json=body)


def token_for(browser: Browser, app: Flask) -> str:
    verifier = new_verifier()
    code, _ = let_in(browser, verifier)
    answer = redeem(app, verifier, code)
    assert answer.status_code == 200, answer.text
    found: str = answer.get_json()["token"]
    return found


def status_of(
    app: Flask, token: str, method: str = "GET", path: str = "/api/v1/calendars", **options: Any
) -> int:
    headers = {"Authorization": f"Bearer {token}"}
    return app.test_client().open(path, method=method, headers=headers, **options).status_code


def test_a_code_lets_the_command_line_in_that_has_its_verifier_and_once(
    browser: Browser, signing_in: Flask
) -> None:
    browser.sign_in("ann")
    verifier = new_verifier()
    code, state = let_in(browser, verifier)
    assert state == "mine"
    answer = redeem(signing_in, verifier, code)
    said = answer.get_json()
    assert said["token"].startswith("rrp_")
    assert said["name"] == "ann@example.com"
    assert status_of(signing_in, said["token"]) == 200
    assert redeem(signing_in, verifier, code).status_code == 404
    # A code without its verifier opens nothing, and is used up.
    code, _ = let_in(browser, verifier)
    assert redeem(signing_in, new_verifier(), code).status_code == 404
    assert redeem(signing_in, verifier, code).status_code == 404


def test_a_typed_code_lets_a_command_line_in_elsewhere(browser: Browser, signing_in: Flask) -> None:
    browser.sign_in("rob")
    verifier = new_verifier()
    assert redeem(signing_in, verifier).status_code == 404
    typed = typed_code_of(challenge_of(verifier))
    wrong = browser.post(ASK, "/you", code="not one")
    assert wrong.status_code == 422
    assert browser.post(ASK, "/you", code=typed.lower().replace("-", " ")).status_code == 200
    assert redeem(signing_in, new_verifier()).status_code == 404
    token = redeem(signing_in, verifier).get_json()["token"]
    assert status_of(signing_in, token) == 200
    assert status_of(signing_in, token, "DELETE", "/api/v1/schedules/x") == 403


def test_a_typed_code_that_others_see_lets_none_of_their_command_lines_in(
    browser: Browser, signing_in: Flask
) -> None:
    browser.sign_in("ann")
    verifier = new_verifier()
    typed = typed_code_of(challenge_of(verifier))
    assert browser.post(ASK, "/you", code=typed).status_code == 200
    assert redeem(signing_in, new_verifier(), typed).status_code == 404
    assert redeem(signing_in, verifier).status_code == 200


def test_a_code_may_be_typed_twice(browser: Browser, signing_in: Flask) -> None:
    browser.sign_in("ann")
    verifier = new_verifier()
    for _ in range(2):
        answer = browser.post(ASK, "/you", code=typed_code_of(challenge_of(verifier)))
        assert answer.status_code == 200, answer.text
    assert redeem(signing_in, verifier).status_code == 200


def test_the_token_of_a_command_line_is_no_session_of_a_browser(browser: Browser, signing_in: Flask) -> None:
    """What it let in would end with it alone, and the provider would not be asked about it."""
    browser.sign_in("ann")
    browser.here.set_cookie("scheduler_session", token_for(browser, signing_in))
    assert not browser.is_signed_in()


def test_a_command_line_that_is_let_in_late_may_do_what_the_provider_says_by_then(
    browser: Browser, signing_in: Flask, provider: OpenIdProvider, time: ToldTime
) -> None:
    browser.sign_in("ann")
    verifier = new_verifier()
    code, _ = let_in(browser, verifier)
    provider.change("groups", "readers")
    try:
        time.at += timedelta(seconds=sign_ins.CHECK_SECONDS)
        token = redeem(signing_in, verifier, code).get_json()["token"]
        assert status_of(signing_in, token) == 200
        assert status_of(signing_in, token, "DELETE", "/api/v1/schedules/x") == 403
        assert browser.get("/new-schedule").status_code == 403
    finally:
        provider.change("reset")


def test_a_command_line_gives_no_other_session_what_its_own_may(browser: Browser, store: Store) -> None:
    browser.sign_in("rob")
    row = store.mongo.collection("sessions").find_one({})
    assert row
    session = store.person_sessions.get(row["_id"])
    assert session
    older = replace(session, id="c", grant=Grant(ALL_SCOPES, None))
    store.person_sessions.open(older, {})
    assert store.person_sessions.get(session.id) == session


def test_a_command_line_is_let_in_by_nobody_but_a_person(browser: Browser, signing_in: Flask) -> None:
    assert browser.get(ASK).status_code == 303
    browser.post("/sign-in", key=KEY)
    assert browser.get(ASK).status_code == 403
    assert browser.post(ASK, "/you", code=typed_code_of("x")).status_code == 403


@pytest.mark.parametrize(
    "wrong", [{"port": "80"}, {"port": "x"}, {"challenge": "x"}, {"next": "http://evil.example"}]
)
def test_a_link_that_asks_for_something_else_is_refused(browser: Browser, wrong: dict[str, str]) -> None:
    browser.sign_in("ann")
    asked = {"challenge": challenge_of(new_verifier()), "port": "40000"} | wrong
    assert browser.here.get(ASK, query_string=asked).status_code in (400, 422)


def test_a_command_line_ends_with_the_sign_in_that_let_it_in(
    browser: Browser, signing_in: Flask, provider: OpenIdProvider
) -> None:
    browser.sign_in("ann")
    other = Browser(signing_in, provider)
    other.sign_in("ann")
    token, others = token_for(browser, signing_in), token_for(other, signing_in)
    verifier = new_verifier()
    code, _ = let_in(browser, verifier)
    browser.sign_out()
    assert status_of(signing_in, token) == 401
    assert status_of(signing_in, others) == 200
    assert redeem(signing_in, verifier, code).status_code == 404


def test_a_command_line_signs_out_by_itself(browser: Browser, signing_in: Flask) -> None:
    browser.sign_in("ann")
    token, other = token_for(browser, signing_in), token_for(browser, signing_in)
    client = signing_in.test_client()
    assert client.post(END, json={"token": token}).status_code == 200
    assert client.post(END, json={"token": token}).status_code == 404
    assert [status_of(signing_in, each) for each in (token, other)] == [401, 200]
    assert browser.is_signed_in()
    # The token of a browser is none of a command line.
    session = browser.here.get_cookie("scheduler_session")
    assert session
    assert client.post(END, json={"token": session.value}).status_code == 404
    assert status_of(signing_in, session.value) == 401


def test_what_waits_to_be_let_in_is_bounded_and_ends(
    browser: Browser, signing_in: Flask, store: Store, time: ToldTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_people, "MAX_GRANTS", 2)
    browser.sign_in("ann")
    verifier = new_verifier()
    code, _ = let_in(browser, verifier)
    let_in(browser, new_verifier())
    assert browser.post(ASK, "/you", code=typed_code_of("x")).status_code == 409
    time.at += timedelta(seconds=store_people.GRANT_SECONDS)
    assert redeem(signing_in, verifier, code).status_code == 404
    assert store.mongo.collection("sign_in_grants").count_documents({}) == 1


def test_a_token_of_a_person_counts_as_the_key_of_a_tenant(
    browser: Browser, signing_in: Flask, provider: OpenIdProvider
) -> None:
    root = {"X-API-Key": KEY}
    assert signing_in.test_client().put("/api/v1/tenants/acme", json={}, headers=root).status_code == 201
    browser.sign_in("acme")
    token = token_for(browser, signing_in)
    body = {"dates": [{"date": "2040-01-02"}]}
    assert status_of(signing_in, token, "PUT", "/api/v1/calendars/theirs", json=body) in (200, 201)
    assert status_of(signing_in, token, path="/api/v1/calendars/theirs") == 200
    assert signing_in.test_client().get("/api/v1/calendars/theirs", headers=root).status_code == 404
    assert status_of(signing_in, token, path="/api/v1/tenants") == 403
    everywhere = Browser(signing_in, provider)
    everywhere.sign_in("root")
    assert status_of(signing_in, token_for(everywhere, signing_in), path="/api/v1/tenants") == 200


def test_wrong_tokens_of_one_address_are_limited(signing_in: Flask) -> None:
    assert [status_of(signing_in, "rrp_guessed") for _ in range(11)] == [401] * 10 + [429]

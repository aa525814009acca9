"""Which proxies are believed when they say who the client is, and whether its connection is https."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from scheduler_app.config import load_settings
from tests.integration.api.page_forms import form_token
from tests.integration.api.test_pages_access import KEY, OTHER_KEY

PROXY, INNER_PROXY, STRANGER = "10.0.0.7", "10.0.0.8", "203.0.113.9"
HTTPS = {"X-Forwarded-Proto": "https"}


class Outside:
    """What one peer of the API sends."""

    def __init__(self, app: Flask, peer: str, headers: Mapping[str, str] = {}) -> None:
        self.client: FlaskClient = app.test_client()
        self.client.environ_base["REMOTE_ADDR"] = peer
        for name, value in headers.items():
            self.client.environ_base[f"HTTP_{name.upper().replace('-', '_')}"] = value

    def sign_in(self, key: str = KEY) -> TestResponse:
        return self.client.post(
            "/sign-in", data={"form_token": form_token(self.client, "/sign-in"), "key": key}
        )

    def cookie(self) -> str:
        answer = self.sign_in()
        assert answer.status_code == 303, answer.text
        found: str = answer.headers["Set-Cookie"]
        return found


@pytest.fixture
def behind(make_api: Callable[..., Flask]) -> Flask:
    return make_api(api_keys=(KEY, OTHER_KEY), trusted_proxies="10.0.0.0/24")


def is_of_https(cookie: str) -> bool:
    named, secure = cookie.startswith("__Host-"), "Secure" in cookie.split("; ")
    assert named is secure, cookie
    return named


@pytest.mark.parametrize(
    ("peer", "headers", "https"),
    [
        (PROXY, HTTPS, True),
        (PROXY, {"X-Forwarded-Proto": "http"}, False),
        (PROXY, {}, False),
        (PROXY, {"Forwarded": 'for="[2001:db8::1]:4711";proto=https'}, True),
        (PROXY, {"Forwarded": "for=unknown;proto=HTTPS"}, True),
        (STRANGER, HTTPS, False),
        (STRANGER, {"Forwarded": "for=10.0.0.7;proto=https"}, False),
        ("127.0.0.1", HTTPS, False),  # other proxies are named, so this one is not believed any more
        # What each of two proxies was told: the outer one ends TLS.
        (INNER_PROXY, {"X-Forwarded-For": f"{STRANGER}, {PROXY}", "X-Forwarded-Proto": "https, http"}, True),
        (INNER_PROXY, {"X-Forwarded-For": f"{STRANGER}, {PROXY}", "X-Forwarded-Proto": "http, https"}, False),
        # The client's own lines come first, and count for nothing.
        (PROXY, {"X-Forwarded-For": f"1.2.3.4, {STRANGER}", "X-Forwarded-Proto": "https, http"}, False),
        (
            PROXY,
            {"X-Forwarded-For": STRANGER, "X-Forwarded-Proto": "http", "Forwarded": "proto=https"},
            False,
        ),
        (f"::ffff:{PROXY}", HTTPS, True),
    ],
    ids=str,
)
def test_cookies_are_those_of_https_where_a_trusted_proxy_says_so(
    behind: Flask, peer: str, headers: dict[str, str], https: bool
) -> None:
    assert is_of_https(Outside(behind, peer, headers).cookie()) is https


@pytest.mark.parametrize(
    ("public_url", "https"), [("https://scheduler.example", True), ("http://scheduler.example", False)]
)
def test_cookies_are_those_of_https_where_the_public_url_is(
    make_api: Callable[..., Flask], public_url: str, https: bool
) -> None:
    outside = Outside(make_api(api_keys=(KEY,), public_url=public_url), STRANGER)
    assert is_of_https(outside.cookie()) is https


def test_a_session_behind_https_works_and_ends(behind: Flask) -> None:
    client = (outside := Outside(behind, PROXY, HTTPS)).client
    outside.sign_in()
    assert client.get("/schedules", base_url="https://localhost").status_code == 200
    token = form_token_of(client)
    ended = client.post("/sign-out", data={"form_token": token}, base_url="https://localhost")
    assert ended.headers["Set-Cookie"].startswith("__Host-scheduler_session=;")
    assert "Secure" in ended.headers["Set-Cookie"]
    assert client.get("/schedules", base_url="https://localhost").status_code == 303


def form_token_of(client: FlaskClient) -> str:
    page = client.get("/schedules", base_url="https://localhost").text
    return page.partition('name="form_token" value="')[2].partition('"')[0]


def test_a_page_of_the_public_url_is_no_foreign_page(make_api: Callable[..., Flask]) -> None:
    client = make_api(public_url="https://scheduler.example").test_client()
    body = {"name": "n", "rrule": "FREQ=DAILY", "callback_url": "http://127.0.0.1:9/"}
    for origin, status in (("https://scheduler.example", 201), ("https://scheduler.example.evil", 403)):
        assert client.post("/api/schedules", json=body, headers={"Origin": origin}).status_code == status


def addresses_of_refused(capsys: pytest.CaptureFixture[str]) -> list[str]:
    written = capsys.readouterr()
    lines = [line for line in (written.out + written.err).splitlines() if "api.key_refused" in line]
    return [line.partition("address=")[2].split()[0].strip("'\"") for line in lines]


@pytest.mark.parametrize("peer", ["127.0.0.1", "::1", PROXY])
def test_nobody_is_believed_where_no_proxy_is_trusted(
    make_api: Callable[..., Flask], capsys: pytest.CaptureFixture[str], peer: str
) -> None:
    trusted = load_settings(environ={"TRUSTED_PROXIES": "none"}).trusted_proxies
    app = make_api(api_keys=(KEY, OTHER_KEY), trusted_proxies=trusted)
    Outside(app, peer, {"X-Forwarded-For": STRANGER}).client.get(
        "/api/schedules", headers={"X-API-Key": "a-wrong-key-entirely"}
    )
    assert addresses_of_refused(capsys) == [peer]


@pytest.mark.parametrize(
    ("peer", "headers", "client"),
    [
        (STRANGER, {"X-Forwarded-For": "1.2.3.4"}, STRANGER),
        (PROXY, {"X-Forwarded-For": f"1.2.3.4, {STRANGER}"}, STRANGER),
        (PROXY, {"X-Forwarded-For": f"{STRANGER}:4711"}, STRANGER),
        (PROXY, {"X-Forwarded-For": f"{STRANGER}, {INNER_PROXY}"}, STRANGER),
        (PROXY, {"X-Forwarded-For": "no address"}, PROXY),
        (PROXY, {"X-Forwarded-For": f"{STRANGER}, unknown"}, PROXY),
        (PROXY, {"Forwarded": f"for=1.2.3.4, For={STRANGER};by={PROXY}"}, STRANGER),
        (PROXY, {"Forwarded": 'for="[2001:db8::1]:4711"'}, "2001:db8::1"),
        (PROXY, {}, PROXY),
    ],
    ids=str,
)
def test_the_client_is_the_first_address_that_is_no_trusted_proxy(
    behind: Flask, capsys: pytest.CaptureFixture[str], peer: str, headers: dict[str, str], client: str
) -> None:
    Outside(behind, peer, headers).client.get("/api/schedules", headers={"X-API-Key": "a-wrong-key-entirely"})
    assert addresses_of_refused(capsys) == [client]


def test_no_route_sees_what_a_stranger_says_in_a_proxy_s_name(behind: Flask) -> None:
    seen: dict[str, Any] = {}
    inner = behind.wsgi_app.app  # type: ignore[attr-defined]

    def note(environ: dict[str, Any], start: Any) -> Any:
        seen.update(environ)
        return inner(environ, start)

    behind.wsgi_app.app = note  # type: ignore[attr-defined]
    said = {
        "X-Forwarded-Host": "evil",
        "X-Forwarded-Prefix": "/x",
        "X-Forwarded-Port": "1",
        "Forwarded": "for=1.2.3.4",
    }
    try:
        for peer in (STRANGER, PROXY):
            seen.clear()
            Outside(behind, peer, said).client.get("/healthz")
            assert not [name for name in seen if "FORWARDED" in name]
    finally:
        behind.wsgi_app.app = inner  # type: ignore[attr-defined]


def test_without_keys_a_forwarded_host_is_no_way_around_the_check_of_the_host(
    make_api: Callable[..., Flask],
) -> None:
    headers = {"Host": "evil.example", "X-Forwarded-Host": "localhost", "Forwarded": "host=localhost"}
    assert make_api().test_client().get("/api/schedules", headers=headers).status_code == 403

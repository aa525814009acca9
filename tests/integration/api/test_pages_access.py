"""Who may see the pages: this machine without keys, sessions with keys; and which forms are theirs."""

from collections.abc import Callable

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from scheduler_app.store import Store
from tests.integration.api.page_forms import form_token

KEY, OTHER_KEY = "a-long-enough-key-1", "a-long-enough-key-2"


def sign_in(client: FlaskClient, key: str, wanted: str = "") -> TestResponse:
    token = form_token(client, "/sign-in")
    return client.post("/sign-in", data={"form_token": token, "key": key, "next": wanted})


@pytest.fixture
def keyed(make_api: Callable[..., Flask]) -> Flask:
    return make_api(api_keys=(KEY, OTHER_KEY))


def test_without_keys_a_foreign_host_is_misdirected(client: FlaskClient) -> None:
    assert client.get("/schedules").status_code == 200
    refused = client.get("/schedules", headers={"Host": "scheduler.example.com"})
    assert refused.status_code == 421
    assert "localhost" in refused.text
    assert refused.mimetype == "text/html"


def test_every_page_and_refusal_forbids_frames_foreign_sources_and_caches(client: FlaskClient) -> None:
    for method, path in page_operations(client.application):
        headers = client.open(path, method=method).headers
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'self'; "), path
        assert "unsafe" not in policy, path
        assert {"frame-ancestors 'none'", "form-action 'self'"} <= set(policy.split("; ")), path
        assert headers["Cache-Control"] == "no-store", path


def test_a_form_without_its_token_changes_nothing(client: FlaskClient) -> None:
    token = form_token(client, "/new-schedule")
    form = {"name": "n", "when": "every day at 9:00", "url": "http://127.0.0.1:9/"}
    for given in (form, form | {"form_token": "0" * 64}, form | {"form_token": "é"}):
        refused = client.post("/new-schedule", data=given)
        assert (refused.status_code, "has expired" in refused.text) == (403, True)
    assert client.get("/api/schedules").json["schedules"] == []  # type: ignore[index]
    assert client.post("/new-schedule", data=form | {"form_token": token}).status_code == 303


def test_the_token_of_one_browser_is_none_of_another(app: Flask) -> None:
    token = form_token(app.test_client(), "/new-schedule")
    other = app.test_client()
    other.get("/")
    assert other.post("/new-schedule", data={"form_token": token}).status_code == 403


def test_a_form_of_another_origin_is_refused(client: FlaskClient) -> None:
    token = form_token(client, "/new-schedule")
    headers = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
    refused = client.post("/new-schedule", data={"form_token": token}, headers=headers)
    assert (refused.status_code, "another origin" in refused.text) == (403, True)


def page_endpoints(app: Flask) -> list[tuple[str, str, str]]:
    """Each method and path of the pages, with an id that nothing has, and the name of its function."""
    found = []
    for rule in app.url_map.iter_rules():
        if rule.endpoint.startswith("pages.") and rule.endpoint != "pages.static":
            _, path = rule.build(dict.fromkeys(rule.arguments, "none-such"), append_unknown=False) or ("", "")
            name = rule.endpoint.removeprefix("pages.")
            found += [
                (method, path, name) for method in sorted((rule.methods or set()) - {"OPTIONS", "HEAD"})
            ]
    assert len(found) > 12
    return found


def page_operations(app: Flask) -> list[tuple[str, str]]:
    """Each method and path of the pages, with an id that nothing has."""
    return [(method, path) for method, path, _ in page_endpoints(app)]


def test_every_form_refuses_other_origins_other_types_and_missing_tokens(client: FlaskClient) -> None:
    token = form_token(client, "/new-schedule")
    foreign = {"Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-site"}
    for path in (path for method, path in page_operations(client.application) if method == "POST"):
        form = {"form_token": token}
        assert "another origin" in client.post(path, data=form, headers=foreign).text, path
        if path == "/sign-in/back-channel":
            # Of the provider itself, which signs what it sends.
            continue
        assert "has expired" in client.post(path, data={}).text, path
        assert client.post(path, json=form).status_code == 403, path


def test_every_page_refuses_parameters_that_it_does_not_take(client: FlaskClient) -> None:
    for path in (path for method, path in page_operations(client.application) if method == "GET"):
        if path == "/sign-in/callback":
            # Providers add parameters of their own.
            continue
        answer = client.get(f"{path}?limt=3")
        assert (answer.status_code, "limt" in answer.text) == (422, True), path


def test_unknown_parameters_and_fields_are_refused(client: FlaskClient) -> None:
    assert client.get("/schedules?colour=red").status_code == 422
    token = form_token(client, "/new-schedule")
    refused = client.post("/new-schedule", data={"form_token": token, "colour": "red"})
    assert (refused.status_code, "colour" in refused.text) == (422, True)


def test_with_keys_every_page_leads_to_the_sign_in_and_back(keyed: Flask) -> None:
    client = keyed.test_client()
    led = client.get("/schedules?tag=a")
    assert (led.status_code, led.headers["Location"]) == (303, "/sign-in?next=/schedules?tag%3Da")
    back = sign_in(client, KEY, "/schedules?tag=a")
    assert (back.status_code, back.headers["Location"]) == (303, "/schedules?tag=a")
    assert client.get("/schedules?tag=a").status_code == 200


def test_a_session_is_no_key_of_the_api(keyed: Flask) -> None:
    client = keyed.test_client()
    sign_in(client, KEY)
    assert client.get("/api/schedules").status_code == 401


def test_the_session_s_cookie_is_out_of_reach_of_scripts_and_of_other_sites(keyed: Flask) -> None:
    cookie = sign_in(keyed.test_client(), KEY).headers["Set-Cookie"]
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))


def test_neither_the_key_nor_the_session_is_stored(keyed: Flask, store: Store) -> None:
    client = keyed.test_client()
    sign_in(client, KEY)
    cookie = client.get_cookie("scheduler_session")
    assert cookie
    stored = repr(list(store.mongo.collection("sessions").find({})))
    assert KEY not in stored
    assert cookie.value not in stored


def test_a_session_that_was_prepared_by_another_is_not_taken_over(keyed: Flask) -> None:
    client = keyed.test_client()
    client.set_cookie("scheduler_session", "fixed")
    assert client.get("/schedules").status_code == 303
    sign_in(client, KEY)
    cookie = client.get_cookie("scheduler_session")
    assert cookie
    assert cookie.value != "fixed"


def test_a_wrong_key_is_refused_and_logged_without_the_key(
    keyed: Flask, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = sign_in(keyed.test_client(), "a-wrong-key-entirely")
    assert (refused.status_code, "does not open anything here" in refused.text) == (401, True)
    written = capsys.readouterr()
    assert "sign_in.refused" in written.out + written.err
    assert "a-wrong-key-entirely" not in written.out + written.err + refused.text


def test_a_sign_out_ends_the_session_also_for_who_has_copied_its_cookie(keyed: Flask) -> None:
    client, copy = keyed.test_client(), keyed.test_client()
    sign_in(client, KEY)
    cookie = client.get_cookie("scheduler_session")
    assert cookie
    copy.set_cookie("scheduler_session", cookie.value)
    assert copy.get("/schedules").status_code == 200
    client.post("/sign-out", data={"form_token": form_token(client, "/schedules")})
    assert copy.get("/schedules").status_code == 303


def test_a_sign_out_everywhere_ends_the_sessions_of_this_key_alone(keyed: Flask) -> None:
    here, elsewhere, other = (keyed.test_client() for _ in range(3))
    for client, key in ((here, KEY), (elsewhere, KEY), (other, OTHER_KEY)):
        sign_in(client, key)
    here.post("/sign-out", data={"form_token": form_token(here, "/schedules"), "everywhere": "yes"})
    assert [client.get("/schedules").status_code for client in (here, elsewhere, other)] == [303, 303, 200]


def test_a_key_that_is_taken_out_of_the_settings_ends_its_sessions(
    keyed: Flask, make_api: Callable[..., Flask]
) -> None:
    client = keyed.test_client()
    sign_in(client, OTHER_KEY)
    cookie = client.get_cookie("scheduler_session")
    assert cookie
    later = make_api(api_keys=(KEY,)).test_client()
    later.set_cookie("scheduler_session", cookie.value)
    assert later.get("/schedules").status_code == 303


@pytest.mark.parametrize(
    "wanted", ["https://evil.example/", "//evil.example/", "/\\evil.example", "/api/schedules", "schedules"]
)
def test_a_sign_in_leads_to_no_other_site(keyed: Flask, wanted: str) -> None:
    assert sign_in(keyed.test_client(), KEY, wanted).headers["Location"] == "/"


def test_a_schedule_whose_id_is_a_word_of_the_pages_has_its_page(
    client: FlaskClient, create: Callable[..., dict[str, object]]
) -> None:
    for word in ("new", "selected"):
        create(id=word, name=f"called {word}")
        assert f"called {word}" in client.get(f"/schedules/{word}").text

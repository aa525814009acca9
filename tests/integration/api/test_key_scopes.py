"""A key does what its scopes allow: each route of the specification and each form, with a key of each scope.
One with the role `read` sees everything but secrets, and changes nothing.
"""

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from docs.reference.house import missing_scope
from scheduler_app.api.blueprint import ApiBlueprint
from scheduler_app.api.pages.access import SCOPES
from scheduler_app.api.scopes import NO_SCOPE
from scheduler_app.config import api_keys
from scheduler_app.domain.api_key import KeyScope
from tests.integration.api.openapi import specification_of
from tests.integration.api.page_forms import form_token
from tests.integration.api.test_doors import UNSAFE, operations
from tests.integration.api.test_pages_access import page_endpoints, page_operations, sign_in

#: Pages and forms that need no scope: they begin and end sign-ins.
OF_SIGN_IN = {
    *("sign_in", "begin_session", "sign_out", "leave_to_sign_in", "finish_sign_in", "end_by_provider"),
    *("ask_for_command_line", "let_command_line_in"),
}
READER, WRITER = "0123456789abcdef-r", "0123456789abcdef-w"


@pytest.fixture
def keyed(make_api: Callable[..., Flask]) -> Flask:
    return make_api(api_keys=(f"eve:{READER}:read", f"ann:{WRITER}:write"))


@pytest.fixture
def made(keyed: Flask) -> str:
    body = {"name": "n", "callback_url": "http://127.0.0.1:9/?t=s3cr3t", "rrule": "FREQ=DAILY"}
    answer = keyed.test_client().post("/api/schedules", json=body, headers={"X-API-Key": WRITER})
    assert answer.status_code == 201, answer.text
    found: str = answer.get_json()["id"]
    return found


@pytest.fixture
def of_each_scope(make_api: Callable[..., Flask], monkeypatch: pytest.MonkeyPatch) -> FlaskClient:
    """Has a key of one scope for each scope, which is `0123456789abcdef-` and its name."""
    for scope in KeyScope:
        monkeypatch.setitem(api_keys._ROLES, scope, frozenset({scope}))
    return make_api(
        api_keys=tuple(f"{each}:0123456789abcdef-{each}:{each}" for each in KeyScope)
    ).test_client()


def test_every_route_of_the_specification_needs_the_scope_that_it_names(of_each_scope: FlaskClient) -> None:
    specification = specification_of(of_each_scope)
    walked: Counter[str] = Counter()
    for path, item in specification["paths"].items():
        for method in ("get", "post", "put", "patch", "delete"):
            if (operation := item.get(method)) is None:
                continue
            needed = operation["x-scope"]
            walked[needed] += 1
            body: Any = None if method == "get" else {}
            url = re.sub(r"{\w+}", "none-such", path)
            for scope in KeyScope:
                answer = of_each_scope.open(
                    url, method=method, json=body, headers={"X-API-Key": f"0123456789abcdef-{scope}"}
                )
                refused = answer.status_code == 403 and f"a key with the scope {needed}," in answer.text
                is_open = needed == NO_SCOPE
                assert refused == (scope != needed and not is_open), (scope, needed, method, url, answer.text)
    assert walked[NO_SCOPE] == 3
    assert walked[KeyScope.READ] > 30
    assert walked[KeyScope.TRIGGER] > 20
    assert walked[KeyScope.WRITE] > 20


def test_what_is_not_in_the_specification_changes_nothing_for_a_reader(keyed: Flask, made: str) -> None:
    client = keyed.test_client()
    for method, path in operations(keyed):
        allowed = path in ("/api/v1/schedules/preview", "/api/v1/keys/revoke-leaked")
        allowed |= path.startswith("/api/v1/sign-in/")
        if method in UNSAFE and not allowed and path.startswith("/api"):
            answer = client.open(path, method=method, json={}, headers={"X-API-Key": READER})
            assert (answer.status_code, "has read: use another" in answer.text) == (403, True), (method, path)
    assert client.get(f"/api/schedules/{made}", headers={"X-API-Key": READER}).status_code == 200
    assert client.get("/metrics", headers={"X-API-Key": READER}).status_code == 200
    assert client.post("/api/nothing-here", headers={"X-API-Key": READER}).status_code == 404
    preview = client.post(
        "/api/schedules/preview", json={"rrule": "FREQ=DAILY"}, headers={"X-API-Key": READER}
    )
    assert preview.status_code == 200


def test_every_form_needs_the_scope_of_its_table(of_each_scope: FlaskClient) -> None:
    for scope in KeyScope:
        client = of_each_scope.application.test_client()
        assert sign_in(client, f"0123456789abcdef-{scope}").status_code == 303
        token = form_token(client, "/new-schedule")
        for method, path, name in page_endpoints(of_each_scope.application):
            if name in OF_SIGN_IN:
                continue
            needed = SCOPES.get(name, KeyScope.READ)
            answer = client.open(
                path, method=method, data={"form_token": token} if method == "POST" else None
            )
            refused = answer.status_code == 403 and f"a key with the scope {needed}," in answer.text
            assert refused == (scope != needed), (scope, needed, method, path, answer.text)


def test_to_delete_and_to_tag_by_the_list_needs_more_than_to_pause(of_each_scope: FlaskClient) -> None:
    sign_in(of_each_scope, f"0123456789abcdef-{KeyScope.TRIGGER}")
    token = form_token(of_each_scope, "/new-schedule")
    for verb, status in (("pause", 303), ("resume", 303), ("delete", 403), ("tag", 403)):
        form = {"form_token": token, "verb": verb, "tag_name": "t"}
        assert of_each_scope.post("/schedules/selected", data=form).status_code == status, verb


def test_a_route_or_a_form_without_a_scope_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TypeError, match="/api/v1/x/y: a route that is no GET names its scope"):
        ApiBlueprint("x", "/api/v1/x", "x").route("/y", methods=["POST"])
    assert missing_scope() is None
    monkeypatch.delitem(SCOPES, "cancel")
    assert missing_scope() == "/events/<event:event_id>/cancel: a form needs a scope in api/pages/access.py"


def test_the_pages_show_a_reader_no_form_but_those_of_its_session(keyed: Flask, made: str) -> None:
    client = keyed.test_client()
    assert sign_in(client, READER).status_code == 303
    client_of_ann = keyed.test_client()
    client_of_ann.put(
        "/api/destinations/crm", json={"url": "http://127.0.0.1:9/?t=s3cr3t"}, headers={"X-API-Key": WRITER}
    )
    message = {"destination": "crm", "payload": "s3cr3t", "delay_seconds": 3_600, "id": "m"}
    client_of_ann.post("/api/messages", json=message, headers={"X-API-Key": WRITER})
    client_of_ann.put("/api/kill-switch", json={"tag": "t"}, headers={"X-API-Key": WRITER})
    night = {"cron": "0 1 * * *", "duration_seconds": 60, "all": True}
    client_of_ann.put("/api/blackouts/night", json=night, headers={"X-API-Key": WRITER})
    reading = {"/", "/schedules", f"/schedules/{made}", "/events", "/events/msg_m", "/dead-letters"}
    reading |= {"/destinations", "/messages", "/calendar", "/calendars", "/processes", "/forecast", "/go"}
    reading |= {"/stops", "/calendar?view=hours", f"/schedules/{made}?from=2026-01-01"}
    writing = {"/new-schedule", f"/schedules/{made}/edit", "/new-destination", "/destinations/crm/edit"}
    writing |= {"/changes", "/changes/export", "/new-message", "/new-calendar", "/keys", "/tenants"}
    writing |= {"/people", "/sign-in/command-line", "/events/send-again", "/tags/delete"}
    reading |= {"/you", "/failures", "/notifications", "/heartbeats", "/ledger"}
    reading |= {"/tags?tag=billing", "/calendar-feeds"}
    others = {
        "/sign-in",
        "/sign-in/callback",
        "/dead-letters/export",
        "/events/export",
        "/overview/now-and-next",
        "/ledger/export",
    }
    whole = {path for method, path in page_operations(keyed) if method == "GET" and "none-such" not in path}
    assert whole == whole & ({path.partition("?")[0] for path in reading} | writing) | others, (
        "every page is one of these"
    )
    for path in sorted(reading):
        page = client.get(path)
        assert page.status_code == 200
        assert "s3cr3t" not in page.text
        posting = set(re.findall(r'<form method="post" action="([^"]*)"', page.text))
        assert posting == {"/sign-out"} | ({"/you"} if path == "/you" else set()), path
        assert "hx-post" not in page.text
        assert not re.search(r'href="[^"]*(/new-|/edit)', page.text), path
    for path in sorted(writing):
        assert client.get(path).status_code == 403, path


def test_the_pages_refuse_a_reader_every_form(keyed: Flask) -> None:
    client = keyed.test_client()
    sign_in(client, READER)
    token = form_token(client, "/")
    for method, path, name in page_endpoints(keyed):
        if (
            method == "POST"
            and name not in OF_SIGN_IN
            and path not in ("/you", "/new-schedule/preview", "/new-schedule/pick")
        ):
            answer = client.post(path, data={"form_token": token})
            assert (answer.status_code, "has read: use another" in answer.text) == (403, True), path


def test_a_writer_by_its_name_may_do_everything(keyed: Flask, made: str) -> None:
    client: FlaskClient = keyed.test_client()
    answer: Any = client.post(f"/api/schedules/{made}/pause", headers={"X-API-Key": WRITER})
    assert answer.status_code == 200

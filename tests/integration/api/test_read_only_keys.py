"""A key with the role `read` sees everything but secrets, and changes nothing, by the API or by the pages."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from tests.integration.api.page_forms import form_token
from tests.integration.api.test_doors import UNSAFE, operations
from tests.integration.api.test_pages_access import page_operations, sign_in

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


def test_the_api_refuses_a_reader_every_unsafe_method(keyed: Flask, made: str) -> None:
    client = keyed.test_client()
    tried = 0
    for method, path in operations(keyed):
        if method in UNSAFE and path != "/api/v1/schedules/preview" and path.startswith("/api"):
            answer = client.open(path, method=method, json={}, headers={"X-API-Key": READER})
            assert (answer.status_code, "may only read" in answer.text) == (403, True), (method, path)
            tried += 1
    assert tried > 20
    assert client.get(f"/api/schedules/{made}", headers={"X-API-Key": READER}).status_code == 200
    preview = client.post(
        "/api/schedules/preview", json={"rrule": "FREQ=DAILY"}, headers={"X-API-Key": READER}
    )
    assert preview.status_code == 200


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
    writing |= {"/new-message"}
    others = {"/sign-in", "/dead-letters/export", "/forecast/next-day"}
    whole = {path for method, path in page_operations(keyed) if method == "GET" and "none-such" not in path}
    assert whole == whole & (reading | writing) | others, "every page is one of these"
    for path in sorted(reading):
        page = client.get(path)
        assert page.status_code == 200
        assert "s3cr3t" not in page.text
        posting = set(re.findall(r'<form method="post" action="([^"]*)"', page.text))
        assert posting == {"/sign-out"}, path
        assert "hx-post" not in page.text
        assert not re.search(r'href="[^"]*(/new-|/edit)', page.text), path
    for path in sorted(writing):
        assert client.get(path).status_code == 403, path


def test_the_pages_refuse_a_reader_every_form(keyed: Flask) -> None:
    client = keyed.test_client()
    sign_in(client, READER)
    token = form_token(client, "/")
    for method, path in page_operations(keyed):
        if method == "POST" and path not in (
            "/sign-in",
            "/sign-out",
            "/new-schedule/preview",
            "/new-schedule/pick",
        ):
            answer = client.post(path, data={"form_token": token})
            assert (answer.status_code, "may only read" in answer.text) == (403, True), path


def test_a_writer_by_its_name_may_do_everything(keyed: Flask, made: str) -> None:
    client: FlaskClient = keyed.test_client()
    answer: Any = client.post(f"/api/schedules/{made}/pause", headers={"X-API-Key": WRITER})
    assert answer.status_code == 200

"""What a wrong request is answered with: a problem that names the field and the remedy."""

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

GOOD = {"name": "n", "callback_url": "http://127.0.0.1:9/", "rrule": "FREQ=DAILY"}
SCHEDULES = "/api/schedules"


@pytest.fixture
def client(shared_client: FlaskClient) -> FlaskClient:
    return shared_client


def check(answer: TestResponse, status: int, pointer: str | None, remedy: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.mimetype == "application/problem+json"
    problem = answer.get_json()
    assert (problem["status"], problem["type"]) == (status, "about:blank")
    assert problem["title"]
    assert remedy in problem["detail"]
    if pointer is not None:
        assert pointer in [error["pointer"] for error in problem["errors"]], problem


@pytest.mark.parametrize(
    ("fields", "pointer", "remedy"),
    [
        ({"colour": "red"}, "/colour", "Unknown field"),
        ({"name": 7}, "/name", "must be text"),
        ({"name": ""}, "/name", "Length"),
        ({"name": "x" * 201}, "/name", "200"),
        ({"name": "a\x1b[31m"}, "/name", "U+001B"),
        ({"name": "a\nb"}, "/name", "U+000A"),
        ({"name": "a\x9bm"}, "/name", "U+009B"),
        ({"name": "\u202egnp.exe"}, "/name", "bidirectional"),
        ({"name": "a\u2066b"}, "/name", "U+2066"),
        ({"tags": ["fine", "a\x7f"]}, "/tags/1", "U+007F"),
        ({"tags": ["a\u200f"]}, "/tags/0", "U+200F"),
        ({"callback_url": "ftp://example.com/"}, "/callback_url", "http"),
        ({"callback_url": "http://example.com:6379/"}, "/callback_url", "CALLBACK_DENIED_PORTS"),
        ({"callback_url": "http://user:pw@example.com/"}, "/callback_url", "user"),
        ({"method": "NOPE"}, "/method", "GET"),
        ({"headers": {"Host:": "x"}}, "/headers", "not the name of a header"),
        ({"headers": {"X": "a\r\nEvil: 1"}}, "/headers", "line ends"),
        ({"headers": {"Connection": "close"}}, "/headers", "belongs to the connection"),
        ({"headers": {"Authorization": "********"}}, "/headers", "give the real one"),
        ({"rrule": "NOT A RULE"}, "/rrule", "RRULE"),
        ({"rrule": "FREQ=DAILY;INTERVAL=0"}, "/rrule", "INTERVAL"),
        ({"timezone": "Mars/Phobos"}, "/timezone", "Mars/Phobos"),
        ({"gap": "jump"}, "/gap", "shift"),
        ({"rrule": None}, "/rrule", "run_at"),
        ({"rrule": None, "run_at": "2031-01-01T00:00:00"}, "/run_at", "offset"),
        ({"rrule": None, "run_at": "2001-01-01T00:00:00Z"}, "/run_at", "past"),
        ({"run_at": "2031-01-01T00:00:00Z"}, "/run_at", "not both"),
        ({"max_retries": 51}, "/max_retries", "50"),
        ({"max_retries": True}, "/max_retries", "whole number"),
        ({"timeout_seconds": 0}, "/timeout_seconds", "0.1"),
        ({"timeout_seconds": 301}, "/timeout_seconds", "300"),
        ({"success_codes": [42]}, "/success_codes", "HTTP status"),
        ({"retry_backoff_seconds": 60, "retry_backoff_max_seconds": 1}, "/retry_backoff_max_seconds", "less"),
        ({"body": "a", "json": {}}, "/json", "give one of"),
        ({"body_base64": "%"}, "/body_base64", "base64"),
        ({"body": "x" * (256 * 1024 + 1)}, "/body", "256 KiB"),
        ({"id": "no spaces"}, "/id", "hyphens"),
        ({"id": "bulk"}, "/id", "take another"),
        ({"tags": [""]}, "/tags/0", "Length"),
        ({"signing": "yes"}, "/signing", "true or false"),
    ],
)
def test_a_field_that_is_wrong_is_named(
    client: FlaskClient, fields: dict[str, Any], pointer: str, remedy: str
) -> None:
    check(client.post(SCHEDULES, json=GOOD | fields), 422, pointer, remedy)


def test_a_name_in_any_script_and_with_emoji_is_accepted(client: FlaskClient) -> None:
    for name in ("Sicherung täglich", "نسخ احتياطي", "גיבוי", "备份", "👩\u200d💻", "می\u200cخواهم"):
        made = client.post(SCHEDULES, json=GOOD | {"name": name, "tags": [name]})
        assert made.status_code == 201, made.text
        changed = client.put(f"{SCHEDULES}/{made.get_json()['id']}", json={"name": "a\u202eb"})
        check(changed, 422, "/name", "U+202E")


def test_what_is_wrong_with_a_rule_is_named_once_and_as_it_was_written(client: FlaskClient) -> None:
    begins = {
        ("timezone", "mars/phobos"): "timezone: 'mars/phobos' is not an IANA time zone; ",
        ("rrule", "every day"): "rrule: 'every day' is not a recurrence rule",
        ("rrule", "freq=dayly"): "rrule: FREQ: dayly is not a frequency; ",
        ("rrule", "0 9 * * *"): "rrule: '0 9 * * *' is a cron expression; give it as the field cron",
    }
    for (field, value), words in begins.items():
        problem = client.post(SCHEDULES, json=GOOD | {field: value}).get_json()
        assert problem["detail"].startswith(words)
        assert problem["errors"][0]["pointer"] == f"/{field}"


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[1,", b'{"a": NaN}', b'{"a": 1e999}', b'"\\ud800"', b"\xff", b"[" * 200_000]
)
def test_what_is_no_json_is_a_400(client: FlaskClient, body: bytes) -> None:
    check(client.post(SCHEDULES, data=body, content_type="application/json"), 400, None, "the body")


@pytest.mark.parametrize("body", [b"[]", b"1", b"null", b'"text"'])
def test_json_that_is_no_object_is_a_422(client: FlaskClient, body: bytes) -> None:
    check(client.post(SCHEDULES, data=body, content_type="application/json"), 422, None, "")


def test_a_body_that_is_not_json_is_a_415(client: FlaskClient) -> None:
    check(client.post(SCHEDULES, data="name=x", content_type="text/plain"), 415, None, "application/json")


def test_a_body_that_is_too_large_is_a_413(client: FlaskClient) -> None:
    large = GOOD | {"name": "x" * (1024 * 1024)}
    check(client.post(SCHEDULES, json=large), 413, None, "1 MiB")
    check(client.post(SCHEDULES, json=large, headers={"Idempotency-Key": "k"}), 413, None, "1 MiB")


def test_an_unknown_path_and_an_unknown_id_are_a_404(client: FlaskClient) -> None:
    check(client.get("/api/nothing"), 404, None, "openapi")
    for method, path in (
        ("GET", "/x"),
        ("PUT", "/x"),
        ("DELETE", "/x"),
        ("POST", "/x/pause"),
        ("POST", "/x/resume"),
        ("POST", "/x/trigger"),
        ("GET", "/x/preview"),
        ("POST", "/x/signing-secret"),
        ("DELETE", "/x/signing-secret"),
        ("GET", "/x/events/pending"),
        ("GET", "/x/events/history"),
    ):
        body = {"name": "n"} if method == "PUT" else None
        check(client.open(SCHEDULES + path, method=method, json=body), 404, None, "no schedule x")
    for method, path in (("GET", ""), ("POST", "/cancel"), ("POST", "/redrive")):
        check(client.open(f"/api/events/x{path}", method=method), 404, None, "no event x")


def test_a_method_that_a_path_does_not_know_is_a_405_with_those_it_knows(client: FlaskClient) -> None:
    answer = client.patch(SCHEDULES)
    check(answer, 405, None, "does not take PATCH, but")
    assert {"GET", "POST"} <= {method.strip() for method in answer.headers["Allow"].split(",")}


def test_a_wrong_key_is_a_401(make_api: Callable[..., Flask]) -> None:
    client = make_api(api_keys=("a-key-of-16-letters",)).test_client()
    for headers in (
        {},
        {"X-API-Key": "another-key-of-16"},
        {"Authorization": "Bearer no"},
        {"X-API-Key": "é"},
    ):
        answer = client.get(SCHEDULES, headers=headers)
        check(answer, 401, None, "X-API-Key")
        assert answer.headers["WWW-Authenticate"] == "Bearer"
    for headers in ({"X-API-Key": "a-key-of-16-letters"}, {"Authorization": "Bearer a-key-of-16-letters"}):
        assert client.get(SCHEDULES, headers=headers).status_code == 200


def test_without_keys_a_foreign_name_for_this_machine_is_a_403(client: FlaskClient) -> None:
    check(client.get(SCHEDULES, headers={"Host": "evil.example"}), 403, None, "localhost")


@pytest.mark.parametrize(
    ("query", "pointer", "remedy"),
    [
        ("limit=0", "/limit", "1"),
        ("limit=501", "/limit", "500"),
        ("limit=x", "/limit", "whole number"),
        ("page=0", "/page", "1"),
        ("page=1000&limit=500", "/page", "cursor"),
        ("cursor=%20", "/cursor", "next_cursor"),
        ("cursor=bm8", "/cursor", "next_cursor"),
        ("cursor=OTk5OTk5OTk5OTk5OTk5Lng", "/cursor", "next_cursor"),
        ("cursor=MS54&page=2", "/page", "not both"),
        ("state=lost", "/state", "completed"),
        ("schedule_id=a%20b", "/schedule_id", "hyphens"),
        ("from=yesterday", "/from", "instant"),
        ("to=2026-01-01T00:00:00", "/to", "offset"),
        ("from=2026-01-01T00:00:00+01:00", "/from", "write %2B for +"),
        ("sort=up", "/sort", "Unknown"),
    ],
)
def test_a_wrong_parameter_of_a_list_is_named(
    client: FlaskClient, query: str, pointer: str, remedy: str
) -> None:
    check(client.get(f"/api/events?{query}"), 422, pointer, remedy)


@pytest.mark.parametrize(
    ("field", "remedy"),
    [
        ("url", "use callback_url"),
        ("callbackUrl", "use callback_url"),
        ("Callback-URL", "use callback_url"),
        ("calback_url", "use callback_url"),
        ("payload", "use json for a JSON value, or body for text"),
        ("data", "use json"),
        ("delay", "use delay_seconds"),
        ("scheduledAt", "use run_at, an instant"),
        ("crontab", "use cron"),
        ("schedule", "use phrase"),
        ("timeZone", "use timezone"),
        ("retries", "use max_retries"),
        ("timeout", "use timeout_seconds"),
        ("tag", "use tags"),
    ],
)
def test_a_field_by_another_name_is_answered_with_its_own(
    client: FlaskClient, field: str, remedy: str
) -> None:
    answer = client.post(SCHEDULES, json=GOOD | {field: "x"})
    check(answer, 422, f"/{field}", remedy)
    for said in (answer.get_json()["detail"], answer.get_json()["errors"][0]["detail"]):
        assert said.count(field) <= 1 + remedy.count(field), "no doubled prefix"


def test_what_is_given_under_another_name_is_not_said_to_be_missing(client: FlaskClient) -> None:
    answer = client.post(SCHEDULES, json={"title": "n", "url": "http://127.0.0.1:9/", "crontab": "0 9 * * *"})
    assert {error["pointer"] for error in answer.get_json()["errors"]} == {"/title", "/url", "/crontab"}
    check(client.post(SCHEDULES, json={"name": "n"}), 422, "/callback_url", "callback_url: is missing")


def test_no_prefix_is_doubled_and_a_method_s_refusal_names_the_others(client: FlaskClient) -> None:
    check(client.post(SCHEDULES, json=GOOD | {"timezone": "CET+1"}), 422, "/timezone", "timezone: 'CET+1' is")
    check(client.patch(f"{SCHEDULES}/x", json={}), 405, None, "does not take PATCH, but ")
    check(client.post(SCHEDULES, json=GOOD | {"method": "post"}), 422, "/method", "in capital letters")


def test_a_body_that_is_json_is_sent_to_its_field(client: FlaskClient) -> None:
    check(client.post(SCHEDULES, json=GOOD | {"body": {"a": 1}}), 422, "/body", "as json instead")
    check(client.post(SCHEDULES, json=GOOD | {"nonsense": 1}), 422, "/nonsense", "Unknown field")


def test_an_address_that_callbacks_must_not_reach_is_refused_at_once_with_the_setting(
    make_api: Callable[..., Flask],
) -> None:
    client = make_api(callback_allowed_networks="192.168.0.0/16").test_client()
    made = client.post(SCHEDULES, json=GOOD | {"callback_url": "http://192.168.1.1/"})
    assert made.status_code == 201
    path = f"{SCHEDULES}/{made.get_json()['id']}"
    literals = ("10.0.0.1", "169.254.169.254", "[::1]", "[::ffff:10.1.1.1]", "127.1", "0x7f000001")
    for host in (*literals, "localhost", "a.localhost."):
        given = {"callback_url": f"http://{host}:8000/x"}
        check(client.post(SCHEDULES, json=GOOD | given), 422, "/callback_url", "CALLBACK_ALLOWED_NETWORKS")
        check(client.put(path, json=given), 422, "/callback_url", "CALLBACK_ALLOWED_NETWORKS")
        bulk = client.post(f"{SCHEDULES}/bulk", json={"schedules": [GOOD | given]}).get_json()["results"]
        assert bulk[0]["problem"]["errors"][0]["pointer"] == "/callback_url"
    for host in ("name.internal", "8.8.8.8", "[2606:4700::1111]", "1.example"):
        assert client.put(path, json={"callback_url": f"http://{host}/"}).status_code == 200, host
    open_to_loopback = make_api(callback_allowed_networks="127.0.0.0/8").test_client()
    local = GOOD | {"callback_url": "http://localhost:9/"}
    assert open_to_loopback.post(SCHEDULES, json=local).status_code == 201


def test_an_id_is_a_schedule_s_alone_while_it_is_there(
    client: FlaskClient, create: Callable[..., dict[str, Any]]
) -> None:
    create(id="mine")
    check(client.post(SCHEDULES, json=GOOD | {"id": "mine"}), 409, None, "change it by PUT")

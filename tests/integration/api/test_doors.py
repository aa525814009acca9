"""What no route gets to see: requests of foreign pages, what no route declares, and the same thing twice."""

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.integration.api.openapi import specification_of

SCHEDULES = "/api/schedules"
GOOD = {"name": "n", "callback_url": "http://127.0.0.1:9/", "rrule": "FREQ=DAILY"}
KEY = "a-key-of-16-letters"
UNSAFE = ("POST", "PUT", "PATCH", "DELETE")


@pytest.fixture
def client(shared_client: FlaskClient) -> FlaskClient:
    return shared_client


def operations(app: Flask) -> list[tuple[str, str]]:
    """Every method and path of the URL map, with ids of things that do not exist."""
    found = []
    for rule in app.url_map.iter_rules():
        ids = {name: "none-such" if name != "name" else "favicon-32x32.png" for name in rule.arguments}
        ids |= {"status": "200"} if rule.endpoint == "echo" else {}
        _, path = rule.build(ids, append_unknown=False) or ("", "")
        # Those of the pages answer with pages: `test_pages_access` asks them the same. The receiver, and the
        # secret URLs of heartbeats, take whatever they are sent.
        apart = rule.endpoint in ("echo", "ping") or rule.endpoint.startswith("pages.")
        if path and not path.startswith("/static/") and not apart:
            found += [(method, path) for method in sorted((rule.methods or set()) - {"OPTIONS", "HEAD"})]
    assert len(found) > 25
    return found


def refused(answer: TestResponse, status: int, *words: str) -> None:
    # Errors of /tasks have a form of their own.
    of_task = answer.request.path.startswith("/tasks")
    status = 400 if of_task and status == 422 else status
    assert answer.status_code == status, (answer.request.path, answer.text)
    assert answer.mimetype == ("application/json" if of_task else "application/problem+json")
    for word in words:
        assert word in answer.get_json()["error" if of_task else "detail"], answer.text


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-site"},
        {"Origin": "http://localhost", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "null"},
        {"Origin": "http://localhost.evil.example"},
        {"Origin": "http://[::1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
def test_a_foreign_page_may_change_nothing(
    client: FlaskClient, make_api: Callable[..., Flask], headers: dict[str, str]
) -> None:
    for method, path in operations(client.application):
        if method in UNSAFE:
            answer = client.open(path, method=method, headers=headers, data=b"x", content_type="text/plain")
            refused(answer, 403, "page of another origin", "from a program", "Host header")
    for method in UNSAFE:
        refused(client.open("/nothing-here", method=method, headers=headers), 403)
    if headers == {"Origin": "null"}:
        guarded = make_api(api_keys=(KEY,)).test_client()
        refused(guarded.post(SCHEDULES, json=GOOD, headers=headers | {"X-API-Key": KEY}), 403)
    assert client.get(SCHEDULES, headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("host", "headers"),
    [
        ("localhost", {}),  # a program
        ("localhost:8080", {"Origin": "http://localhost:8080", "Sec-Fetch-Site": "same-origin"}),
        ("localhost:8080", {"Origin": "http://LOCALHOST:8080"}),
        ("127.0.0.1", {"Origin": "http://127.0.0.1"}),
        ("[::1]:8080", {"Origin": "http://[::1]:8080"}),
        ("localhost", {"Origin": "https://localhost"}),  # a proxy ended TLS
        ("localhost:443", {"Origin": "https://localhost"}),
        ("localhost:8080", {"Origin": "https://scheduler.example", "Sec-Fetch-Site": "same-origin"}),
        ("localhost", {"Sec-Fetch-Site": "none"}),
    ],
)
def test_the_own_page_and_programs_may(client: FlaskClient, host: str, headers: dict[str, str]) -> None:
    answer = client.post(SCHEDULES, json=GOOD, headers=headers | {"Host": host})
    assert answer.status_code == 201, answer.text


def test_a_body_must_be_declared_as_json_and_be_one_that_the_path_takes(client: FlaskClient) -> None:
    made = client.post(SCHEDULES, json=GOOD).get_json()["id"]
    for method, path in operations(client.application):
        if method in UNSAFE:
            for content_type in ("text/plain", "application/x-www-form-urlencoded", None):
                answer = client.open(path, method=method, data=b"{}", content_type=content_type)
                refused(answer, 415, "application/json")
    resume = f"{SCHEDULES}/{made}/resume"
    refused(client.post(resume, json={"reason": "holiday"}), 422, "reason: Unknown field", "takes no body")
    refused(client.post(resume, json=[1]), 422, "takes no body")
    refused(client.post(resume, data=b"{", content_type="application/json"), 400, "not well-formed")
    for body in (b"", b"{}", b"null"):  # the client of this project sends {}
        assert client.post(resume, data=body, content_type="application/json").status_code == 200
    assert client.post(resume, content_type="application/x-www-form-urlencoded").status_code == 200


def test_an_unknown_parameter_is_refused_on_every_route_of_the_url_map(client: FlaskClient) -> None:
    # The manual is files, whose pages write the queries (`test_manual`).
    manual = {rule.rule.partition("<")[0] for rule in client.application.url_map.iter_rules("manual")}
    assert manual == {"/docs/"}
    described = ("/docs/openapi.yml", "/docs/apply.schema.json")
    asked = [
        (method, path)
        for method, path in operations(client.application)
        if not path.startswith("/docs/") or path in described
    ]
    for method, path in asked:
        json: Any = {} if method in UNSAFE else None
        answer = client.open(f"{path}?dry-run=true&limt=3", method=method, json=json)
        refused(answer, 422, "dry-run: Unknown parameter: this path takes ")
        if not path.startswith("/tasks"):
            assert [error["pointer"] for error in answer.get_json()["errors"]] == ["/dry-run", "/limt"]


def test_the_specification_names_each_parameter_that_a_route_takes(client: FlaskClient) -> None:
    specification = specification_of(client)
    checked = 0
    for path, item in specification["paths"].items():
        for method in (*UNSAFE, "GET"):
            if (operation := item.get(method.lower())) is None:
                continue
            known = [each["name"] for each in operation["parameters"] if each.get("in") == "query"]
            url = path.replace("{schedule_id}", "none-such").replace("{event_id}", "none-such")
            json: Any = {} if method in UNSAFE else None
            refused(
                client.open(f"{url}?unheard-of=1", method=method, json=json),
                422,
                f"this path takes {', '.join(known) or 'no parameters'}",
            )
            checked += bool(known)
    assert checked >= 5


@pytest.mark.parametrize("query", ["limit=1&limit=2", "limit=1&limit=1", "state=error&%73tate=error"])
def test_a_parameter_that_is_given_twice_is_refused(client: FlaskClient, query: str) -> None:
    name = query.partition("=")[0]
    refused(client.get(f"/api/events?{query}"), 422, f"{name}: is given more than once")


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ('{"name": "a", "name": "b"}', "/name"),
        ('{"name": "a", "n\\u0061me": "a"}', "/name"),
        ('{"headers": {"X-A": "1", "X-A": "2"}}', "/headers/X-A"),
        ('{"json": [1, {"deep": {"er": 1, "er": 2}}]}', "/json/1/deep/er"),
        ('{"\\u001b": 1, "\\u001b": 2}', "/\\u001b"),
    ],
)
def test_a_name_that_stands_twice_in_an_object_is_refused(
    client: FlaskClient, body: str, pointer: str
) -> None:
    for path in (SCHEDULES, f"{SCHEDULES}/none-such/pause"):
        answer = client.post(path, data=body, content_type="application/json")
        refused(answer, 400, f"{pointer[1:]}: is given more than once")
        assert answer.get_json()["errors"][0]["pointer"] == pointer


def test_the_header_parameters_of_the_specification_have_no_value_that_swagger_would_send(
    client: FlaskClient,
) -> None:
    specification = specification_of(client)
    for parameter in specification["components"]["parameters"].values():
        assert not {"example", "examples", "default"} & {*parameter, *parameter["schema"]}, parameter

"""The API has two names, `/api/v1` and `/api`: a request is answered alike under both."""

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from scheduler_app.api.wire import examples
from scheduler_app.store import Store
from tests.integration.api.conftest import ToldTime
from tests.integration.api.openapi import specification_of

ROOT = Path(__file__).parents[3]
NAMES = ("/api/v1", "/api")
READER, WRITER = "0123456789abcdef-r", "0123456789abcdef-w"
JSON = {"X-API-Key": WRITER, "Content-Type": "application/json"}
#: Each is refused, or answered, before a route is called or by it: who asks, and how.
WAYS: dict[str, dict[str, Any]] = {
    "as it is meant": {},
    "without a key": {"headers": {"X-API-Key": ""}},
    "by a key that may only read": {"headers": {"X-API-Key": READER}},
    "from a page of another origin": {"headers": {"Origin": "https://evil.example"}},
    "in a loop of callbacks": {"headers": {"X-Scheduler-Hops": "5"}},
    "with an unknown parameter": {"query_string": {"unheard-of": "1"}},
    "with a body that is no JSON": {"data": b"{", "headers": {"Content-Type": "text/plain"}},
    "with a field that no route knows": {"data": b'{"unheard-of": 1}'},
    "with a body of 2 MiB": {"data": b'{"a": "' + b"x" * 2 * 1024**2 + b'"}'},
    "by a method that no route has": {"method": "PROPFIND"},
    "with a slash at the end": {"end": "/"},
    "with a slash twice": {"middle": "/"},
}
#: Among the answers to each there are these.
ANSWERED = {
    "as it is meant": {200, 201, 404},
    "without a key": {401},
    "by a key that may only read": {200, 403},
    "from a page of another origin": {200, 403},
    "in a loop of callbacks": {200, 508},
    "with an unknown parameter": {422},
    "with a body that is no JSON": {200, 415},
    "with a field that no route knows": {200, 422},
    "with a body of 2 MiB": {200, 413, 422},
    "by a method that no route has": {405},
    "with a slash at the end": {404},
    "with a slash twice": {308},
}
_SHORT = re.compile(r"/api/(?!v1/)")
#: What a dry run generates as an example differs from one to the next, and so does what encrypts.
GENERATED = re.compile(
    r"[0-9a-f]{24}|gAAAA[\w=-]+|whsec_[\w+/=]+|(?<=token=)[\w-]+|\"token\": \"[\w-]+\""
    r"|(?<=\"id\": \")[0-9a-z]{12}(?=\", \"name)"
    r"|(?<=\"request_id\": \")[0-9a-f]{16}"
)


@pytest.fixture
def keyed(make_api: Callable[..., Flask], time: ToldTime) -> FlaskClient:
    """With something of each kind for the routes to find; the time stands still."""
    client = make_api(api_keys=(f"eve:{READER}:read", f"ann:{WRITER}:write")).test_client()
    for method, path, body in (
        ("PUT", "calendars/zurich", examples.CALENDAR),
        ("PUT", "destinations/zurich", examples.DESTINATION),
        ("PUT", "blackouts/zurich", examples.BLACKOUT),
        ("PUT", "notifications/zurich", examples.NOTIFICATION),
        ("PUT", "silences/zurich", examples.SILENCE),
        ("PUT", "kill-switch", examples.KILL_SWITCH),
        ("POST", "schedules", {**examples.SCHEDULE, "id": "daily"}),
        ("POST", "messages", examples.MESSAGE),
    ):
        made = client.open(f"/api/v1/{path}", method=method, json=body, headers={"X-API-Key": WRITER})
        assert made.status_code in (200, 201), made.text
    return client


def operations(client: FlaskClient) -> list[tuple[str, str, Any]]:
    """Method, path below the name of the API, and body of every operation that the specification lists."""
    specification = specification_of(client)
    ids = {"schedule_id": "daily", "message_id": examples.MESSAGE["id"], "name": "zurich"}
    found = []
    for path, item in specification["paths"].items():
        if path.startswith("/tasks"):
            continue
        assert path.startswith("/api/v1/"), path
        below = re.sub(r"{(\w+)}", lambda match: str(ids.get(match[1], "none-such")), path)[len("/api/v1") :]
        for method in item.keys() & {"get", "post", "put", "patch", "delete"}:
            content = item[method].get("requestBody", {}).get("content", {"": {}})
            found.append((method.upper(), below, next(iter(content.values())).get("example")))
    return sorted(found, key=lambda each: (each[1], each[0]))


def ask(
    client: FlaskClient, name: str, method: str, below: str, body: Any, way: dict[str, Any]
) -> TestResponse:
    query = {"dry_run": "true"} if method != "GET" and not below.endswith("preview") else {}
    data = None if body is None else json.dumps(body).encode()
    return client.open(
        f"{name}{way.get('middle', '')}{below}{way.get('end', '')}",
        method=way.get("method", method),
        query_string=way.get("query_string", query),
        headers=JSON | way.get("headers", {}),
        data=way.get("data", data),
    )


def seen(answer: TestResponse) -> tuple[int, dict[str, str], str]:
    """What a client sees, with the addresses of the API under the name `/api/v1`."""
    headers = {name: _SHORT.sub("/api/v1/", value) for name, value in answer.headers.items()}
    # A feed's address is shorter under the shorter name.
    headers.pop("Content-Length", None)
    headers.pop("X-Request-Id", None)
    return answer.status_code, headers, GENERATED.sub("generated", _SHORT.sub("/api/v1/", answer.text))


@pytest.mark.parametrize("way", WAYS)
def test_every_route_is_answered_alike_under_both_names(keyed: FlaskClient, way: str) -> None:
    statuses = set()
    every = operations(keyed)
    for method, below, body in every:
        first, second = (ask(keyed, name, method, below, body, WAYS[way]) for name in NAMES)
        assert seen(second) == seen(first), (method, below)
        statuses.add(first.status_code)
    assert len(every) > 55
    assert ANSWERED[way] <= statuses


@pytest.mark.parametrize("name", NAMES)
def test_addresses_in_answers_follow_the_name_that_was_asked(client: FlaskClient, name: str) -> None:
    made = client.post(f"{name}/schedules", json={**examples.SCHEDULE, "id": "a"})
    assert made.headers["Location"] == f"{name}/schedules/a"
    put = client.put(f"{name}/schedules/b", json=examples.SCHEDULE)
    assert put.headers["Location"] == f"{name}/schedules/b"
    message = client.post(f"{name}/messages", json=examples.MESSAGE)
    assert message.headers["Location"] == f"{name}/messages/{examples.MESSAGE['id']}"
    for kind, body in (("calendars", examples.CALENDAR), ("destinations", examples.DESTINATION)):
        assert client.put(f"{name}/{kind}/c", json=body).headers["Location"] == f"{name}/{kind}/c"
    feed = client.post(f"{name}/calendar-feeds", json={"name": "ours"}).get_json()
    assert feed["path"] == f"{name}/calendar.ics?token={feed['token']}"
    redirect = client.get(f"{name}//schedules?limit=3")
    assert redirect.location == f"http://localhost{name}/schedules?limit=3"


def test_a_key_of_idempotency_is_the_same_under_both_names(client: FlaskClient, store: Store) -> None:
    for number, names in enumerate((NAMES, NAMES[::-1])):
        key = {"Idempotency-Key": f"order-{number}"}
        first, again = (
            client.post(f"{name}/schedules", json=examples.SCHEDULE, headers=key) for name in names
        )
        assert (again.data, again.headers["Idempotent-Replayed"]) == (first.data, "true")
        made = first.get_json()["id"]
        assert [each.location for each in (first, again)] == [f"{name}/schedules/{made}" for name in names]
    assert store.mongo.collection("schedules").count_documents({}) == 2


def test_a_request_that_began_before_the_upgrade_is_known_again(client: FlaskClient, store: Store) -> None:
    key, body = {"Idempotency-Key": "order-4711"}, json.dumps(examples.SCHEDULE).encode()
    first = client.post("/api/v1/schedules", data=body, headers=key, content_type="application/json")
    # As releases wrote it that knew no version.
    earlier = hashlib.sha256(b"\n".join((b"/api/schedules", b"", b"", body))).hexdigest()
    assert [each["request"] for each in store.mongo.collection("idempotency").find()] == [earlier]
    again = client.post("/api/v1/schedules", data=body, headers=key, content_type="application/json")
    assert (again.status_code, again.data) == (201, first.data)


def test_wrong_keys_are_counted_together_under_both_names(keyed: FlaskClient) -> None:
    found = [
        keyed.get(f"{NAMES[number % 2]}/schedules", headers={"X-API-Key": "wrong"}).status_code
        for number in range(12)
    ]
    assert found == [401] * 10 + [429] * 2


@pytest.mark.parametrize("name", NAMES)
def test_a_feed_and_a_receiver_need_no_key_under_either_name(keyed: FlaskClient, name: str) -> None:
    made = keyed.post(f"{name}/calendar-feeds", json={"name": "ours"}, headers={"X-API-Key": WRITER})
    assert keyed.get(made.get_json()["path"]).mimetype == "text/calendar"
    token = {"X-Scheduler-Completion-Token": "wrong"}
    told = keyed.post(f"{name}/events/none-such/complete", headers=token)
    # Not a 401: the token is judged by the route.
    assert told.status_code in (403, 404), told.text


def test_requests_are_counted_under_the_name_of_the_specification(client: FlaskClient) -> None:
    for name in NAMES:
        client.get(f"{name}/blackouts/none-such")
    counted = [each for each in client.get("/metrics").text.splitlines() if "/blackouts/{name}" in each]
    assert counted
    assert all('route="/api/v1/blackouts/{name}"' in each for each in counted)


@pytest.mark.parametrize(
    "path",
    [
        "/api/v2/schedules",
        "/api/v2",
        "/api/v10/schedules",
        "/api/v0/v1/schedules",
        "/api/V1/schedules",
        "/API/v1/schedules",
        "/api//v2/schedules",
        "/api%2Fv2%2Fschedules",
        "/api/%76%32/schedules",
    ],
)
def test_a_version_that_does_not_exist_is_a_problem_that_names_v1(client: FlaskClient, path: str) -> None:
    for method in ("GET", "POST", "DELETE"):
        answer = client.open(path, method=method)
        assert (answer.status_code, answer.mimetype) == (404, "application/problem+json")
        assert "/api/v1/" in answer.get_json()["detail"]


@pytest.mark.parametrize(
    "path",
    [
        *("/api/v1/v1/schedules", "/api//v1/v1/schedules", "/api/v1/api/v1/schedules", "/api/v1.0/schedules"),
        *("/apiv1/schedules", "/api/v1schedules", "/api/v1/../schedules", "/api/%2E%2E/api/v1/schedules"),
        *("/api/v1%00/schedules", "/api/v1;a=b/schedules", "/API/schedules", "/api", "/api/v1", "/api/v1/"),
    ],
)
def test_what_only_looks_like_a_name_of_the_api_is_nothing(keyed: FlaskClient, path: str) -> None:
    assert keyed.get(path).status_code == 401
    answer = keyed.get(path, headers={"X-API-Key": WRITER})
    assert (answer.status_code, answer.mimetype) == (404, "application/problem+json")


@pytest.mark.parametrize(
    "path", ["/api%2Fv1%2Fschedules", "/api/%76%31/schedules", "/api%2Fschedules", "/%61pi/v1/schedules"]
)
def test_an_encoded_path_is_judged_as_what_it_means(keyed: FlaskClient, path: str) -> None:
    assert keyed.get(path).status_code == 401
    assert keyed.post(path, json={}, headers={"X-API-Key": READER}).status_code == 403
    assert keyed.get(path, headers={"X-API-Key": WRITER}).status_code == 200


def test_pages_clients_and_the_manual_use_the_name_with_the_version() -> None:
    short = re.compile(r"(?:(?<![\w}.])|(?<=\d{4}))/api/(?!v\d)[a-z{]")
    files = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "deploy").rglob("*.yml")]
    for folder in ("api", "beat", "scheduler_app"):
        files += [
            each for each in (ROOT / folder).rglob("*.*") if each.suffix in (".py", ".html", ".js", ".json")
        ]
    assert len(files) > 300
    # One speaks of the other name itself, and one of the paths that the seed has.
    told = {
        *(ROOT / "scheduler_app" / "webserver" / "limits.py", ROOT / "api" / "versions.py"),
        *(ROOT / "docs" / "seeds.md", ROOT / "docs" / "api-stability.md"),
    }
    found = [
        f"{each.relative_to(ROOT)}: {line.strip()}"
        for each in files
        if each not in told
        for line in each.read_text().splitlines()
        if short.search(line)
    ]
    assert found == []

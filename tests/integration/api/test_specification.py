"""The specification is true: what it generates is answered as it says; clients can be made of it."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import requests
from flask import Flask
from flask.testing import FlaskClient
from jsonschema import Draft202012Validator
from werkzeug.serving import make_server

from scheduler_app.api import auth
from scheduler_app.api.factory import routed, serve
from scheduler_app.api.openapi import complete_specification
from scheduler_app.api.wire import examples
from scheduler_app.config import Settings
from scheduler_app.domain.cause import Tally, failing_key
from scheduler_app.domain.ids import name_of
from tests.integration.api.openapi import specification_of

CONFIG = Path(__file__).with_name("schemathesis.toml")
SHIPPED = Path(__file__).parents[3] / "scheduler_app" / "cli" / "apply" / "schema.json"
BINARIES = Path(sys.executable).parent
#: Nothing executes what is made here.
TASKS: dict[str, Any] = {"tasks_api": True, "allowed_commands": ("*", "shell:*")}


@pytest.fixture(autouse=True)
def wrong_keys_are_not_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks send many, and expect a 401 for each."""
    monkeypatch.setattr(auth, "MAX_WRONG_KEYS", 10**9)


@pytest.fixture
def served(make_api: Callable[..., Flask]) -> Iterator[Callable[..., str]]:
    """Serves an application of its own settings on a free port, and returns its URL."""
    servers = []

    def serve(**settings: Any) -> str:
        server = make_server("127.0.0.1", 0, make_api(**settings), threaded=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield serve
    for server in servers:
        server.shutdown()


@pytest.fixture
def specification(client: FlaskClient) -> dict[str, Any]:
    return specification_of(client)


@pytest.mark.parametrize("path", ["/docs/openapi.yml", "/docs/apply.schema.json"])
def test_many_who_ask_at_once_have_it_made_once(
    path: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Not an application that other tests have used: those have made it already.
    app, made = routed(settings), []

    def noted(document: Any) -> Any:
        made.append(path)
        return complete_specification(document)

    monkeypatch.setattr("scheduler_app.api.routes.documentation.complete_specification", noted)
    with closing(serve(app, settings).store), ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: app.test_client().get(path).data, range(8)))
    assert len(set(answers)) == 1
    assert made == [path]


def fuzz(url: str, folder: Path, *options: str) -> str:
    """Runs schemathesis with every check; returns what it said, and fails with it when it found anything."""
    key = ("--header", "Authorization: Bearer a-key-of-16-letters")
    command = (str(BINARIES / "st"), "--config-file", str(CONFIG), "run", f"{url}/docs/openapi.yml", *key)
    done = subprocess.run(
        [*command, "--no-color", "--continue-on-failure", *options],
        cwd=folder,
        env={**os.environ, "COLUMNS": "160"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
    return done.stdout


@pytest.mark.long
@pytest.mark.timeout(1_800)
def test_what_the_specification_generates_is_answered_as_it_says(
    served: Callable[..., str], tmp_path: Path
) -> None:
    url = served(api_keys=("a-key-of-16-letters",), **TASKS)
    fuzz(url, tmp_path, "--phases", "examples,coverage", "--mode", "positive", "--seed", "1")


@pytest.mark.long
@pytest.mark.timeout(600)
def test_what_the_specification_does_not_allow_is_refused_as_it_says(
    served: Callable[..., str], tmp_path: Path
) -> None:
    url = served(api_keys=("a-key-of-16-letters",), **TASKS)
    fuzz(url, tmp_path, "--phases", "coverage", "--mode", "negative", "--seed", "1")


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_thousands_of_generated_requests_are_answered_as_the_specification_says(
    served: Callable[..., str], tmp_path: Path
) -> None:
    url = served(api_keys=("a-key-of-16-letters",), **TASKS)
    said = fuzz(url, tmp_path, "--max-examples", "200")
    (cases,) = re.findall(r"([\d,]+) generated", said)
    assert int(cases.replace(",", "")) >= 5_000


def test_every_operation_has_a_name_a_tag_and_its_refusals(specification: dict[str, Any]) -> None:
    names = []
    for path, item in specification["paths"].items():
        for method, operation in item.items():
            if method == "parameters":
                assert all(each["description"] for each in operation)
                continue
            names.append(operation["operationId"])
            assert operation["tags"]
            assert operation["summary"]
            answers = operation["responses"]
            assert {"401", "403", "500", "503"} <= answers.keys()
            has_name = "{" in path or path.startswith("/tasks")
            assert ("404" in answers) is (has_name or operation["operationId"] == "turn_kill_switch_off")
            if "requestBody" in operation:
                assert {"400", "413", "415"} <= answers.keys()
                assert ("422" in answers) is not path.startswith("/tasks")
            for parameter in operation.get("parameters", []):
                assert "$ref" in parameter or parameter["description"], (path, parameter)
    assert len(names) == len(set(names)) >= 20
    for answer in specification["components"]["responses"].values():
        assert list(answer["content"]) == ["application/problem+json"]
    assert specification["openapi"].startswith("3.1")
    assert {"bearer", "key"} == specification["components"]["securitySchemes"].keys()


def test_every_example_is_accepted_as_it_stands_and_answered_as_the_specification_says(
    make_api: Callable[..., Flask], specification: dict[str, Any]
) -> None:
    app = make_api(**TASKS)
    client, now = app.test_client(), datetime.now(UTC)
    made = client.post("/api/schedules", json=examples.SCHEDULE).get_json()["id"]
    failing = Tally(failing_key("s1-1-20260302T120000Z", "http://x:80", 500, None), now, now, dead=1)
    [cause] = app.extensions["scheduler"].store.causes.touch([failing])
    key_id = client.post("/api/v1/keys", json=examples.KEY).get_json()["id"]
    found = 0
    for path, item in specification["paths"].items():
        for method in ("post", "put"):
            for content in item.get(method, {}).get("requestBody", {}).get("content", {}).values():
                url = path.replace("{schedule_id}", made).replace("{name}", "zurich")
                url = url.replace("{failure_id}", name_of(cause.id)).replace("{key_id}", key_id)
                url = url.replace("{message_id}", examples.MESSAGE["id"])
                url = url.replace("{task_id}", examples.TASK["id"])
                answer = client.open(url, method=method.upper(), json=content["example"])
                if path.endswith("/fail"):  # it is for whoever has the token of a callback
                    assert answer.status_code == 403, answer.text
                    continue
                # And these for whoever has a key, or has been let in.
                if path.endswith(("/revoke-leaked", "/sign-in/token", "/sign-in/end")):
                    assert answer.status_code == 404, answer.text
                    continue
                assert answer.status_code in (200, 201, 202), (path, answer.text)
                assert answer.get_json().get("refused", 0) == 0
                said = item[method]["responses"][str(answer.status_code)]["content"]["application/json"]
                # References within the schema are to the components beside it.
                schema = {"components": specification["components"], **said["schema"]}
                problems = [
                    each.message for each in Draft202012Validator(schema).iter_errors(answer.get_json())
                ]
                assert not problems, (path, problems)
                found += 1
    assert found == 33


def test_a_generated_client_creates_lists_and_deletes_a_schedule(
    served: Callable[..., str], tmp_path: Path
) -> None:
    url = served(api_keys=("a-key-of-16-letters",))
    source = tmp_path / "openapi.yml"
    source.write_text(requests.get(f"{url}/docs/openapi.yml").text)
    config = tmp_path / "config.yml"
    # The generator knows no NDJSON: it hands on the bytes.
    config.write_text("content_type_overrides:\n  application/x-ndjson: application/octet-stream\n")
    generated = subprocess.run(
        [
            str(BINARIES / "openapi-python-client"),
            "generate",
            *("--path", str(source), "--output-path", str(tmp_path / "made_client")),
            *("--meta", "none", "--fail-on-warning", "--config", str(config)),
        ],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{BINARIES}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
    )
    assert generated.returncode == 0, generated.stdout + generated.stderr
    program = """
import sys
from made_client import AuthenticatedClient
from made_client.api.schedules import create_schedule, delete_schedule, get_schedule, list_schedules
from made_client.models import NewSchedule, Problem

client = AuthenticatedClient(base_url=sys.argv[1], token="a-key-of-16-letters")
body = NewSchedule(name="generated", callback_url="https://example.com/", rrule="FREQ=DAILY")
made = create_schedule.sync(client=client, body=body, idempotency_key="once")
assert create_schedule.sync(client=client, body=body, idempotency_key="once").id == made.id
assert [each.id for each in list_schedules.sync(client=client).schedules] == [made.id]
assert get_schedule.sync(made.id, client=client).next_run_at.tzinfo is not None
assert delete_schedule.sync(made.id, client=client).message
missing = get_schedule.sync(made.id, client=client)
assert isinstance(missing, Problem) and missing.status == 404
print("done")
"""
    done = subprocess.run([sys.executable, "-c", program, url], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "done\n", done.stderr


def test_swagger_ui_loads_from_here_alone(client: FlaskClient) -> None:
    page = client.get("/swagger-ui")
    assert page.status_code == 200
    assert "script-src 'self';" in page.headers["Content-Security-Policy"]
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    assets = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert len(assets) == 4
    for asset in assets:
        assert asset.startswith("/swagger-ui/")
        answer = client.get(asset)
        assert (answer.status_code, bool(answer.data)) == (200, True)
    assert "<script>" not in page.text
    assert client.get("/swagger-ui/../../setup.py").status_code == 404


def test_the_metrics_are_prometheus_text_and_need_a_key_when_there_are_keys(
    make_api: Callable[..., Flask], client: FlaskClient, create: Callable[..., dict[str, Any]]
) -> None:
    from prometheus_client.parser import text_string_to_metric_families

    create(rrule="FREQ=SECONDLY")
    answer = client.get("/metrics")
    assert answer.status_code == 200
    samples = [sample for family in text_string_to_metric_families(answer.text) for sample in family.samples]
    events = {each.labels["state"]: each.value for each in samples if each.name == "scheduler_events"}
    assert set(events) == {"ready_queue", "worker_queue", "running", "retrying"}
    assert min(events["ready_queue"], events["worker_queue"]) > 0
    by_name = {each.name: each.value for each in samples}
    assert by_name["scheduler_oldest_due_timestamp_seconds"] > 1.7e9
    assert by_name["scheduler_queue_length"] > 0
    roles = {each.labels["role"]: each.value for each in samples if each.name == "scheduler_nodes"}
    assert (roles["beat"], roles["worker"]) == (0, 0)
    guarded = make_api(api_keys=("a-key-of-16-letters",)).test_client()
    assert guarded.get("/metrics").status_code == 401
    assert guarded.get("/metrics", headers={"X-API-Key": "a-key-of-16-letters"}).status_code == 200


def test_every_route_is_on_the_manual_s_page(app: Flask) -> None:
    docs = Path(__file__).parents[3] / "docs"
    page, pages = (docs / "api.md").read_text(), (docs / "page.md").read_text()
    for rule in app.url_map.iter_rules():
        path = re.sub(r"<(?:[^<>]*:)?([^<>]*)>", r"{\1}", rule.rule)
        if rule.endpoint.startswith("pages."):
            # The forms' own addresses are no page.
            is_page = "GET" in (rule.methods or ()) and not path.startswith("/assets/")
            assert not is_page or f"`{path}`" in pages, path
        elif path.startswith("/api/"):
            methods = (rule.methods or set()) - {"HEAD", "OPTIONS"}
            assert all(f"### {method} {path}\n" in page for method in methods), path
        elif rule.endpoint != "static":
            # Of assets the folder.
            assert f"`{path.split('{')[0].removesuffix('start.js').rstrip('/')}" in page, path


def test_the_schema_of_files_is_served_as_it_is_shipped_and_says_what_is_taken(client: FlaskClient) -> None:
    served = client.get("/docs/apply.schema.json")
    assert served.mimetype == "application/schema+json"
    assert served.get_json(force=True) == json.loads(SHIPPED.read_text())
    check = Draft202012Validator(served.get_json(force=True)).is_valid
    schedule = {"id": "nightly", **examples.SCHEDULE}
    whole = {
        "calendars": [{"name": "zurich", **examples.CALENDAR}],
        "destinations": [{"name": "billing", **examples.DESTINATION}],
        "schedules": [schedule],
    }
    assert check(whole)
    assert not check(whole | {"other": []})
    assert not check({"schedules": [schedule | {"crom": "0 9 * * *"}]})
    assert not check({"schedules": [examples.SCHEDULE]})
    assert not check({"schedules": [schedule | {"id": "a b"}]})


def test_the_seed_s_path_of_the_swagger_ui_leads_there(client: FlaskClient) -> None:
    page = client.get("/swagger/index.html", follow_redirects=True)
    assert page.status_code == 200
    assert page.request.path == "/swagger-ui"

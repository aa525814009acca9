"""The OpenAPI document of the last release is compared with today's: what breaks a client is refused."""

import json
import subprocess
import sys
from collections.abc import Callable
from copy import deepcopy
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from docs.reference.compatibility import RELEASED, breaks
from scheduler_app.api.factory import specification
from scheduler_app.config import Settings

Node = dict[str, Any]
Change = Callable[[Node], object]

ROOT = Path(__file__).parents[3]
TODAY = date(2026, 11, 23)
SCHEDULES, ONE = "/api/v1/schedules", "/api/v1/schedules/{schedule_id}"


@pytest.fixture(scope="module")
def today() -> Node:
    return specification(Settings())


def operation(document: Node, method: str = "post", path: str = SCHEDULES) -> Node:
    found: Node = document["paths"][path][method]
    return found


def field(document: Node, schema: str, name: str) -> Node:
    found: Node = document["components"]["schemas"][schema]["properties"][name]
    return found


def parameter(document: Node, name: str) -> Node:
    return next(each for each in operation(document, "get")["parameters"] if each.get("name") == name)


def schema(document: Node, name: str) -> Node:
    found: Node = document["components"]["schemas"][name]
    return found


BREAKS: dict[str, tuple[Change, str]] = {
    "a route is gone": (lambda doc: doc["paths"].pop(ONE), f"GET {ONE} is gone"),
    "a method is gone": (lambda doc: doc["paths"][ONE].pop("delete"), f"DELETE {ONE} is gone"),
    "an operation has another name": (
        lambda doc: operation(doc).update(operationId="make_schedule"),
        "its operationId was create_schedule and is make_schedule",
    ),
    "a kind of action is gone": (
        lambda doc: schema(doc, "ActionInput")["discriminator"]["mapping"].pop("command"),
        "the alternative command is gone",
    ),
    "a kind of action has another field that is required": (
        lambda doc: schema(doc, "CommandActionInput")["required"].append("shell"),
        "action (command).shell is required now",
    ),
    "a parameter is gone": (
        lambda doc: operation(doc, "get")["parameters"].remove(parameter(doc, "cursor")),
        "parameter cursor is gone",
    ),
    "a parameter is required": (
        lambda doc: parameter(doc, "state").update(required=True),
        "parameter state is required now",
    ),
    "a new parameter is required": (
        lambda doc: operation(doc, "get")["parameters"].append(
            {"in": "query", "name": "of", "required": True, "schema": {"type": "string"}}
        ),
        "parameter of is new and required",
    ),
    "a parameter takes fewer words": (
        lambda doc: parameter(doc, "state")["schema"]["enum"].remove("paused"),
        "parameter state: the words were",
    ),
    "a parameter's bound is tighter": (
        lambda doc: parameter(doc, "limit")["schema"].update(maximum=100),
        "parameter limit: maximum is 100 now",
    ),
    "a parameter's default is another": (
        lambda doc: parameter(doc, "limit")["schema"].update(default=50),
        "parameter limit: default was 10 and is 50",
    ),
    "a body is required": (
        lambda doc: operation(doc, "post", f"{ONE}/pause")["requestBody"].update(required=True),
        "a body is required now",
    ),
    "a body is of another type": (
        lambda doc: operation(doc)["requestBody"].update(content={"application/xml": {}}),
        "body: application/json is gone",
    ),
    "a field of a request is gone": (
        lambda doc: schema(doc, "NewSchedule")["properties"].pop("cron"),
        "body.cron is gone",
    ),
    "a field of a request is required": (
        lambda doc: schema(doc, "NewSchedule")["required"].append("cron"),
        "body.cron is required now",
    ),
    "a new field of a request is required": (
        lambda doc: schema(doc, "NewSchedule").update(
            required=["name", "owner"],
            properties=schema(doc, "NewSchedule")["properties"] | {"owner": {"type": "string"}},
        ),
        "body.owner is required now",
    ),
    "a field of a request takes fewer types": (
        lambda doc: field(doc, "NewSchedule", "name").update(type="integer"),
        "body.name: the type was string and is integer",
    ),
    "a field of a request must match a pattern": (
        lambda doc: field(doc, "NewSchedule", "name").update(pattern="^[a-z]+$"),
        "body.name: pattern was None and is '^[a-z]+$'",
    ),
    "a field of a request must be longer": (
        lambda doc: field(doc, "NewSchedule", "name").update(minLength=9),
        "body.name: minLength is 9 now",
    ),
    "a field of an answer is gone": (
        lambda doc: schema(doc, "Created")["properties"].pop("next_run_at"),
        "answer 201.next_run_at is gone",
    ),
    "a field of an answer has another name": (
        lambda doc: schema(doc, "Created")["properties"].update(
            next_run=schema(doc, "Created")["properties"].pop("next_run_at")
        ),
        "answer 201.next_run_at is gone",
    ),
    "a field of an answer may be missing": (
        lambda doc: schema(doc, "Created")["required"].remove("id"),
        "answer 201.id may be missing now",
    ),
    "a field of an answer may be null": (
        lambda doc: field(doc, "Created", "id").update(type=["string", "null"]),
        "answer 201.id: the type was string and is ['string', 'null']",
    ),
    "a field of an answer has a word that no client knows": (
        lambda doc: field(doc, "Created", "state")["enum"].append("sleeping"),
        "answer 201.state: the words were",
    ),
    "a field of an answer is no instant any more": (
        lambda doc: field(doc, "Created", "next_run_at").pop("format"),
        "answer 201.next_run_at: format was 'date-time' and is None",
    ),
    "a success has another status": (
        lambda doc: operation(doc)["responses"].update({"202": operation(doc)["responses"].pop("201")}),
        "the answer 201 is gone",
    ),
    "an error is gone": (
        lambda doc: operation(doc)["responses"].pop("409"),
        "the answer 409 is gone",
    ),
    "an error is no problem any more": (
        lambda doc: doc["components"]["responses"]["Conflict"].update(
            content={"application/json": {"schema": {"type": "object"}}}
        ),
        "answer 409: application/problem+json is gone",
    ),
    "a field of all problems is gone": (
        lambda doc: schema(doc, "Problem")["properties"].pop("detail"),
        "answer 422.detail is gone",
    ),
    "a header of an answer is gone": (
        lambda doc: operation(doc)["responses"]["201"]["headers"].pop("ETag"),
        "the header ETag is gone",
    ),
    "a way to authenticate is gone": (
        lambda doc: doc["security"].remove({"key": []}),
        "the authentication key is gone",
    ),
}

ADDITIONS: dict[str, Change] = {
    "a route": lambda doc: doc["paths"].update({"/api/v1/new": deepcopy(doc["paths"][SCHEDULES])}),
    "a method": lambda doc: doc["paths"][SCHEDULES].update(patch=operation(doc) | {"operationId": "new"}),
    "a parameter": lambda doc: operation(doc, "get")["parameters"].append(
        {"in": "query", "name": "of", "schema": {"type": "string"}}
    ),
    "a word that a parameter takes": lambda doc: parameter(doc, "state")["schema"]["enum"].append("new"),
    "a wider bound": lambda doc: parameter(doc, "limit")["schema"].update(maximum=1_000),
    "a field of requests": lambda doc: schema(doc, "NewSchedule")["properties"].update(
        owner={"type": "string"}
    ),
    "a type that a field of requests takes": lambda doc: field(doc, "NewSchedule", "name").update(
        type=["string", "integer"]
    ),
    "another form of a field of requests": lambda doc: schema(doc, "NewSchedule")["properties"].update(
        name={"anyOf": [{"type": "integer"}, field(doc, "NewSchedule", "name")]}
    ),
    "a field of answers": lambda doc: schema(doc, "Created")["properties"].update(owner={"type": "string"}),
    "a field of answers that is always there": lambda doc: schema(doc, "Created")["required"].append("name"),
    "an error": lambda doc: operation(doc)["responses"].update(
        {"402": {"$ref": "#/components/responses/Conflict"}}
    ),
    "a header of answers": lambda doc: operation(doc)["responses"]["201"]["headers"].update(New={}),
    "a better description": lambda doc: field(doc, "Created", "id").update(description="In other words"),
    "a way to authenticate": lambda doc: doc["security"].append({"oidc": []}),
}


@pytest.mark.parametrize("name", BREAKS)
def test_what_breaks_a_client_is_refused(today: Node, name: str) -> None:
    change, sentence = BREAKS[name]
    after = deepcopy(today)
    change(after)
    found = breaks(today, after, TODAY)
    assert any(sentence in each for each in found), found


@pytest.mark.parametrize("name", ADDITIONS)
def test_an_addition_passes(today: Node, name: str) -> None:
    after = deepcopy(today)
    ADDITIONS[name](after)
    assert after != today
    assert breaks(today, after, TODAY) == []


def test_what_was_deprecated_may_go_after_its_sunset_and_not_before(today: Node) -> None:
    before, after = deepcopy(today), deepcopy(today)
    del after["paths"][ONE]["delete"]
    del after["components"]["schemas"]["NewSchedule"]["properties"]["cron"]
    operation(before, "delete", ONE).update({"deprecated": True, "x-sunset": "2026-11-23"})
    field(before, "NewSchedule", "cron").update({"deprecated": True, "x-sunset": "2026-11-23"})
    assert breaks(before, after, TODAY) == []
    assert len(breaks(before, after, date(2026, 11, 22))) > 1


def test_a_field_of_an_answer_stays_even_if_it_was_deprecated(today: Node) -> None:
    before, after = deepcopy(today), deepcopy(today)
    del after["components"]["schemas"]["Created"]["properties"]["next_run_at"]
    field(before, "Created", "next_run_at").update({"deprecated": True, "x-sunset": "2026-11-23"})
    assert breaks(before, after, TODAY) != []


def test_make_check_refuses_that_something_of_the_release_is_gone(today: Node, tmp_path: Path) -> None:
    released, path = deepcopy(today), tmp_path / "openapi.json"
    released["paths"]["/api/v1/old"] = {"get": operation(released, "get")}
    schema(released, "Created")["properties"]["old"] = {"type": "string"}
    operation(released)["responses"]["410"] = operation(released)["responses"]["409"]
    path.write_text(json.dumps(released))
    command = "python -m docs.reference.compatibility"
    assert command in (ROOT / "Makefile").read_text().split("\nstyle: ")[1].split("\n\n")[0]
    done = subprocess.run(
        [sys.executable, *command.split()[1:], str(path)], cwd=ROOT, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (1, "")
    for sentence in ("/api/v1/old is gone", "answer 201.old is gone", "the answer 410 is gone"):
        assert sentence in done.stderr


def test_today_breaks_no_client_of_the_last_release(today: Node) -> None:
    assert breaks(json.loads(RELEASED.read_text()), today, TODAY) == []


def test_kinds_with_schemas_of_their_own_take_what_one_schema_of_all_took(today: Node) -> None:
    before = deepcopy(today)
    kinds = [schema(before, name) for name in ("CommandActionInput", "CeleryTaskActionInput")]
    fields = kinds[0]["properties"] | kinds[1]["properties"] | {"type": {"type": "string"}}
    fields["type"]["enum"] = ["command", "celery_task"]
    flat = {"type": "object", "properties": fields, "required": ["type"], "additionalProperties": False}
    before["components"]["schemas"]["ActionInput"] = flat
    assert breaks(before, today, TODAY) == []
    fields["gone"] = {"type": "string"}
    assert any("action.gone is gone" in each for each in breaks(before, today, TODAY))

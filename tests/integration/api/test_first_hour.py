"""The mistakes of a first hour: each answer names the field and the remedy."""

from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient

SCHEDULES = "/api/schedules"
GOOD = {"name": "n", "callback_url": "http://127.0.0.1:9/", "rrule": "FREQ=DAILY"}
BODY = '{"name": "n", "callback_url": "http://127.0.0.1:9/", "rrule": "FREQ=DAILY"'


def deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("fields", "pointer", "remedy"),
    [
        ({"interval": 5}, "interval", "use every_seconds"),
        ({"holidays": "ch"}, "holidays", "use calendar"),
        ({"colour": "red"}, "colour", "Unknown field: this takes"),
        ({"dry_run": True}, "dry_run", "?dry_run=true"),
        ({"next_run_at": "2030-01-01T00:00:00Z"}, "next_run_at", "leave it out"),
        ({"version": 3}, "version", "leave it out"),
        ({"name": 7}, "name", "must be text, in quotes"),
        ({"name": None}, "name", "must not be null"),
        ({"tags": [1]}, "tags/0", "must be text, in quotes"),
        ({"headers": {"X-Number": 1}}, "headers/X-Number", "must be text, in quotes"),
        ({"max_retries": "3"}, "max_retries", "must be a whole number, without quotes"),
        ({"signing": "yes"}, "signing", "must be true or false"),
        ({"timeout_seconds": True}, "timeout_seconds", "must be a number"),
        ({"json": deep(102)}, "json", "100 deep"),
        ({"timezone": "Berlin"}, "timezone", "did you mean Europe/Berlin?"),
        ({"timezone": "Europe/Zuerich"}, "timezone", "did you mean Europe/Zurich?"),
        ({"timezone": "+01:00"}, "timezone", "an offset knows no clock changes"),
        ({"rrule": "FREQ=DAILY;FOO=1"}, "rrule", "rrule: FOO: is not a part of a rule"),
    ],
)
def test_a_field_that_is_wrong_is_named_with_its_remedy(
    client: FlaskClient, fields: dict[str, Any], pointer: str, remedy: str
) -> None:
    answer = client.post(SCHEDULES, json=GOOD | fields)
    assert answer.status_code == 422, answer.text
    problem = answer.get_json()
    assert [error["pointer"] for error in problem["errors"]] == [f"/{pointer}"]
    assert problem["detail"].startswith(f"{pointer}: ")
    assert remedy in problem["detail"]


@pytest.mark.parametrize(
    ("body", "status", "remedy"),
    [
        (BODY + ",}", 400, "no comma before a closing bracket"),
        (BODY.replace('"', "'") + "}", 400, "double quotes"),
        ('{"name": "a", "name": "b"}', 400, "name: is given more than once"),
        ("\ufeff" + BODY + "}", 400, "byte order mark"),
        ((BODY + "}").encode("utf-16"), 400, "UTF-8"),
        ('{"max_retries": ' + "9" * 5000 + "}", 400, "a number of more than"),
        ("[]", 422, "must be a JSON object, in braces"),
        ("null", 422, "must be a JSON object, in braces"),
    ],
)
def test_a_body_that_is_wrong_is_refused_with_its_remedy(
    client: FlaskClient, body: str | bytes, status: int, remedy: str
) -> None:
    answer = client.post(SCHEDULES, data=body, content_type="application/json")
    assert answer.status_code == status, answer.text
    detail = answer.get_json()["detail"]
    assert remedy in detail
    assert "sys." not in detail
    assert not detail.startswith("/")
    assert answer.text.endswith("}\n"), "a shell's prompt begins on a line of its own"


def test_a_rule_in_another_field_of_a_preview_is_not_said_to_be_missing(client: FlaskClient) -> None:
    answer = client.post(f"{SCHEDULES}/preview", json={"crontab": "0 9 * * *"})
    assert [error["pointer"] for error in answer.get_json()["errors"]] == ["/crontab"]


def test_a_path_with_a_slash_too_many_is_told(client: FlaskClient) -> None:
    answer = client.get(f"{SCHEDULES}/")
    assert answer.status_code == 404
    assert "without the slash at its end" in answer.get_json()["detail"]


def test_an_edit_of_many_without_a_body_is_told_what_to_give(client: FlaskClient) -> None:
    for verb in ("pause", "resume", "delete"):
        answer = client.post(f"{SCHEDULES}/{verb}")
        assert answer.status_code == 422
        assert "all: true for every schedule" in answer.get_json()["detail"]


def test_a_dry_run_is_marked_as_one_however_it_is_asked_for(
    client: FlaskClient, create: Callable[..., dict[str, Any]]
) -> None:
    create()
    for path in (f"{SCHEDULES}/pause", "/api/events/redrive"):
        by_query = client.post(f"{path}?dry_run=true", json={"all": True})
        by_body = client.post(path, json={"all": True, "dry_run": True})
        assert by_body.get_json() == by_query.get_json()
        assert by_body.text.endswith("}\n")
        assert by_body.get_json()["dry_run"] is True

"""Every trigger kind over HTTP: created, read, edited, previewed, exported, taken back."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

from scheduler_app.domain.instants import shown_time
from scheduler_app.domain.triggers import KINDS, ONE_OF, Value
from tests.conformance.trigger.samples import SAMPLES
from tests.integration.api.conftest import ToldTime

SCHEDULES = "/api/schedules"
BODY = {"name": "test", "callback_url": "http://127.0.0.1:9/", "timezone": "Europe/Zurich"}
EACH = [
    pytest.param(kind.name, dict(given), id=f"{kind.name}-{number}")
    for kind in KINDS
    for number, given in enumerate(SAMPLES[kind.name].written)
]


def on_the_wire(given: Mapping[str, Value]) -> dict[str, Any]:
    return {
        name: shown_time(value) if isinstance(value, datetime) else value for name, value in given.items()
    }


def exported(client: FlaskClient, schedule_id: str) -> dict[str, Any]:
    answer = client.get(f"{SCHEDULES}/export")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any]
    (found,) = [line for line in map(json.loads, answer.text.splitlines()) if line["id"] == schedule_id]
    return found


def meant(shown: dict[str, Any], kind: str) -> tuple[str | None, ...]:
    """What a copy of a schedule shares with it. Cron has no start: it is pinned to when it was given."""
    recurrence = shown.get("recurrence")
    if kind == "cron" and recurrence is not None:
        recurrence = recurrence.partition("\n")[2]
    # A description tells of a start that is to come when the schedule is made; the copy's may have passed.
    return recurrence, shown["description"].partition(", from ")[0], shown.get("timezone")


@pytest.mark.parametrize(("kind", "given"), EACH)
def test_a_kind_is_created_shown_edited_and_taken_back(
    shared_client: FlaskClient, kind: str, given: dict[str, Value]
) -> None:
    client, wire = shared_client, on_the_wire(given)
    made = client.post(SCHEDULES, json=BODY | wire)
    assert made.status_code == 201, made.text
    address = f"{SCHEDULES}/{made.get_json()['id']}"
    shown = client.get(address).get_json()
    assert {name: shown[name] for name in wire} == wire
    assert shown["description"]
    assert shown["state"] == "active"
    assert ("next_run_at" in shown) == (kind != "on_demand")
    again = client.put(address, json=wire | {"timezone": "Europe/Zurich"}).get_json()
    assert (again["result"], again["version"]) == ("unchanged", 1)
    line = exported(client, shown["id"])
    assert client.put(address, json=line).get_json()["result"] == "unchanged"
    copy = client.post(SCHEDULES, json=line | {"id": f"{shown['id']}-copy"})
    assert copy.status_code == 201, copy.text
    # What is exported as it was written is pinned to the second at which it is taken.
    as_written = wire.items() <= line.items()
    assert meant(copy.get_json(), kind)[as_written:] == meant(shown, kind)[as_written:]
    once = client.put(address, json={"run_at": "2040-01-01T00:00:00Z"}).get_json()
    assert (once["run_at"], once["next_run_at"]) == ("2040-01-01T00:00:00Z",) * 2
    assert kind == "run_at" or not wire.keys() & once.keys()
    back = client.put(address, json=wire | ({} if kind == "run_at" else {"run_at": None})).get_json()
    assert {name: back[name] for name in wire} == wire
    assert kind == "run_at" or "run_at" not in back


@pytest.mark.parametrize(("kind", "given"), EACH)
def test_a_preview_is_what_the_saved_schedule_does(
    shared_client: FlaskClient, kind: str, given: dict[str, Value]
) -> None:
    at = "2026-03-02T12:00:00Z"
    asked = on_the_wire(given) | {"at": at, "timezone": "Europe/Zurich", "limit": 4}
    answer = shared_client.post(f"{SCHEDULES}/preview", json=asked)
    assert answer.status_code == 200, answer.text
    preview = answer.get_json()
    assert preview["trigger"] == on_the_wire(given)
    assert preview["description"]
    assert bool(preview["occurrences"]) == (kind != "on_demand")
    assert all(each["run_time"] > at for each in preview["occurrences"])


@pytest.mark.parametrize(
    ("given", "pointer", "words"),
    [
        ({"every_seconds": 1.5}, "/every_seconds", "whole number"),
        ({"every_seconds": 0}, "/every_seconds", "1"),
        ({"every_seconds": True}, "/every_seconds", "whole number"),
        ({"every_seconds": 5, "start_at": "soon"}, "/start_at", "2025-01-05T12:00:00Z"),
        ({"start_at": "2030-01-01T00:00:00Z", "rrule": "FREQ=DAILY"}, "/start_at", "every_seconds"),
        ({"delay_seconds": 0}, "/delay_seconds", "1"),
        ({"delay_seconds": "5"}, "/delay_seconds", "whole number"),
        ({"on_demand": False}, "/on_demand", "true"),
        ({"on_demand": True, "delay_seconds": 5}, "/on_demand", "exactly one of"),
        ({"run_at": "2031-03-30T02:30:00", "gap": "skip"}, "/run_at", "does not exist"),
        ({"run_at": "2031-03-30"}, "/run_at", "offset"),
        ({}, "/rrule", ONE_OF),
    ],
)
def test_a_trigger_that_is_wrong_is_refused_with_the_remedy(
    shared_client: FlaskClient, given: dict[str, Any], pointer: str, words: str
) -> None:
    for path, body in (
        (SCHEDULES, BODY | given),
        (f"{SCHEDULES}/preview", given | {"timezone": "Europe/Zurich"}),
    ):
        answer = shared_client.post(path, json=body)
        assert answer.status_code == 422, answer.text
        (error,) = answer.get_json()["errors"]
        assert error["pointer"] == pointer
        assert words in error["detail"]


def test_a_schedule_on_demand_is_triggered_and_stays_active(shared_client: FlaskClient) -> None:
    made = shared_client.post(SCHEDULES, json=BODY | {"on_demand": True}).get_json()
    assert "run_at" not in made
    address = f"{SCHEDULES}/{made['id']}"
    assert shared_client.post(f"{address}/trigger").status_code == 202
    assert shared_client.get(address).get_json()["state"] == "active"
    for verb, state in (("pause", "paused"), ("resume", "active")):
        assert shared_client.post(f"{address}/{verb}").status_code == 200
        assert shared_client.get(address).get_json()["state"] == state


def test_a_delay_runs_that_much_later_than_it_was_given(shared_client: FlaskClient) -> None:
    made = shared_client.post(SCHEDULES, json=BODY | {"delay_seconds": 3_600}).get_json()
    created, following = (datetime.fromisoformat(made[name]) for name in ("created_at", "next_run_at"))
    assert following == created + timedelta(hours=1)
    assert following.tzinfo == UTC


@pytest.mark.parametrize(
    "trigger",
    [
        {"rrule": "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO;BYHOUR=9;BYMINUTE=0;BYSECOND=0"},
        {"phrase": "every 2 weeks on Monday at 9:00"},
    ],
)
def test_an_edit_of_the_timezone_alone_stays_in_the_same_weeks(
    client: FlaskClient, time: ToldTime, trigger: dict[str, str]
) -> None:
    time.at = datetime(2026, 11, 18, 10, 15, 30, tzinfo=UTC)
    path = f"{SCHEDULES}/{client.post(SCHEDULES, json=BODY | trigger).get_json()['id']}"

    def coming() -> list[str]:
        query = {"after": "2026-12-01T00:00:00Z", "limit": 5}
        shown = client.get(f"{path}/preview", query_string=query).get_json()["occurrences"]
        return [each["local"][:16] for each in shown]

    wanted = coming()
    time.at += timedelta(days=8)
    assert client.put(path, json={"timezone": "Asia/Tokyo"}).status_code == 200
    assert coming() == wanted
    assert client.get(path).get_json()["timezone"] == "Asia/Tokyo"

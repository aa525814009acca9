"""Policies of lateness, as people meet them: in a schedule, a message, an export, a list and `why`."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

from scheduler_app.clock import clock
from scheduler_app.domain.lateness import CatchUp
from scheduler_app.store import Store
from scheduler_app.usecases.duties.expansion import Expansion
from tests.builders import schedule
from tests.integration.api.page_forms import fields_of

Create = Callable[..., dict[str, Any]]
POLICY = {
    "catch_up": "latest",
    "catch_up_window_seconds": 7_200,
    "late_after_seconds": 30,
    "expire_after_seconds": 900,
}


def test_a_schedule_shows_keeps_and_exports_its_policy(client: FlaskClient, create: Create) -> None:
    made = create(id="s1", **POLICY)
    assert {name: made[name] for name in POLICY} == POLICY
    edited = client.put("/api/schedules/s1", json={"name": "another"})
    assert {name: edited.get_json()[name] for name in POLICY} == POLICY
    (line,) = client.get("/api/schedules/export").text.splitlines()
    exported = json.loads(line)
    assert {name: exported[name] for name in POLICY} == POLICY
    client.delete("/api/schedules/s1")
    again = client.post("/api/schedules", json=exported)
    assert {name: again.get_json()[name] for name in POLICY} == POLICY


def test_without_a_policy_answers_show_the_defaults_and_exports_nothing(
    client: FlaskClient, create: Create, store: Store
) -> None:
    made = create(id="s1")
    assert (made["catch_up"], made["catch_up_window_seconds"], made["late_after_seconds"]) == (
        "all",
        3600,
        60,
    )
    assert "expire_after_seconds" not in made
    assert POLICY.keys().isdisjoint(json.loads(client.get("/api/schedules/export").text))
    stored = store.mongo.collection("schedules").find_one({"_id": "s1"})
    assert stored is not None
    assert "lateness" not in stored


def test_an_edit_takes_a_policy_away_and_cuts_nothing(
    client: FlaskClient, create: Create, store: Store
) -> None:
    made = create(id="s1", **POLICY)
    edited = client.put(
        "/api/schedules/s1", json={"expire_after_seconds": None, "catch_up": "all"}
    ).get_json()
    assert "expire_after_seconds" not in edited
    assert edited["catch_up"] == "all"
    assert edited["revision"] == made["revision"]
    client.put("/api/schedules/s1", json={"catch_up_window_seconds": 3600, "late_after_seconds": 60})
    stored = store.mongo.collection("schedules").find_one({"_id": "s1"})
    assert stored is not None
    assert "lateness" not in stored


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("catch_up", "some"),
        ("catch_up", None),
        ("late_after_seconds", 0),
        ("late_after_seconds", "soon"),
        ("catch_up_window_seconds", 400_000_000),
        ("expire_after_seconds", 0.5),
        ("expire_after_seconds", "1h"),
    ],
)
def test_a_wrong_one_is_refused_by_its_name(client: FlaskClient, field: str, wrong: object) -> None:
    body = {"name": "n", "callback_url": "http://127.0.0.1:9/", "cron": "0 0 * * *", field: wrong}
    answer = client.post("/api/schedules", json=body)
    assert answer.status_code == 422
    assert answer.get_json()["errors"][0]["pointer"] == f"/{field}"


def test_a_message_has_an_end_too(client: FlaskClient) -> None:
    body = {"id": "m1", "callback_url": "http://127.0.0.1:9/", "delay_seconds": 3600}
    made = client.post("/api/messages", json=body | {"expire_after_seconds": 60})
    assert made.status_code == 201, made.text
    assert client.get("/api/messages/m1").get_json()["expire_after_seconds"] == 60
    again = client.post("/api/messages", json=body | {"expire_after_seconds": 60})
    assert again.status_code == 200
    other = client.post("/api/messages", json=body | {"expire_after_seconds": 61})
    assert other.status_code == 409
    late = client.post("/api/messages", json=body | {"catch_up": "none"})
    assert late.status_code == 422


def test_what_was_missed_is_listed_and_explained(client: FlaskClient, store: Store) -> None:
    now = clock.now().replace(microsecond=0)
    began = now - timedelta(hours=1)
    store.schedules.insert(schedule(began, "s1", rrule="FREQ=SECONDLY", catch_up=CatchUp.NONE))
    expansion = Expansion(store, timeframe_seconds=60)
    while expansion.expand_page(now).full:
        pass
    listed = client.get("/api/events?state=expired&schedule_id=s1&limit=500").get_json()["events"]
    assert len(listed) == 500
    history = client.get("/api/schedules/s1/events/history?limit=500&page=3").get_json()["events"]
    (record,) = [row for row in history if "missed" in row]
    assert record["state"] == "expired"
    assert record["missed"]["count"] == 3600 - 60 - 1000 - 1
    assert record["missed"]["last"] == record["run_time"]
    assert client.get(f"/api/events/{record['_id']}").get_json()["missed"] == record["missed"]
    told = client.get(
        "/api/schedules/s1/why", query_string={"at": (began + timedelta(minutes=5)).isoformat()}
    ).get_json()
    assert not told["fires"]
    assert told["reason"]["code"] == "expired"
    assert "occurrences from" in told["reason"]["message"]
    assert "catch_up is none" in told["reason"]["message"]


EXPECTED = {"max_runtime_seconds": 600, "success_within_seconds": 93_600}


def test_what_is_expected_is_kept_exported_replaced_as_a_whole_and_taken_away(
    client: FlaskClient, create: Create
) -> None:
    assert "expect" not in create(id="s0")
    assert create(id="s1", expect=EXPECTED)["expect"] == EXPECTED
    exported = [json.loads(line) for line in client.get("/api/schedules/export").text.splitlines()]
    assert {each["id"]: each.get("expect") for each in exported} == {"s0": None, "s1": EXPECTED}
    edited = client.put("/api/schedules/s1", json={"expect": {"completes_within_seconds": 60}}).get_json()
    assert edited["expect"] == {"completes_within_seconds": 60}
    assert edited["revision"] == 1
    assert "expect" not in client.put("/api/schedules/s1", json={"expect": None}).get_json()


@pytest.mark.parametrize(
    ("given", "pointer"),
    [
        ({}, "/expect"),
        ({"max_runtime_seconds": 0}, "/expect/max_runtime_seconds"),
        ({"max_runtime": 5}, "/expect/max_runtime"),
        ({"success_within_seconds": None}, "/expect/success_within_seconds"),
        (5, "/expect"),
    ],
)
def test_what_cannot_be_expected_is_refused_by_the_name_of_its_field(
    client: FlaskClient, given: object, pointer: str
) -> None:
    asked = {"name": "n", "rrule": "FREQ=DAILY", "callback_url": "http://127.0.0.1:9/", "expect": given}
    answer = client.post("/api/schedules", json=asked)
    assert answer.status_code == 422
    assert [each["pointer"] for each in answer.get_json()["errors"]] == [pointer]


def test_a_form_gives_what_is_expected_as_one_field_of_its_own_for_each(
    client: FlaskClient, create: Create
) -> None:
    create(id="s1", expect=EXPECTED)
    page = client.get("/schedules/s1/edit").text
    given = fields_of(page)
    assert given["expect_success_within_seconds"] == "93600"
    given["expect_success_within_seconds"] = ""
    given["expect_completes_within_seconds"] = "60"
    saved = client.post("/schedules/s1/edit", data=given)
    assert saved.status_code == 303, saved.text
    shown = client.get("/api/schedules/s1").get_json()
    assert shown["expect"] == {"max_runtime_seconds": 600, "completes_within_seconds": 60}
    given = fields_of(client.get("/schedules/s1/edit").text)
    refused = client.post("/schedules/s1/edit", data=given | {"expect_max_runtime_seconds": "0"})
    assert refused.status_code == 422
    assert 'name="expect_max_runtime_seconds" value="0"' in refused.text
    gone = {name: "" if name.startswith("expect_") else value for name, value in given.items()}
    assert client.post("/schedules/s1/edit", data=gone).status_code == 303
    assert "expect" not in client.get("/api/schedules/s1").get_json()

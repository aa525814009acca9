"""Blackouts over HTTP."""

from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient

from scheduler_app.store import Store

Create = Callable[..., dict[str, Any]]
PATH = "/api/blackouts"
NIGHT = {"cron": "0 22 * * *", "timezone": "Europe/Zurich", "duration_seconds": 28_800, "tag": "billing"}


def test_it_is_set_shown_changed_and_deleted(client: FlaskClient) -> None:
    made = client.put(f"{PATH}/night", json=NIGHT)
    assert made.status_code == 201, made.text
    shown = made.get_json()
    assert {name: shown[name] for name in NIGHT} == NIGHT
    assert (shown["result"], shown["policy"]) == ("created", "postpone")
    assert shown["window"]["begins"] < shown["window"]["ends"]
    assert "22:00" in shown["description"]
    changed = client.put(f"{PATH}/night", json=NIGHT | {"policy": "skip", "note": "why"})
    assert (changed.status_code, changed.get_json()["result"]) == (200, "changed")
    again = client.put(f"{PATH}/night", json=NIGHT | {"policy": "skip", "note": "why"})
    assert (again.status_code, again.get_json()["result"]) == (200, "unchanged")
    assert again.get_json()["created_at"] == changed.get_json()["created_at"]
    got = client.get(f"{PATH}/night").get_json()
    assert (got["policy"], got["note"]) == ("skip", "why")
    assert [each["name"] for each in client.get(PATH).get_json()["blackouts"]] == ["night"]
    assert client.delete(f"{PATH}/night").status_code == 200
    assert client.delete(f"{PATH}/night").status_code == 404
    assert client.get(f"{PATH}/night").status_code == 404


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"tag": "x", "destination": "y"}, "/destination"),
        ({"tag": None}, "/tag"),
        ({"duration_seconds": 86_400}, "/duration_seconds"),
        ({"duration_seconds": 0}, "/duration_seconds"),
        ({"policy": "maybe"}, "/policy"),
        ({"cron": "nonsense"}, "/cron"),
        ({"rrule": "FREQ=DAILY"}, "/cron"),
        ({"timezone": "Nowhere/At all"}, "/timezone"),
        ({"every_seconds": 5}, "/every_seconds"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused_by_name(
    client: FlaskClient, body: dict[str, Any], pointer: str
) -> None:
    answer = client.put(f"{PATH}/night", json=NIGHT | body)
    assert answer.status_code == 422, answer.text
    assert pointer in [each["pointer"] for each in answer.get_json()["errors"]]
    assert client.get(PATH).get_json()["blackouts"] == []


def test_two_that_together_are_always_on_are_refused(client: FlaskClient) -> None:
    half = {"duration_seconds": 43_200, "tag": "billing"}
    assert client.put(f"{PATH}/day", json=half | {"cron": "0 6 * * *"}).status_code == 201
    refused = client.put(f"{PATH}/night", json=half | {"cron": "0 18 * * *"})
    assert refused.status_code == 422
    assert "day" in refused.get_json()["detail"]
    other = half | {"cron": "0 18 * * *", "tag": "other"}
    assert client.put(f"{PATH}/night", json=other).status_code == 201


def test_one_that_somebody_bent_is_named(client: FlaskClient, store: Store) -> None:
    client.put(f"{PATH}/night", json=NIGHT)
    change = {"$set": {"pinned": "no rule"}}
    store.mongo.collection("blackouts").update_one({"_id": "night"}, change)
    (shown,) = client.get(PATH).get_json()["blackouts"]
    assert shown["name"] == "night"
    assert "cannot be evaluated" in shown["corrupt"]
    assert client.get(f"{PATH}/night").get_json() == shown
    assert "cannot be read, and stop nothing: night" in client.get("/").text
    assert client.put(f"{PATH}/night", json=NIGHT).get_json()["result"] == "changed"
    assert "cannot be read" not in client.get("/").text


def test_a_dry_run_sets_nothing(client: FlaskClient) -> None:
    assert client.put(f"{PATH}/night?dry_run=true", json=NIGHT).status_code == 201
    assert client.get(PATH).get_json()["blackouts"] == []


def test_preview_and_why_say_what_becomes_of_an_occurrence_within(
    client: FlaskClient, create: Create
) -> None:
    made = create(rrule="DTSTART:20400101T000000Z\nRRULE:FREQ=HOURLY", tags=["billing"])
    path = f"/api/schedules/{made['id']}"
    body = {"cron": "0 22 * * *", "duration_seconds": 28_800, "tag": "billing", "policy": "skip"}
    assert client.put(f"{PATH}/night", json=body).status_code == 201
    page = client.get(f"/schedules/{made['id']}").text
    assert "Blackout “night”: skipped" in page
    preview = client.get(f"{path}/preview?after=2040-01-02T05:00:00Z&limit=2").get_json()
    assert [each["run_time"] for each in preview["occurrences"]] == [
        "2040-01-02T06:00:00Z",
        "2040-01-02T07:00:00Z",
    ]
    assert all("blackout" not in each for each in preview["occurrences"])
    preview = client.get(f"{path}/preview?after=2040-01-02T04:00:00Z&limit=1").get_json()
    (within,) = preview["occurrences"]
    assert within["blackout"] == {"name": "night", "until": "2040-01-02T06:00:00Z", "policy": "skip"}
    why = client.get(f"{path}/why?at=2040-01-02T05:00:00Z").get_json()
    assert (why["fires"], why["reason"]["code"]) == (False, "blackout")
    body["policy"] = "postpone"
    client.put(f"{PATH}/night", json=body)
    why = client.get(f"{path}/why?at=2040-01-02T05:00:00Z").get_json()
    assert why["fires"]
    assert any("night" in each and "2040-01-02T06:00:00Z" in each for each in why["warnings"])

"""Pauses over HTTP: what is given with one, and what answers show of it."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

Create = Callable[..., dict[str, Any]]

FAR = "2039-01-01T00:00:00Z"


def test_a_pause_has_a_reason_a_note_and_an_end(client: FlaskClient, create: Create) -> None:
    path = f"/api/schedules/{create()['id']}"
    paused = client.post(f"{path}/pause", json={"until": FAR, "note": "the receiver moves"}).get_json()
    wanted = {"state": "paused", "reason": "by request", "note": "the receiver moves", "paused_until": FAR}
    assert {name: paused[name] for name in wanted} == wanted
    assert client.get(path).get_json() == paused
    why = client.get(f"{path}/why?at=2038-01-01T00:00:00Z").get_json()
    assert "the receiver moves" in str(why)
    assert FAR in str(why)
    resumed = client.post(f"{path}/resume").get_json()
    assert resumed["state"] == "active"
    assert not {"reason", "note", "paused_until"} & resumed.keys()


def test_why_does_not_blame_a_pause_for_what_follows_its_end(client: FlaskClient, create: Create) -> None:
    path = f"/api/schedules/{create()['id']}"
    client.post(f"{path}/pause", json={"until": FAR})
    assert client.get(f"{path}/why?at=2040-01-01T00:00:00Z").get_json()["fires"]


def test_a_second_pause_sets_the_end_anew_and_makes_no_second_cut(
    client: FlaskClient, create: Create
) -> None:
    path = f"/api/schedules/{create()['id']}"
    first = client.post(f"{path}/pause", json={"until": FAR, "note": "why"}).get_json()
    again = client.post(f"{path}/pause", json={"until": FAR}).get_json()
    assert again == first
    for_good = client.post(f"{path}/pause").get_json()
    assert "paused_until" not in for_good
    assert (for_good["note"], for_good["revision"]) == ("why", first["revision"])
    assert for_good["version"] == first["version"] + 1


def test_an_end_that_has_passed_is_refused_by_name(client: FlaskClient, create: Create) -> None:
    past = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    made = create(tags=["t"])
    for path, more in ((f"/api/schedules/{made['id']}/pause", {}), ("/api/schedules/pause", {"tag": "t"})):
        answer = client.post(path, json={"until": past, **more})
        assert answer.status_code == 422, answer.text
        assert answer.get_json()["errors"][0]["pointer"] == "/until"
    assert client.get(f"/api/schedules/{made['id']}").get_json()["state"] == "active"


def test_many_are_paused_with_a_note_and_an_end_and_those_paused_by_hand_are_left(
    client: FlaskClient, create: Create
) -> None:
    by_hand, other = create(tags=["t"])["id"], create(tags=["t"])["id"]
    client.post(f"/api/schedules/{by_hand}/pause", json={"note": "by hand"})
    answer = client.post("/api/schedules/pause", json={"tag": "t", "until": FAR, "note": "all"}).get_json()
    assert (answer["paused"], [each["id"] for each in answer["skipped"]]) == (1, [by_hand])
    assert client.get(f"/api/schedules/{other}").get_json()["paused_until"] == FAR
    kept = client.get(f"/api/schedules/{by_hand}").get_json()
    assert kept["note"] == "by hand"
    assert "paused_until" not in kept


def test_a_pause_survives_an_edit_of_the_rule_and_an_export(client: FlaskClient, create: Create) -> None:
    path = f"/api/schedules/{create()['id']}"
    client.post(f"{path}/pause", json={"until": FAR, "note": "why"})
    edited = client.put(path, json={"rrule": "FREQ=DAILY"}).get_json()
    assert (edited["state"], edited["paused_until"], edited["note"]) == ("paused", FAR, "why")
    (exported,) = client.get("/api/schedules/export").text.splitlines()
    client.delete(path)
    imported = client.post("/api/schedules", json=json.loads(exported) | {"id": "again"}).get_json()
    assert (imported["state"], imported["paused_until"], imported["note"]) == ("paused", FAR, "why")


@pytest.mark.parametrize("field", ["note", "paused_until"])
def test_what_belongs_to_a_pause_is_refused_for_a_schedule_that_is_not_paused(
    client: FlaskClient, create: Create, field: str
) -> None:
    value = {"note": "x", "paused_until": FAR}[field]
    answer = client.put(f"/api/schedules/{create()['id']}", json={field: value})
    assert answer.status_code == 422, answer.text
    assert answer.get_json()["errors"][0]["pointer"] == f"/{field}"


def test_a_put_pauses_with_a_note_and_an_end_and_takes_them_away(client: FlaskClient, create: Create) -> None:
    path = f"/api/schedules/{create()['id']}"
    body = {"state": "paused", "note": "why", "paused_until": FAR}
    first = client.put(path, json=body).get_json()
    assert (first["note"], first["paused_until"], first["reason"]) == ("why", FAR, "by request")
    assert client.put(path, json=body).get_json()["result"] == "unchanged"
    bare = client.put(path, json={"note": None, "paused_until": None}).get_json()
    assert not {"note", "paused_until"} & bare.keys()
    assert bare["revision"] == first["revision"]

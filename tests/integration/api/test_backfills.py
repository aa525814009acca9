"""Backfill as people meet it."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

Create = Callable[..., dict[str, Any]]
HOURLY = "DTSTART:20260101T000000Z\nRRULE:FREQ=HOURLY"
SPAN = {"from": "2026-01-02T00:00:00Z", "to": "2026-01-02T09:00:00Z"}


def test_a_backfill_from_its_plan_to_its_end(client: FlaskClient, create: Create) -> None:
    made = create(id="hourly", rrule=HOURLY)["id"]
    path = f"/api/schedules/{made}/backfill"
    assert client.get(path).status_code == 404
    planned = client.post(path, json=SPAN | {"dry_run": True}).get_json()
    assert (planned["occurrences"], planned["left_out"], planned["dry_run"]) == (10, 0, True)
    assert client.get(path).status_code == 404
    started = client.post(path, json=SPAN | {"rate_per_second": 5})
    assert started.status_code == 202
    assert started.get_json()["state"] == "running"
    assert started.get_json()["seconds_left"] == 2
    assert client.post(path, json=SPAN).status_code == 409
    assert client.delete(path).get_json()["state"] == "cancelled"
    assert client.get(path).get_json()["state"] == "cancelled"


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/from"),
        ({"from": "soon"}, "/from"),
        ({"from": "2020-01-01T00:00:00Z", "to": "2019-01-01T00:00:00Z"}, "/to"),
        ({"from": "2020-01-01T00:00:00Z", "to": "2999-01-01T00:00:00Z"}, "/to"),
        ({"from": "2020-01-01T00:00:00Z", "rate_per_second": 0}, "/rate_per_second"),
        ({"from": "2020-01-01T00:00:00Z", "rate_per_second": 1_001}, "/rate_per_second"),
        ({"from": "2020-01-01T00:00:00Z", "overlap": "cancel"}, "/overlap"),
        ({"from": "2020-01-01T00:00:00Z", "speed": 1}, "/speed"),
    ],
)
def test_a_wrong_one_is_refused_by_its_field(
    client: FlaskClient, create: Create, body: dict[str, Any], pointer: str
) -> None:
    made = create(rrule=HOURLY)["id"]
    answer = client.post(f"/api/schedules/{made}/backfill", json=body)
    assert answer.status_code == 422
    assert answer.get_json()["errors"][0]["pointer"] == pointer


def test_a_schedule_that_is_not_there_has_none(client: FlaskClient) -> None:
    for call in (client.get, client.delete):
        assert call("/api/schedules/gone/backfill").status_code == 404
    body = {"from": (datetime.now(UTC) - timedelta(days=1)).isoformat()}
    assert client.post("/api/schedules/gone/backfill", json=body).status_code == 404

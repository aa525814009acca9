"""Times at the ends of the calendar: what no document can hold is refused, and no sum of times is a 500."""

from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient

Create = Callable[..., dict[str, Any]]
LAST = "9999-12-31T23:59:59.999Z"
REQUEST = {"name": "far", "callback_url": "http://127.0.0.1:9/"}


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"run_at": LAST}, "run_at"),
        ({"run_at": "9999-06-01T00:00:00", "timezone": "UTC"}, "run_at"),
        ({"run_at": "1900-01-01T00:00:00Z", "state": "paused"}, "run_at"),
        ({"every_seconds": 60, "start_at": LAST}, "start_at"),
        ({"every_seconds": 60, "start_at": "0001-06-01T00:00:00Z"}, "start_at"),
        ({"rrule": "DTSTART:99990101T000000Z\nRRULE:FREQ=DAILY"}, "rrule"),
        ({"rrule": "FREQ=DAILY", "state": "paused", "paused_until": LAST}, "paused_until"),
    ],
)
def test_a_time_that_no_document_can_hold_is_refused(
    client: FlaskClient, given: dict[str, Any], field: str
) -> None:
    answer = client.post("/api/schedules", json=REQUEST | given)
    assert answer.status_code == 422, answer.text
    assert answer.get_json()["errors"][0]["pointer"] == f"/{field}"
    assert "9998" in answer.get_json()["errors"][0]["detail"]


def test_the_last_year_that_documents_hold_is_taken(client: FlaskClient, create: Create) -> None:
    made = create(run_at="9998-12-31T23:59:59Z")
    assert client.get(f"/api/schedules/{made['id']}").status_code == 200


def test_a_pause_ends_within_what_documents_hold(client: FlaskClient, create: Create) -> None:
    made = create(tags=["t"])
    for path, more in ((f"/api/schedules/{made['id']}/pause", {}), ("/api/schedules/pause", {"tag": "t"})):
        answer = client.post(path, json={"until": LAST, **more})
        assert answer.status_code == 422, answer.text
        assert answer.get_json()["errors"][0]["pointer"] == "/until"
    assert client.get(f"/api/schedules/{made['id']}").get_json()["state"] == "active"


@pytest.mark.parametrize(
    "given",
    [
        {"delay_seconds": 86_400},
        {"phrase": "in 10 minutes"},
        {"phrase": "in 3 days at 9:00"},
        {"phrase": "tomorrow at 9:00"},
    ],
    ids=str,
)
def test_a_preview_that_leads_beyond_the_calendar_is_refused(
    client: FlaskClient, given: dict[str, Any]
) -> None:
    answer = client.post("/api/schedules/preview", json=given | {"at": LAST})
    assert answer.status_code == 422, answer.text


@pytest.mark.parametrize("query", [{"from": LAST}, {"from": LAST, "bucket": 60}], ids=str)
def test_a_forecast_from_the_last_day_is_refused(client: FlaskClient, query: dict[str, Any]) -> None:
    answer = client.get("/api/forecast", query_string=query)
    assert answer.status_code == 422, answer.text
    assert answer.get_json()["errors"][0]["pointer"].endswith("from")

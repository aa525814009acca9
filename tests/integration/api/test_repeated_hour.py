"""Whatever people do in the first pass of an hour that clocks repeat: `overlap: last` fires in the second
one."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

from scheduler_app.store import Store
from scheduler_app.usecases.duties.expansion import Expansion
from tests.integration.api.conftest import ToldTime

#: Europe/Zurich repeats 02:00 to 03:00 on 31 October 2027. This is 02:30 of the first pass, whose 02:01 is
#: over; the occurrence of 02:01 lies in the second one.
FIRST_PASS = datetime.fromisoformat("2027-10-31T00:30:00Z")
DUE = "2027-10-31T01:01:00Z"
DAILY = {"rrule": "DTSTART;TZID=Europe/Zurich:20271001T020100\nRRULE:FREQ=DAILY", "overlap": "last"}


@pytest.fixture(autouse=True)
def first_pass(time: ToldTime) -> None:
    time.at = FIRST_PASS


def made(client: FlaskClient, **fields: Any) -> str:
    body = {"name": "nightly", "callback_url": "http://127.0.0.1:9/"} | DAILY | fields
    answer = client.post("/api/schedules", json=body)
    assert answer.status_code == 201, answer.text
    return f"/api/schedules/{answer.get_json()['id']}"


def is_owed(client: FlaskClient, store: Store, path: str, time: ToldTime) -> None:
    """The occurrence is shown as the next one, and a beat makes its event when it is near."""
    assert client.get(path).get_json()["next_run_at"] == DUE
    shown = client.get(f"{path}/preview?limit=2").get_json()["occurrences"]
    assert [each["run_time"] for each in shown] == [DUE, "2027-11-01T01:01:00Z"]
    assert client.get(f"{path}/why?at={DUE}").get_json()["fires"] is True
    time.at = FIRST_PASS + timedelta(minutes=28)
    Expansion(store, timeframe_seconds=600).expand_page(time.at)
    waiting = client.get(f"{path}/events/pending").get_json()
    assert [each["run_time"] for each in waiting["events"]] == [DUE]


def test_a_schedule_that_is_created_then(client: FlaskClient, store: Store, time: ToldTime) -> None:
    assert client.post("/api/schedules/preview", json=DAILY).get_json()["occurrences"][0]["run_time"] == DUE
    is_owed(client, store, made(client), time)


def test_a_schedule_that_is_edited_then(client: FlaskClient, store: Store, time: ToldTime) -> None:
    path = made(client, rrule="FREQ=YEARLY")
    assert client.put(path, json=DAILY).status_code == 200
    is_owed(client, store, path, time)


def test_a_schedule_whose_choice_alone_is_edited_then(
    client: FlaskClient, store: Store, time: ToldTime
) -> None:
    path = made(client, overlap="first")
    assert client.get(path).get_json()["next_run_at"] == "2027-11-01T01:01:00Z"
    assert client.put(path, json={"overlap": "last"}).status_code == 200
    is_owed(client, store, path, time)


def test_a_schedule_that_is_resumed_then(client: FlaskClient, store: Store, time: ToldTime) -> None:
    time.at = FIRST_PASS - timedelta(days=2)
    path = made(client)
    assert client.post(f"{path}/pause").status_code == 200
    time.at = FIRST_PASS
    assert client.post(f"{path}/resume").status_code == 200
    is_owed(client, store, path, time)


def test_a_cron_expression_that_is_given_then(client: FlaskClient, store: Store, time: ToldTime) -> None:
    fields = {"rrule": None, "cron": "1 2 * * *", "timezone": "Europe/Zurich"}
    is_owed(client, store, made(client, **fields), time)

"""Jitter, as people meet it: in a schedule, its preview, its events, `why` and its export."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from flask.testing import FlaskClient

from scheduler_app.domain.event import due

Create = Callable[..., dict[str, Any]]
NEXT = "2040-01-01T00:00:00Z"


def due_of(schedule_id: str, run_time: str, seconds: float) -> str:
    at = due(schedule_id, datetime.fromisoformat(run_time), seconds)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def test_a_saved_schedule_shows_when_each_callback_falls_due(client: FlaskClient, create: Create) -> None:
    made = create(id="nightly", jitter_seconds=600)
    assert made["jitter_seconds"] == 600
    assert (made["next_run_at"], made["next_due_at"]) == (NEXT, due_of("nightly", NEXT, 600))
    occurrences = client.get("/api/schedules/nightly/preview").get_json()["occurrences"]
    assert [each["due_at"] for each in occurrences] == [
        due_of("nightly", each["run_time"], 600) for each in occurrences
    ]
    client.put("/api/schedules/nightly", json={"name": "another name"})
    assert client.get("/api/schedules/nightly/preview").get_json()["occurrences"] == occurrences
    why = client.get("/api/schedules/nightly/why", query_string={"at": NEXT}).get_json()
    assert why["at"]["due_at"] == made["next_due_at"]
    assert '"jitter_seconds":600' in client.get("/api/schedules/export").text.replace(" ", "")


def test_an_unsaved_preview_shows_the_span_or_with_an_id_the_instants(client: FlaskClient) -> None:
    asked = {"rrule": "DTSTART:20400101T000000Z\nRRULE:FREQ=YEARLY", "jitter_seconds": 90, "limit": 1}
    (shown,) = client.post("/api/schedules/preview", json=asked).get_json()["occurrences"]
    assert (shown["earliest"], shown["latest"]) == (NEXT, "2040-01-01T00:01:30Z")
    (shown,) = client.post("/api/schedules/preview", json=asked | {"id": "nightly"}).get_json()["occurrences"]
    assert shown["due_at"] == due_of("nightly", NEXT, 90)
    assert shown.keys().isdisjoint({"earliest", "latest"})


def test_without_jitter_nothing_speaks_of_it(client: FlaskClient, create: Create) -> None:
    made = create()
    assert made["jitter_seconds"] == 0
    assert "next_due_at" not in made
    (shown, *_) = client.get(f"/api/schedules/{made['id']}/preview").get_json()["occurrences"]
    assert shown.keys().isdisjoint({"due_at", "earliest", "latest"})


@pytest.mark.parametrize("wrong", [-1, 86_400.5, "often", True, None])
def test_a_wrong_one_is_refused_by_its_name(client: FlaskClient, wrong: object) -> None:
    body = {"name": "n", "callback_url": "http://127.0.0.1:9/", "cron": "0 0 * * *", "jitter_seconds": wrong}
    answer = client.post("/api/schedules", json=body)
    assert answer.status_code == 422
    assert answer.get_json()["errors"][0]["pointer"] == "/jitter_seconds"

"""What lists show beside each row when they are asked: last outcomes, kill switches, how destinations are."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from flask import Flask
from flask.testing import FlaskClient

from scheduler_app.api.services import Services
from scheduler_app.api.wire.schedule_list import MOST_OUTCOMES, MOST_WITH_OUTCOMES
from scheduler_app.domain.cause import Tally, failing_key
from scheduler_app.domain.http_action import destination_key
from scheduler_app.store import Store
from scheduler_app.usecases.questions import destinations as questions
from tests.builders import event
from tests.integration.api.conftest import ToldTime

Create = Callable[..., dict[str, Any]]
MINUTE = timedelta(minutes=1)


def store_of(app: Flask) -> Store:
    found: Services = app.extensions["scheduler"]
    return found.store


def ran(store: Store, schedule_id: str, at: datetime, state: str, *, attempt: int, **fields: Any) -> None:
    store.events.insert([event(at, schedule_id)], at, "made")
    change = {"$set": {"state": state, "attempt": attempt} | fields, "$unset": {"due_at": ""}}
    store.mongo.collection("events").update_one({"schedule_id": schedule_id, "run_time": at}, change)


def test_a_list_shows_last_outcomes_and_what_stops_each_only_where_it_is_asked(
    app: Flask, client: FlaskClient, create: Create, time: ToldTime
) -> None:
    store = store_of(app)
    made, other = create(tags=["t"])["id"], create()["id"]
    paused = create(tags=["t"])["id"]
    assert client.post(f"/api/schedules/{paused}/pause").status_code == 200
    for number, state in enumerate(("error", "completed", "completed")):
        attempts = [{"number": 1, "status_code": 200, "duration_ms": 12.5}]
        ran(store, made, time.at - number * MINUTE, state, attempt=number + 1, attempts=attempts)
    ran(store, made, time.at - 5 * MINUTE, "cancelled", attempt=0, archived_at=time.at - 9 * MINUTE)
    assert client.put("/api/kill-switch", json={"tag": "t"}).status_code in (200, 201)
    for row in client.get("/api/schedules").get_json()["schedules"]:
        assert not {"last_outcomes", "held_by"} & row.keys()
    time.at += MINUTE
    rows = client.get("/api/schedules?outcomes=2").get_json()["schedules"]
    found = {row["id"]: row for row in rows}
    assert [(run["state"], run["tries"]) for run in found[made]["last_outcomes"]] == [
        ("error", 1),
        ("completed", 2),
    ]
    assert found[made]["last_outcomes"][0].keys() == {
        *("event_id", "run_time", "state", "tries", "status_code", "duration_ms")
    }
    assert found[made]["held_by"] == {"scope": "tag", "name": "t"}
    assert found[other]["last_outcomes"] == []
    # A paused one sends nothing by itself, whatever is stopped.
    assert [("held_by" in found[each]) for each in (made, other, paused)] == [True, False, False]


def test_what_lists_show_beside_each_row_is_bounded(client: FlaskClient) -> None:
    for query in (
        f"outcomes={MOST_OUTCOMES + 1}",
        "outcomes=0",
        f"outcomes=1&limit={MOST_WITH_OUTCOMES + 1}",
    ):
        assert client.get(f"/api/schedules?{query}").status_code == 422, query
    refused = client.get(f"/api/destinations?health=true&limit={questions.MOST_AT_ONCE + 1}")
    assert refused.get_json()["errors"][0]["pointer"] == "/limit"


def test_the_list_of_destinations_says_how_each_is(app: Flask, client: FlaskClient, time: ToldTime) -> None:
    store = store_of(app)
    for name in ("well", "fails", "paused", "stopped"):
        body: dict[str, Any] = {"url": "http://127.0.0.1:9/"}
        if name == "well":
            body |= {"concurrency": 3}
        assert client.put(f"/api/destinations/{name}", json=body).status_code == 201
    assert client.post("/api/destinations/paused/pause").status_code == 200
    assert client.put("/api/kill-switch", json={"destination": "stopped"}).status_code in (200, 201)
    named = {"name": "named", "destination": "well", "on_demand": True}
    own = [client.post("/api/schedules", json=named).get_json()["id"] for _ in range(2)]
    for number, each in enumerate(own):
        ran(store, each, time.at - number * MINUTE, "completed", attempt=1)
    failed = failing_key("e", destination_key("fails"), 503, None)
    over = failing_key("e", destination_key("well"), 503, None)
    store.causes.touch([Tally(failed, time.at, time.at, failed=3), Tally(over, time.at, time.at, failed=3)])
    assert store.causes.end(over, time.at)
    assert all("health" not in row for row in client.get("/api/destinations").get_json()["destinations"])
    time.at += MINUTE
    rows = client.get("/api/destinations?health=true").get_json()["destinations"]
    found = {row["name"]: row["health"] for row in rows}
    assert {name: health["state"] for name, health in found.items()} == {
        name: "failing" if name == "fails" else name for name in found
    }
    assert len(found) == 4
    assert (found["well"]["schedules"], found["fails"]["schedules"]) == (2, 0)
    assert [run["state"] for run in found["well"]["last_runs"]] == ["completed"] * 2
    assert "failing_since" in found["fails"]
    assert "failure_id" not in found["well"]
    # A pause is a limit, too.
    assert {row["name"] for row in rows if "flow" in row} == {"well", "paused"}

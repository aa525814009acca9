"""What a schedule did last and does next, in its answers and as a filter."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from flask.testing import FlaskClient

from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.store.events.outcomes import RunResult

SECOND = timedelta(seconds=1)
Create = Callable[..., dict[str, Any]]


def ran(store: Store, schedule_id: str, time: datetime, outcome: State, ended: int = 1) -> RunResult:
    run = RunResult(schedule_id, time, outcome, f"{schedule_id}-1", time + ended * SECOND)
    store.last_runs.write([run])
    return run


def listed(client: FlaskClient, **query: Any) -> set[str]:
    answer = client.get("/api/schedules", query_string={"limit": 50} | query)
    assert answer.status_code == 200, answer.text
    return {row["id"] for row in answer.get_json()["schedules"]}


def test_a_schedule_tells_its_last_run_and_its_next_one(
    client: FlaskClient, store: Store, create: Create
) -> None:
    made = create()
    assert made["next_run"] == {"time": made["next_run_at"]}
    assert "last_run" not in made
    tag = client.get(f"/api/schedules/{made['id']}").headers["ETag"]
    time = datetime.fromisoformat(made["created_at"]) + SECOND
    time = time.replace(microsecond=0)
    ran(store, made["id"], time, State.COMPLETED)
    answer = client.get(f"/api/schedules/{made['id']}", headers={"If-None-Match": tag})
    assert answer.status_code == 200, "its last run has changed what there is to see"
    last = answer.get_json()["last_run"]
    assert (last["outcome"], last["event_id"]) == ("completed", f"{made['id']}-1")
    assert datetime.fromisoformat(last["time"]) == time
    assert datetime.fromisoformat(last["ended_at"]) == time + SECOND
    # People's edits leave it alone.
    client.put(f"/api/schedules/{made['id']}", json={"name": "edited", "rrule": "FREQ=YEARLY"})
    paused = client.post(f"/api/schedules/{made['id']}/pause").get_json()
    assert paused["last_run"] == last
    assert "next_run" not in paused


def test_the_newest_run_stays_whatever_comes_late(client: FlaskClient, store: Store, create: Create) -> None:
    made = create()["id"]
    time = datetime.fromisoformat(client.get(f"/api/schedules/{made}").get_json()["created_at"]) + 60 * SECOND
    for at, outcome, ended, expected in (
        (time, State.RETRYING, 1, "retrying"),
        (time, State.ERROR, 9, "error"),
        (time, State.RETRYING, 5, "error"),
        (time - SECOND, State.COMPLETED, 30, "error"),
        (time + SECOND, State.COMPLETED, 2, "completed"),
        (time - 3600 * SECOND, State.ERROR, 1, "completed"),
    ):
        ran(store, made, at, outcome, ended)
        assert client.get(f"/api/schedules/{made}").get_json()["last_run"]["outcome"] == expected


def test_a_run_of_an_earlier_schedule_of_the_same_id_is_not_noted(
    client: FlaskClient, store: Store, create: Create
) -> None:
    made = create()
    ran(store, made["id"], datetime.fromisoformat(made["created_at"]) - 600 * SECOND, State.ERROR)
    assert "last_run" not in client.get(f"/api/schedules/{made['id']}").get_json()


def test_schedules_are_found_by_the_outcome_of_their_last_run(
    client: FlaskClient, store: Store, create: Create
) -> None:
    made = {name: create(name=name, tags=[name[0]]) for name in ("good", "bad", "busy", "new")}
    for name, outcome in (("good", State.COMPLETED), ("bad", State.ERROR), ("busy", State.RETRYING)):
        each = made[name]
        ran(store, each["id"], datetime.fromisoformat(each["created_at"]) + SECOND, outcome)
    for query, expected in (
        ({"last_outcome": "error"}, {"bad"}),
        ({"last_outcome": "completed"}, {"good"}),
        ({"last_outcome": "retrying", "tag": "b"}, {"busy"}),
        ({"last_outcome": "error", "name": "busy"}, set()),
        ({"state": "active", "tag": "b"}, {"bad", "busy"}),
        ({"state": "paused"}, set()),
        ({}, set(made)),
    ):
        assert listed(client, **query) == {made[name]["id"] for name in expected}, query
    assert client.get("/api/schedules?last_outcome=cancelled").status_code == 422
    # As every filter of the list it also chooses what to edit.
    paused = client.post("/api/schedules/pause", json={"last_outcome": "error"}).get_json()
    assert paused["paused"] == 1
    assert listed(client, state="paused") == {made["bad"]["id"]}


def test_a_last_run_that_somebody_bent_is_left_out(client: FlaskClient, store: Store, create: Create) -> None:
    made = create()
    for bent in ("yesterday", {"time": "noon"}, {"outcome": 5, "time": datetime(2026, 1, 1)}):  # noqa: DTZ001
        store.mongo.collection("schedules").update_one({"_id": made["id"]}, {"$set": {"last_run": bent}})
        answer = client.get(f"/api/schedules/{made['id']}")
        assert (answer.status_code, answer.get_json()["state"]) == (200, "active")
        assert "last_run" not in answer.get_json()
        ran(store, made["id"], datetime.fromisoformat(made["created_at"]) + 60 * SECOND, State.ERROR)
        assert client.get(f"/api/schedules/{made['id']}").get_json()["last_run"]["outcome"] == "error"

"""What a schedule did last and does next, in its answers and as a filter."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from flask.testing import FlaskClient

from scheduler_app.clock import clock
from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.store.events.outcomes import PastEvent, PastEvents
from scheduler_app.store.schedules.last_runs import RunResult
from scheduler_app.usecases.duties import housekeeping
from scheduler_app.usecases.duties.housekeeping import Inspection
from tests.builders import event, schedule

SECOND = timedelta(seconds=1)
Create = Callable[..., dict[str, Any]]


def ran(
    store: Store, schedule_id: str, time: datetime, outcome: State, ended: int = 1, *, told: bool = True
) -> RunResult:
    """An event that was attempted; its worker has told of it, unless it was killed before."""
    ran = event(time, schedule_id)
    run = RunResult(schedule_id, time, outcome, ran.id, time + ended * SECOND)
    attempt = {"number": 1, "started_at": time, "duration_ms": 5.0, "status_code": 200}
    store.mongo.collection("events").delete_one({"_id": ran.id})
    PastEvents(store.mongo).insert([PastEvent(ran, outcome, run.ended_at, "Attempt 1 ended", [attempt])])
    if told:
        store.last_runs.write([run])
    return run


def old(store: Store, made: dict[str, Any]) -> datetime:
    """Makes a schedule older; returns when it was made then."""
    created_at = datetime.fromisoformat(made["created_at"]).replace(microsecond=0) - timedelta(days=2)
    store.mongo.collection("schedules").update_one({"_id": made["id"]}, {"$set": {"created_at": created_at}})
    return created_at


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
    time = old(store, made) + SECOND
    run = ran(store, made["id"], time, State.COMPLETED)
    answer = client.get(f"/api/schedules/{made['id']}", headers={"If-None-Match": tag})
    assert answer.status_code == 200, "its last run has changed what there is to see"
    last = answer.get_json()["last_run"]
    assert (last["outcome"], last["event_id"]) == ("completed", run.event_id)
    assert datetime.fromisoformat(last["time"]) == time
    assert datetime.fromisoformat(last["ended_at"]) == time + SECOND
    # People's edits leave it alone.
    client.put(f"/api/schedules/{made['id']}", json={"name": "edited", "rrule": "FREQ=YEARLY"})
    paused = client.post(f"/api/schedules/{made['id']}/pause").get_json()
    assert paused["last_run"] == last
    assert "next_run" not in paused


def test_the_newest_run_stays_whatever_comes_late(client: FlaskClient, store: Store, create: Create) -> None:
    created = create()
    made, time = created["id"], old(store, created) + 60 * SECOND
    for at, outcome, ended, expected in (
        (time, State.RETRYING, 1, "retrying"),
        (time, State.ERROR, 9, "error"),
        (time - SECOND, State.COMPLETED, 30, "error"),
        (time + SECOND, State.COMPLETED, 2, "completed"),
        (time - 3600 * SECOND, State.ERROR, 1, "completed"),
        (time - SECOND, State.RETRYING, 60, "completed"),
    ):
        ran(store, made, at, outcome, ended)
        assert client.get(f"/api/schedules/{made}").get_json()["last_run"]["outcome"] == expected
        assert listed(client, last_outcome=expected) == {made}, "and is found by it"
    # What a worker tells late, of an event that has gone on since.
    late = event(time + SECOND, made)
    store.last_runs.write([RunResult(made, late.run_time, State.RETRYING, late.id, late.run_time)])
    assert listed(client, last_outcome="completed") == {made}


def test_success_is_written_to_a_schedule_only_after_a_failure(
    client: FlaskClient, store: Store, create: Create
) -> None:
    made = create()
    time, schedules = old(store, made), store.mongo.collection("schedules")

    def noted() -> Any:
        return (schedules.find_one({"_id": made["id"]}) or {}).get("last_run", {}).get("time")

    for second, outcome, at in (
        (1, State.COMPLETED, None),
        (2, State.COMPLETED, None),
        (3, State.ERROR, 3),
        (4, State.ERROR, 3),
        (5, State.COMPLETED, 5),
        (6, State.COMPLETED, 5),
    ):
        run = ran(store, made["id"], time + second * SECOND, outcome)
        assert noted() == (None if at is None else time + at * SECOND)
        last = client.get("/api/schedules").get_json()["schedules"][0]["last_run"]
        assert (last["event_id"], last["outcome"]) == (run.event_id, outcome)
    # Nobody told of the last one: the list finds it all the same.
    run = ran(store, made["id"], time + 7 * SECOND, State.COMPLETED, told=False)
    assert client.get(f"/api/schedules/{made['id']}").get_json()["last_run"]["event_id"] == run.event_id


def test_what_is_to_be_tried_again_or_has_not_ended_tells_the_attempt_before(
    client: FlaskClient, store: Store, create: Create
) -> None:
    made = create()
    time, events = old(store, made), store.mongo.collection("events")
    first, second = (ran(store, made["id"], time + each * SECOND, State.ERROR) for each in (1, 2))
    for change, expected in (
        # A person has it sent again; then it is tried again; then it is withdrawn.
        ({"state": "ready_queue", "due_at": time}, (second, "error")),
        ({"status.2": {"time": time, "status": "retrying", "message": "again"}}, (second, "retrying")),
        ({"state": "cancelled"}, (second, "retrying")),
        # It was never attempted.
        ({"attempt": 0}, (first, "error")),
        # Its document is bent.
        ({"attempt": 1, "status": "bent"}, (first, "error")),
        ({"status": ["bent", 5]}, (first, "error")),
    ):
        events.update_one({"_id": second.event_id}, {"$set": change})
        last = client.get(f"/api/schedules/{made['id']}").get_json()["last_run"]
        assert (last["event_id"], last["outcome"]) == (expected[0].event_id, expected[1]), change


def test_an_older_failure_told_after_a_newer_success_is_not_the_last_run(
    client: FlaskClient, store: Store, create: Create
) -> None:
    made = create()
    time = old(store, made)
    # The newer run succeeded as the one before it, and wrote nothing.
    ran(store, made["id"], time + 2 * SECOND, State.COMPLETED)
    ran(store, made["id"], time + SECOND, State.ERROR)
    assert listed(client, last_outcome="error") == set()
    assert listed(client, last_outcome="completed") == {made["id"]}


def test_a_list_is_answered_whatever_somebody_bent(client: FlaskClient, store: Store, create: Create) -> None:
    made, bent = create(), create()
    run = ran(store, made["id"], old(store, made), State.COMPLETED)
    ran(store, bent["id"], old(store, bent), State.COMPLETED)
    schedules = store.mongo.collection("schedules")
    value: object
    for value in ("text", None, {"at": 1}, 5):
        schedules.update_one({"_id": bent["id"]}, {"$set": {"created_at": value}})
        assert store.last_runs.succeeding([made["id"], bent["id"]]) == {made["id"], bent["id"]}
        (row,) = client.get("/api/schedules").get_json()["schedules"]
        assert row["last_run"]["event_id"] == run.event_id


def test_a_last_run_outlives_its_event(
    client: FlaskClient, store: Store, create: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "PASSES_BETWEEN_LOOKS", 1)
    made, other = create(), create()
    run = ran(store, made["id"], old(store, made), State.COMPLETED)
    recent = ran(store, other["id"], old(store, other) + timedelta(days=1, hours=23), State.COMPLETED)
    Inspection(store).inspect(clock.now())
    store.mongo.collection("events").delete_many({"_id": {"$in": [run.event_id, recent.event_id]}})
    assert client.get(f"/api/schedules/{made['id']}").get_json()["last_run"]["event_id"] == run.event_id
    assert "last_run" not in client.get(f"/api/schedules/{other['id']}").get_json(), "a write for each"


def test_a_run_of_an_earlier_schedule_of_the_same_id_is_not_noted(
    client: FlaskClient, store: Store, create: Create
) -> None:
    made = create()
    ran(store, made["id"], datetime.fromisoformat(made["created_at"]) - 600 * SECOND, State.ERROR)
    assert "last_run" not in client.get(f"/api/schedules/{made['id']}").get_json()


@pytest.mark.parametrize(("passes", "looked_for"), [(1, 2), (3, 5), (6, 10), (24, 10)])
def test_the_last_runs_of_some_schedules_are_looked_for_in_each_pass_and_of_all_in_time(
    store: Store, monkeypatch: pytest.MonkeyPatch, passes: int, looked_for: int
) -> None:
    monkeypatch.setattr(housekeeping, "PASSES_BETWEEN_LOOKS", 6)
    store.schedules.insert_many([schedule(clock.now(), f"s{number}") for number in range(10)])
    kept: list[str] = []
    monkeypatch.setattr(store.last_runs, "keep", lambda ids, before: kept.extend(ids))
    inspection = Inspection(store)
    for _ in range(passes):
        inspection.inspect(clock.now())
    assert abs(len(set(kept)) - looked_for) <= 1
    assert len(kept) <= 2 * passes


def test_schedules_are_found_by_the_outcome_of_their_last_run(
    client: FlaskClient, store: Store, create: Create
) -> None:
    made = {name: create(name=name, tags=[name[0]]) for name in ("good", "bad", "busy", "new")}
    for name, outcome in (("good", State.COMPLETED), ("bad", State.ERROR), ("busy", State.RETRYING)):
        ran(store, made[name]["id"], old(store, made[name]), outcome)
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
    time = old(store, made)
    for number, bent in enumerate(("yesterday", {"time": "noon"}, {"outcome": 5, "time": time})):
        store.mongo.collection("events").delete_many({})
        store.mongo.collection("schedules").update_one({"_id": made["id"]}, {"$set": {"last_run": bent}})
        answer = client.get(f"/api/schedules/{made['id']}")
        assert (answer.status_code, answer.get_json()["state"]) == (200, "active")
        assert "last_run" not in answer.get_json()
        ran(store, made["id"], time + number * SECOND, State.ERROR)
        assert client.get(f"/api/schedules/{made['id']}").get_json()["last_run"]["outcome"] == "error"

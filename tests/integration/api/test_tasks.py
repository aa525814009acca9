"""/tasks: seed 002's API over schedules with commands."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from scheduler_app.api.routes import tasks
from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.store.events.outcomes import OutcomeRecord

TASK = {"id": "my-task-1", "name": "My Task", "command": "echo hello"}
LATER = "2040-12-01T15:00:00Z"


@pytest.fixture
def client(make_api: Callable[..., Flask]) -> FlaskClient:
    return make_api(
        tasks_api=True, allowed_commands=("echo *", "/opt/jobs/* *", "shell:/opt/jobs/*")
    ).test_client()


def made(client: FlaskClient, **fields: Any) -> dict[str, Any]:
    answer = client.post("/tasks", json=TASK | fields)
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.get_json()
    return found


def test_a_task_is_created_read_changed_and_deleted(client: FlaskClient) -> None:
    assert made(client, description="Says hello") == {
        "message": "Task created successfully",
        "task_id": "my-task-1",
    }
    shown = client.get("/tasks/my-task-1").get_json()
    assert shown == TASK | {
        "description": "Says hello",
        "status": "created",
        "created_at": shown["created_at"],
        "updated_at": shown["updated_at"],
    }
    assert client.get("/tasks").get_json() == [shown]
    changed = client.put("/tasks/my-task-1", json={"name": "Updated Name"})
    assert (changed.status_code, changed.get_json()) == (
        200,
        {"message": "Task updated successfully", "task_id": "my-task-1"},
    )
    after = client.get("/tasks/my-task-1").get_json()
    assert after == shown | {"name": "Updated Name", "updated_at": after["updated_at"]}
    # A whole task may be sent back as it was shown.
    assert client.put("/tasks/my-task-1", json=after).status_code == 200
    assert client.put("/tasks/my-task-1", json={"description": ""}).status_code == 200
    assert client.get("/tasks/my-task-1").get_json()["description"] == ""
    deleted = client.delete("/tasks/my-task-1")
    assert (deleted.status_code, deleted.get_json()["task_id"]) == (200, "my-task-1")
    missing = client.get("/tasks/my-task-1")
    assert (missing.status_code, missing.get_json()) == (404, {"error": "there is no task my-task-1"})
    assert client.get("/tasks").get_json() == []


def test_what_a_go_client_writes_is_taken(client: FlaskClient) -> None:
    nothing = "0001-01-01T00:00:00Z"
    made(
        client, description="", status="created", created_at=nothing, updated_at=nothing, scheduled_at=nothing
    )
    assert "scheduled_at" not in client.get("/tasks/my-task-1").get_json()
    made(client, id="my-task-2", scheduled_at=None)
    assert client.get("/tasks/my-task-2").get_json()["status"] == "created"


def test_a_task_waits_for_its_time_and_is_listed_by_it(client: FlaskClient) -> None:
    made(client)
    made(client, id="my-task-2", scheduled_at="2041-01-01T00:00:00Z")
    answer = client.post("/tasks/my-task-1/schedule", json={"scheduled_at": LATER})
    assert answer.get_json() == {"message": "Task scheduled successfully", "task_id": "my-task-1"}
    shown = client.get("/tasks/my-task-1").get_json()
    assert (shown["status"], shown["scheduled_at"]) == ("pending", LATER)

    def listed(query: str) -> list[str]:
        return [each["id"] for each in client.get(f"/tasks/scheduled{query}").get_json()]

    assert listed("") == ["my-task-1", "my-task-2"]
    assert listed(f"?from={LATER}&to={LATER}") == ["my-task-1"]
    assert listed("?from=2040-12-02T00:00:00Z&to=2042-01-01T00:00:00Z") == ["my-task-2"]
    assert [each["id"] for each in client.get("/tasks?status=pending").get_json()] == [
        "my-task-2",
        "my-task-1",
    ]
    assert client.get("/tasks?status=created").get_json() == []
    moved = client.put("/tasks/my-task-1", json={"scheduled_at": "2040-12-03T00:00:00Z"})
    assert moved.status_code == 200
    assert listed(f"?from={LATER}&to={LATER}") == []


def test_the_status_follows_the_newest_run(client: FlaskClient, store: Store) -> None:
    made(client)
    now = client.application.extensions["scheduler"].now()

    def run(outcome: State | None) -> None:
        """Executes the task; the worker is left out, and only what it writes is written."""
        assert client.post("/tasks/my-task-1/execute").get_json() == {
            "message": "Task execution triggered",
            "task_id": "my-task-1",
        }
        assert status() == "pending"
        event = client.get("/api/events?schedule_id=my-task-1").get_json()["events"][0]["_id"]
        token, claimed = store.claims.claim(
            [event],
            until=now + timedelta(hours=1),
            now=now,
            lease_seconds=60,
            worker="w",
            queues=("commands",),
        )
        assert len(claimed) == 1
        assert status() == "running"
        if outcome is not None:
            line = {"number": 1}
            assert (
                store.outcomes.record([OutcomeRecord(event, token, outcome, "said", None, line, now)]) == []
            )

    def status() -> str:
        return str(client.get("/tasks/my-task-1").get_json()["status"])

    run(State.COMPLETED)
    assert status() == "completed"
    run(State.ERROR)
    assert status() == "failed"
    assert [each["id"] for each in client.get("/tasks?status=failed").get_json()] == ["my-task-1"]
    client.delete("/tasks/my-task-1")
    made(client)
    assert status() == "created"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"id": "a_b"}, "id: must be 1 to 64 letters, digits and hyphens"),
        ({"id": "scheduled"}, "id: scheduled is a word"),
        ({"id": "export"}, "id: export is a word"),
        ({"name": "x" * 101}, "name: "),
        ({"name": ""}, "name: "),
        ({"command": "rm -rf /"}, "command: ALLOWED_COMMANDS"),
        ({"command": "echo 'a"}, "command: cannot be split"),
        ({"command": ""}, "command: "),
        ({"scheduled_at": "2020-01-01T00:00:00Z"}, "scheduled_at: "),
        ({"scheduled_at": "tomorrow"}, "scheduled_at: "),
        ({"status": "lost"}, "status: "),
        ({"surprise": 1}, "surprise: "),
    ],
    ids=str,
)
def test_what_is_not_usable_is_a_400_that_names_the_field(
    client: FlaskClient, fields: dict[str, Any], said: str
) -> None:
    answer = client.post("/tasks", json=TASK | fields)
    assert (answer.status_code, answer.mimetype) == (400, "application/json")
    assert list(answer.get_json()) == ["error"]
    assert answer.get_json()["error"].startswith(said), answer.text
    assert client.get("/tasks").get_json() == []


def test_errors_have_the_form_of_the_seed_whoever_refuses(client: FlaskClient) -> None:
    made(client)
    for answer, status in (
        (client.post("/tasks", json=TASK), 409),
        (client.post("/tasks", data=b"{", content_type="application/json"), 400),
        (client.post("/tasks", json=TASK, headers={"Origin": "https://evil.example"}), 403),
        (client.get("/tasks?status=lost"), 400),
        (client.get("/tasks?state=failed"), 400),
        (client.get("/tasks/scheduled?from=x"), 400),
        (client.get("/tasks/none"), 404),
        (client.get("/tasks/none/such"), 404),
        (client.put("/tasks/none", json={"name": "n"}), 404),
        (client.put("/tasks/my-task-1", json={"id": "other"}), 400),
        (client.post("/tasks/none/execute"), 404),
        (client.post("/tasks/my-task-1/schedule", json={}), 400),
        (client.delete("/tasks/none"), 404),
        (client.patch("/tasks/my-task-1", json={}), 405),
    ):
        assert (answer.status_code, answer.mimetype) == (status, "application/json"), answer.text
        assert list(answer.get_json()) == ["error"], answer.text


def test_a_line_for_the_shell_is_one_where_a_pattern_allows_it(client: FlaskClient) -> None:
    made(client, command="/opt/jobs/report --daily")
    assert client.get("/tasks/my-task-1").get_json()["command"] == "/opt/jobs/report --daily"
    # `shell:/opt/jobs/*` allows the program alone.
    made(client, id="alone", command="/opt/jobs/report")
    assert client.get("/api/schedules/alone").get_json()["action"]["shell"] is True


def test_a_schedule_that_is_no_task_is_not_shown(client: FlaskClient) -> None:
    body = {
        "id": "plain",
        "name": "n",
        "on_demand": True,
        "callback_url": "http://127.0.0.1:9/",
        "tags": ["task"],
    }
    assert client.post("/api/schedules", json=body).status_code == 201
    assert client.get("/tasks").get_json() == []
    assert client.delete("/tasks/plain").status_code == 404
    assert client.get("/api/schedules/plain").status_code == 200


def test_a_long_list_comes_in_parts(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [f"t{number}" for number in range(7)]
    for each in ids:
        made(client, id=each, **({"scheduled_at": LATER} if each in ("t1", "t5") else {}))
    found, path = [], "/tasks?limit=3"
    for _ in range(3):
        answer = client.get(path)
        found += [each["id"] for each in answer.get_json()]
        path = answer.headers.get("Link", "").partition(">")[0].lstrip("<")
    assert (found, path) == (ids[::-1], "")
    # None is lost between the pages that a filter looks through.
    first = client.get("/tasks?limit=1&status=pending")
    assert [each["id"] for each in first.get_json()] == ["t5"]
    rest = client.get(first.headers["Link"].partition(">")[0].lstrip("<")).get_json()
    assert [each["id"] for each in rest] == ["t1"]
    assert client.get("/tasks?limit=1001").status_code == 400
    # However many tasks do not fit, a request looks at so many and says where to go on.
    monkeypatch.setattr(tasks, "MAX_PAGES", 1)
    nothing_yet = client.get("/tasks?limit=1&status=pending")
    assert nothing_yet.get_json() == []
    assert "cursor=" in nothing_yet.headers["Link"]


def test_without_the_setting_there_are_no_tasks(make_api: Callable[..., Flask]) -> None:
    off = make_api(allowed_commands=("echo *",)).test_client()
    for answer in (off.get("/tasks"), off.post("/tasks", json=TASK), off.post("/tasks/x/execute")):
        assert answer.status_code == 404
        assert "TASKS_API=true" in answer.get_json()["error"]
    assert off.get("/api/schedules").get_json()["schedules"] == []
    assert off.get("/health").get_json() == {"status": "ok"}

"""/tasks with real processes: seed 002's requests, run by a worker that serves the queue `commands`."""

import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import requests
from click.testing import CliRunner

from scheduler_app.cli import main
from tests.acceptance.stack import Stack
from tests.processes import wait_until

#: The seed's lines after `go run ./cmd/client`; its time to come has passed since it was written.
SESSION = """\
create --id my-task-1 --name "My Task" --command "echo hello"
list
get --id my-task-1
schedule --id my-task-1 --at "2040-12-01T15:00:00Z"
execute --id my-task-1
update --id my-task-1 --name "Updated Name"
"""


@pytest.fixture(scope="module")
def stack(stack: Stack, jobs: Path) -> Stack:
    """With a worker for the queue `commands`."""
    script = jobs / "fails"
    script.write_text("#!/bin/sh\necho it broke >&2\nexit 3\n")
    script.chmod(0o755)
    serve_commands(stack)
    return stack


def serve_commands(stack: Stack) -> None:
    command = ("celery", "-A", "scheduler_app", "worker", "-Q", "commands", "-n", "commands@%h")
    process = stack.start("commands", *command)
    stack.wait_for_node("worker", process.pid)


def call(stack: Stack, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    answer = requests.request(method, f"{stack.url}{path}", json=body)
    return answer.status_code, answer.json()


def tasks(stack: Stack, query: str = "") -> set[str]:
    return {each["id"] for each in call(stack, "GET", f"/tasks{query}")[1]}


def status(stack: Stack, task_id: str) -> str:
    return str(call(stack, "GET", f"/tasks/{task_id}")[1]["status"])


def ended(stack: Stack, task_id: str) -> dict[str, Any]:
    """The newest run, once it is finished."""
    wait_until(lambda: status(stack, task_id) in ("completed", "failed"), f"{task_id} to end")
    events = stack.events(task_id)
    found: dict[str, Any] = events[0]
    return found


def test_the_seed_s_endpoints_from_creation_to_deletion(stack: Stack) -> None:
    assert call(stack, "GET", "/health") == (200, {"status": "ok"})
    others = tasks(stack)
    task = {"id": "a-task", "name": "My Task", "command": "echo hello"}
    code, made = call(stack, "POST", "/tasks", task)
    assert (code, made["task_id"]) == (201, "a-task")
    assert tasks(stack) - others == {"a-task"}
    assert status(stack, "a-task") == "created"
    times: list[str] = []

    def is_listed() -> bool:
        """Before its time. On a machine that stands still that may come first: then another is asked for."""
        times.append(at := (datetime.now(UTC) + timedelta(seconds=8)).strftime("%Y-%m-%dT%H:%M:%SZ"))
        code, scheduled = call(stack, "POST", "/tasks/a-task/schedule", {"scheduled_at": at})
        if datetime.now(UTC) < datetime.fromisoformat(at):
            assert (code, scheduled["task_id"]) == (200, "a-task")
        return [each["scheduled_at"] for each in call(stack, "GET", f"/tasks/scheduled?to={at}")[1]] == [at]

    wait_until(is_listed, "the time to come to be listed")
    wait_until(lambda: any(each["run_time"] == times[-1] for each in stack.events("a-task")), "its run")
    run = ended(stack, "a-task")
    assert (run["run_time"], run["attempts"][-1]["output"], run["attempts"][-1]["status_code"]) == (
        times[-1],
        "hello\n",
        0,
    )
    assert call(stack, "GET", "/tasks/scheduled")[1] == []
    runs = len(stack.events("a-task"))
    code, executed = call(stack, "POST", "/tasks/a-task/execute")
    assert (code, executed["task_id"]) == (200, "a-task")
    wait_until(lambda: len(stack.events("a-task")) == runs + 1, "the second run to end")
    assert tasks(stack, "?status=completed") - others == {"a-task"}
    assert call(stack, "PUT", "/tasks/a-task", {"name": "Updated Name"})[0] == 200
    assert call(stack, "GET", "/tasks/a-task")[1]["name"] == "Updated Name"
    assert call(stack, "DELETE", "/tasks/a-task")[0] == 200
    assert call(stack, "GET", "/tasks/a-task") == (404, {"error": "there is no task a-task"})


def test_a_task_that_fails_is_failed_after_one_attempt(stack: Stack, jobs: Path) -> None:
    command = str(jobs / "fails")
    assert call(stack, "POST", "/tasks", {"id": "bad", "name": "Bad", "command": command})[0] == 201
    call(stack, "POST", "/tasks/bad/execute")
    run = ended(stack, "bad")
    assert [(each["status_code"], each["output"]) for each in run["attempts"]] == [(3, "it broke\n")]
    assert "bad" in tasks(stack, "?status=failed")
    assert "bad" not in tasks(stack, "?status=completed")


def test_a_line_for_the_shell_runs_where_a_pattern_allows_it(stack: Stack) -> None:
    task = {"id": "line", "name": "Line", "command": "echo one | tr o 0"}
    assert call(stack, "POST", "/tasks", task)[0] == 201
    call(stack, "POST", "/tasks/line/execute")
    assert ended(stack, "line")["attempts"][-1]["output"] == "0ne\n"
    refused = call(stack, "POST", "/tasks", task | {"id": "other", "command": "echo one | tr o 1; id"})
    # Without a pattern for the line it is the program `echo`, which gets these words.
    assert refused[0] == 201
    call(stack, "POST", "/tasks/other/execute")
    assert ended(stack, "other")["attempts"][-1]["output"] == "one | tr o 1; id\n"
    assert call(stack, "POST", "/tasks", task | {"id": "id", "command": "id"})[0] == 400


def test_the_worker_checks_what_the_api_did_not(stack: Stack) -> None:
    checking = stack.url
    trusting = stack.api(ALLOWED_COMMANDS="")
    try:
        assert call(stack, "POST", "/tasks", {"id": "id", "name": "Id", "command": "id"})[0] == 201
        call(stack, "POST", "/tasks/id/execute")
        run = ended(stack, "id")
    finally:
        stack.url = checking
        stack.kill(trusting)
    assert run["state"] == "error"
    assert "ALLOWED_COMMANDS" in run["attempts"][-1]["error"]


def test_the_seed_s_session_runs_its_command(stack: Stack) -> None:
    """Word for word, with `scheduler` for its client."""
    shown = [run(stack, line) for line in SESSION.splitlines()]
    assert "my-task-1" in shown[1]
    assert "2040-12-01T15:00:00Z" in shown[3]
    wait_until(lambda: stack.events("my-task-1") != [], "the command to end")
    (event,) = stack.events("my-task-1")
    assert (event["state"], event["attempts"][0]["output"]) == ("completed", "hello\n")
    # The same task by the seed's API.
    task = requests.get(f"{stack.url}/tasks/my-task-1").json()
    assert (task["name"], task["command"], task["status"]) == ("Updated Name", "echo hello", "pending")
    assert run(stack, "delete --id my-task-1") == "deleted my-task-1\n"
    assert requests.get(f"{stack.url}/tasks/my-task-1").status_code == 404


def run(stack: Stack, line: str) -> str:
    done = CliRunner().invoke(main, shlex.split(line), env={"SCHEDULER_URL": stack.url})
    assert done.exit_code == 0, (line, done.output)
    return done.stdout

"""Seed 002's example session, word for word, with `scheduler` for its client and a real worker."""

import shlex
from collections.abc import Callable

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


def test_the_seed_s_session_runs_its_command(make_stack: Callable[..., Stack]) -> None:
    stack = make_stack(TASKS_API="true", ALLOWED_COMMANDS="echo *")
    stack.api()
    stack.beat()
    worker = stack.start("commands", "celery", "-A", "scheduler_app", "worker", "-Q", "commands")
    stack.wait_for_node("worker", worker.pid)
    shown = [run(stack, line) for line in SESSION.splitlines()]
    assert "my-task-1" in shown[1]
    assert "2040-12-01T15:00:00Z" in shown[3]
    wait_until(lambda: stack.events("my-task-1") != [], "the command to end")
    (event,) = stack.events("my-task-1")
    assert (event["state"], event["attempts"][0]["output"]) == ("completed", "hello\n")
    # The same task by the seed's API.
    task = requests.get(f"{stack.url}/tasks/my-task-1", timeout=20).json()
    assert (task["name"], task["command"], task["status"]) == ("Updated Name", "echo hello", "pending")
    assert run(stack, "delete --id my-task-1") == "deleted my-task-1\n"
    assert requests.get(f"{stack.url}/tasks/my-task-1", timeout=20).status_code == 404


def run(stack: Stack, line: str) -> str:
    done = CliRunner().invoke(main, shlex.split(line), env={"SCHEDULER_URL": stack.url})
    assert done.exit_code == 0, (line, done.output)
    return done.stdout

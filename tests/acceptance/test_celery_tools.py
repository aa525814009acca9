"""Celery's own tools see the batches: `inspect`, `control`, and Flower behind its password."""

import json
import socket
import subprocess
import sys
from typing import Any

import requests

from scheduler_app.embedded import free_port
from tests.acceptance.journal import Journal
from tests.acceptance.shared_stack import SharedStack
from tests.acceptance.stack import Stack
from tests.integration.actions.receiver import hangs
from tests.processes import wait_until

WORKER = f"worker@{socket.gethostname()}"


def celery(stack: Stack, kind: str, *arguments: str) -> Any:
    """What the worker answers, by its name. Asked by name, it is not waited for others."""
    options = ("--json", "--timeout", "30", "--destination", WORKER)
    command = [sys.executable, "-m", "celery", "-A", "scheduler_app", kind, *options, *arguments]
    done = subprocess.run(command, env=stack.environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def waiting(stack: Stack) -> int:
    """Messages that no worker has fetched; -1 where Redis did not answer in time."""
    broker = requests.get(f"{stack.url}/readyz").json()["checks"]["broker"]
    length: int = broker.get("queue_length", -1)
    return length


def test_inspect_and_the_metrics_show_the_events_in_flight(stack: SharedStack, journal: Journal) -> None:
    schedule_id = stack.create(
        journal.script("/slow", hangs), run_at="2040-01-01T00:00:00Z", timeout_seconds=100
    )
    event_id = stack.post(f"/schedules/{schedule_id}/trigger", status=202)["event_id"]
    wait_until(lambda: bool(journal.calls["/slow"]), "the request")
    found = celery(stack, "inspect", "in_flight")[WORKER]
    assert (found["in_flight"], found["events"]) == ([event_id], 1)
    assert set(celery(stack, "inspect", "stats")[WORKER]["total"]) == {"scheduler_app.tasks.deliver"}
    metrics = requests.get(f"http://127.0.0.1:{stack.metrics_port}/metrics").text
    assert 'scheduler_worker_events{state="in_flight"} 1.0' in metrics.splitlines()


def test_control_stops_and_starts_the_consuming(stack: Stack, journal: Journal) -> None:
    schedule_id = stack.create(journal.url("/stopped"), run_at="2040-01-01T00:00:00Z")
    celery(stack, "control", "cancel_consumer", "callbacks")
    try:
        stack.post(f"/schedules/{schedule_id}/trigger", status=202)
        wait_until(lambda: waiting(stack) >= 1, "the message to stay in the queue")
        assert journal.calls["/stopped"] == []
    finally:
        celery(stack, "control", "add_consumer", "callbacks")
    assert len(stack.finished(schedule_id)) == 1


def test_flower_lists_the_batches_with_their_event_ids_to_whoever_knows_the_password(
    stack: Stack, journal: Journal
) -> None:
    port, password = free_port(), ("somebody", "a password")
    url = f"http://127.0.0.1:{port}"
    options = ("--address=127.0.0.1", f"--port={port}")
    stack.start(
        "flower", "celery", "-A", "scheduler_app", "flower", *options, FLOWER_BASIC_AUTH=":".join(password)
    )

    def answers() -> bool:
        try:
            return requests.get(f"{url}/healthcheck", timeout=5).ok
        except requests.RequestException:
            return False

    wait_until(answers, "Flower")
    for page in ("/", "/tasks", "/api/tasks"):
        assert requests.get(f"{url}{page}").status_code == 401

    def tasks() -> list[dict[str, Any]]:
        return list(requests.get(f"{url}/api/tasks", auth=password).json().values())

    schedule_id = stack.create(journal.url("/seen"), run_at="2040-01-01T00:00:00Z")
    sent: list[str] = []

    def is_listed() -> bool:
        # Until it has begun to listen, what happens it never hears of.
        sent.append(stack.post(f"/schedules/{schedule_id}/trigger", status=202)["event_id"])
        return any(event_id in str(task["kwargs"]) for task in tasks() for event_id in sent)

    wait_until(is_listed, "Flower to list a batch")
    assert {task["name"] for task in tasks() if task["name"]} == {"scheduler_app.tasks.deliver"}

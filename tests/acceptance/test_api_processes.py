"""Several processes on one port are one API to their clients."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
import requests
from prometheus_client.parser import text_string_to_metric_families

from scheduler_app.embedded import free_port
from tests.acceptance.stack import Stack
from tests.acceptance.test_delivery import in_seconds
from tests.processes import wait_until

NOBODY = "http://127.0.0.1:9/"
PROCESSES = 2
TRIGGERS = 12


def test_the_processes_of_an_api_are_scraped_as_one_and_leave_nothing_behind(
    make_stack: Callable[..., Stack], tmp_path: Path
) -> None:
    stack = make_stack(TMPDIR=str(tmp_path), API_PROCESSES=str(PROCESSES))
    port = free_port()
    stack.url = f"http://127.0.0.1:{port}"
    options = ("--config", "deploy/gunicorn.conf.py")
    arbiter = stack.start("api", "gunicorn", *options, "scheduler_app.api:create_app()", API_PORT=str(port))
    stack.wait_for_node("api", _serving(arbiter.pid, 0).pid)
    wait_until(lambda: _sample(stack, "scheduler_nodes", role="api") == PROCESSES, "both")
    made = stack.create(NOBODY, run_at=in_seconds(3600))
    for _ in range(TRIGGERS):
        stack.post(f"/schedules/{made}/trigger", status=202)
    # Whichever of them answers: a connection of its own for each question.
    assert {_sample(stack, "scheduler_events_dispatched_total") for _ in range(8)} == {TRIGGERS}
    assert _sample(stack, "scheduler_dependency_up", dependency="mongodb") == 1

    killed = _serving(arbiter.pid, 1)
    killed.kill()
    wait_until(lambda: len(_all_serving(arbiter.pid) - {killed}) == PROCESSES, "another one")
    stack.post(f"/schedules/{made}/trigger", status=202)
    assert _sample(stack, "scheduler_events_dispatched_total") == TRIGGERS + 1

    arbiter.send_signal(signal.SIGTERM)
    assert arbiter.wait() == 0
    assert [name for name in os.listdir(tmp_path) if name.startswith("scheduler-")] == []


@pytest.mark.parametrize("name", ["/api/v1", "/api"])
def test_an_importers_next_bulk_may_go_to_another_process_and_all_else_keeps_its_connection(
    stack: Stack, name: str
) -> None:
    one = {"name": "import", "rrule": "FREQ=YEARLY", "callback_url": NOBODY}
    with requests.Session() as session:
        bulk = session.post(f"{stack.url}{name}/schedules/bulk", json={"schedules": [one]})
        single = session.post(f"{stack.url}{name}/schedules", json=one)
    assert (bulk.status_code, bulk.json()["created"], bulk.headers["Connection"]) == (200, 1, "close")
    assert (single.status_code, single.headers.get("Connection", "keep-alive")) == (201, "keep-alive")


def _all_serving(arbiter: int) -> set[psutil.Process]:
    return set(psutil.Process(arbiter).children())


def _serving(arbiter: int, number: int) -> psutil.Process:
    wait_until(lambda: len(_all_serving(arbiter)) == PROCESSES, "the processes")
    return sorted(_all_serving(arbiter), key=lambda process: process.pid)[number]


def _sample(stack: Stack, name: str, **labels: str) -> float:
    """The value; -1 as long as there is none: it listens before it has loaded the application, and answers
    before it has reported itself."""
    try:
        text = requests.get(f"{stack.url}/metrics").text
    except (requests.ConnectionError, requests.Timeout):
        return -1
    values = (
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name and sample.labels == labels
    )
    return next(values, -1)

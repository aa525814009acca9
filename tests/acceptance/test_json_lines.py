"""Where logs are JSON, every line of every process is: a collector of logs parses each of them."""

import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

import pytest
import requests

from scheduler_app.embedded import free_port
from tests.processes import Program, wait_until

CELERY = ("celery", "--app", "scheduler_app")
#: The command of each process as deploy/ has it, and the line by which it is known to work.
PROCESSES = {
    "api": (
        (
            "gunicorn",
            "--config",
            "python:scheduler_app.cli.gunicorn_config",
            "scheduler_app.api:create_app()",
        ),
        "secrets.plain",
    ),
    "beat": ((*CELERY, "beat", "--pidfile="), "secrets.plain"),
    "flower": ((*CELERY, "flower", "--address=127.0.0.1", "--port={port}"), "Registered tasks"),
    "worker": ((*CELERY, "worker", "--pool", "threads", "--without-gossip", "--without-mingle"), " ready\\."),
}
#: Lines that Celery writes as text, to people.
TAKEN_OVER = {"beat": "Starting", "flower": "Visit me at", "worker": "Warm shutdown"}


def _answers(port: int) -> bool:
    with suppress(requests.ConnectionError):
        return requests.get(f"http://127.0.0.1:{port}/").status_code == 401
    return False


@pytest.mark.parametrize("kind", PROCESSES)
def test_every_line_from_start_to_end_is_json(
    kind: str, run: Callable[..., Program], mongo_uri: str, database_name: str, redis_url: str
) -> None:
    command, works = PROCESSES[kind]
    port = free_port()
    program = run(
        sys.executable,
        "-m",
        *(word.format(port=port) for word in command),
        PYTHONPATH=os.getcwd(),
        MONGO_URI=mongo_uri,
        MONGO_DATABASE=database_name,
        BROKER_URL=redis_url,
        API_PORT=str(port),
        API_PROCESSES="1",
        FLOWER_BASIC_AUTH="somebody:with-a-password",
        LOG_FORMAT="json",
    )
    program.wait_for(works)
    if kind == "flower":
        # Told to end while it starts, it may go on: its loop begins after it was told to stop.
        wait_until(lambda: _answers(port), "Flower to answer")
    program.signal(signal.SIGTERM)
    program.wait()
    lines = program.output.splitlines()
    assert lines
    for line in lines:
        assert isinstance(json.loads(line), dict), line
    assert TAKEN_OVER.get(kind, "") in program.output


def test_a_worker_whose_logs_are_text_prints_celerys_own_banner(
    run: Callable[..., Program], mongo_uri: str, database_name: str, redis_url: str
) -> None:
    command, _ = PROCESSES["worker"]
    servers = {"MONGO_URI": mongo_uri, "MONGO_DATABASE": database_name, "BROKER_URL": redis_url}
    program = run(sys.executable, "-m", *command, PYTHONPATH=os.getcwd(), LOG_FORMAT="text", **servers)
    program.wait_for(r"concurrency: 16 \(thread\)")

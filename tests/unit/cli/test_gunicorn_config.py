"""What the API's processes have in common under gunicorn."""

import sys
from pathlib import Path

import requests

from scheduler_app.embedded import free_port
from tests.processes import Program, wait_until

_APPLICATION = """
import os

loaded_by = os.getpid()


def create_app():
    made_by = os.getpid()

    def answer(environ, start):
        start("200 OK", [("Content-Type", "text/plain")])
        return [f"{loaded_by} {made_by} {os.getpid()} {os.getppid()}".encode()]

    return answer
"""


def test_the_modules_of_an_application_are_loaded_before_its_processes_fork_and_each_makes_its_own(
    tmp_path: Path,
) -> None:
    (tmp_path / "noted.py").write_text(_APPLICATION)
    url = f"http://127.0.0.1:{(port := free_port())}"
    options = ("--config", "python:scheduler_app.cli.gunicorn_config", "noted:create_app()")
    environment = {"API_PORT": str(port), "API_PROCESSES": "1", "TMPDIR": str(tmp_path)}
    gunicorn = Program((sys.executable, "-m", "gunicorn", *options), tmp_path, environment)
    try:
        wait_until(lambda: _answers(url), "gunicorn")
        loaded_by, made_by, process, parent = requests.get(url, timeout=10).text.split()
    finally:
        gunicorn.kill()
    assert (loaded_by, made_by) == (parent, process)


def _answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=10).ok
    except requests.RequestException:
        return False

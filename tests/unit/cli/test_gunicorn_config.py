"""What the API's processes have in common under gunicorn."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from scheduler_app.embedded import free_port
from tests.processes import Program, wait_until

CONFIG = Path(__file__).parents[3] / "scheduler_app" / "cli" / "gunicorn_config.py"
_APPLICATION = """
import os

loaded_by = os.getpid()


def create_app():
    made_by = os.getpid()

    def answer(environ, start):
        start("200 OK", [("Content-Type", "text/plain")])
        if environ["PATH_INFO"].endswith("/seen"):
            names = ("SCRIPT_NAME", "PATH_INFO", "wsgi.url_scheme")
            return [" ".join(environ[name] for name in names).encode()]
        return [f"{loaded_by} {made_by} {os.getpid()} {os.getppid()}".encode()]

    return answer
"""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the application answers, started as by `scheduler up`, in the folder of another project."""
    folder, modules = tmp_path_factory.mktemp("gunicorn"), tmp_path_factory.mktemp("modules")
    (modules / "noted.py").write_text(_APPLICATION)
    for name in ("noted", "click", "prometheus_client", "yaml"):
        (folder / f"{name}.py").write_text(f"raise SystemExit('{name}.py of another project was imported')")
    url = f"http://127.0.0.1:{(port := free_port())}"
    options = ("--config", str(CONFIG), "noted:create_app()")
    environment = {
        "API_PORT": str(port),
        "API_PROCESSES": "1",
        "TMPDIR": str(folder),
        "PYTHONPATH": str(modules),
    }
    gunicorn = Program((sys.executable, "-P", "-m", "gunicorn", *options), folder, environment)
    try:
        gunicorn.wait_for("Listening at")
        wait_until(lambda: _answers(url), "gunicorn")
        yield url
    finally:
        gunicorn.kill()


def test_the_modules_of_an_application_are_loaded_before_its_processes_fork_and_each_makes_its_own(
    url: str,
) -> None:
    loaded_by, made_by, process, parent = requests.get(url).text.split()
    assert (loaded_by, made_by) == (parent, process)


@pytest.mark.parametrize(
    "name", ["SCRIPT_NAME", "SCRIPT-NAME", "PATH_INFO", "X-Forwarded-Proto", "X-Forwarded-Ssl"]
)
def test_no_header_changes_the_path_or_the_scheme_that_the_server_has_seen(url: str, name: str) -> None:
    value = {"X-Forwarded-Proto": "https", "X-Forwarded-Ssl": "on"}.get(name, "/x")
    seen = requests.get(f"{url}/x/seen", headers={name: value})
    assert seen.text == " /x/seen http"


def _answers(url: str) -> bool:
    try:
        return requests.get(url).ok
    except requests.RequestException:
        return False

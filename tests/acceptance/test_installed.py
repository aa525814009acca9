"""The packages of a release, as a user gets them: the wheel with its extra, in an environment of its own,
started in a folder of another project."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest
import requests

from scheduler_app.embedded import free_port
from scheduler_app.version import __version__
from tests.acceptance.journal import Journal
from tests.processes import Program, wait_until

#: The first test makes a release twice, and installs it.
pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

CODE = Path(__file__).parents[2]
UV = CODE / ".venv" / "tools" / "bin" / "uv"
#: Modules of another project, with names of ours and of what we import.
FOREIGN = (
    "api",
    "beat",
    "celery",
    "click",
    "flask",
    "gunicorn",
    "pymongo",
    "redis",
    "structlog",
    "tests",
    "yaml",
)
STEM = f"rrule_scheduler-{__version__}"
LOADED = re.compile(r'<(?:script|link|img)[^>]+?(?:src|href)="([^"]+)"')


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """What `make dist` makes, twice."""
    first, second = (tmp_path_factory.mktemp(name) / "dist" for name in ("first", "second"))
    for output in (first, second):
        command = [sys.executable, str(CODE / "deploy" / "dist.py"), "--uncommitted", "--output", str(output)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=output.parent)
        assert done.returncode == 0, done.stdout + done.stderr
    return first, second


@pytest.fixture(scope="module")
def programs(releases: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of a fresh environment with the wheel and its extra `embedded`."""
    folder = tmp_path_factory.mktemp("environment") / "venv"
    python = folder / "bin" / "python"
    wheel = releases[0] / f"{STEM}-py3-none-any.whl"
    locked = ("--constraint", str(CODE / "requirements" / "up.txt"))
    for command in (
        ("venv", "--python", sys.executable, str(folder)),
        ("pip", "install", "--python", str(python), *locked, f"{wheel}[embedded]"),
        ("pip", "check", "--python", str(python)),
    ):
        done = subprocess.run([str(UV), *command], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return python.parent


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of another project, whose modules say so when they are imported."""
    made = tmp_path_factory.mktemp("project")
    for name in FOREIGN:
        (made / f"{name}.py").write_text(f"raise SystemExit('{name}.py of another project was imported')\n")
    return made


def environment(programs: Path) -> dict[str, str]:
    """Nothing of this checkout, and nothing of what the tests are run with."""
    kept = {name: os.environ[name] for name in ("HOME", "LANG", "TMPDIR") if name in os.environ}
    return kept | {"PATH": f"{programs}:/usr/bin:/bin", "SCHEDULER_PROFILES": "/dev/null"}


@pytest.fixture(scope="module")
def url(programs: Path, folder: Path) -> Iterator[str]:
    """The API of `scheduler up`, started there without a word but the ports."""
    port, flower = free_port(), free_port()
    command = ("env", "-i", *(f"{name}={value}" for name, value in environment(programs).items()))
    up = ("scheduler", "up", "--port", str(port), "--flower-port", str(flower), "--worker-count", "1")
    program = Program([*command, *up], folder)
    try:
        program.wait_for(r"^Everything is ready")
        yield f"http://127.0.0.1:{port}"
        program.signal(signal.SIGINT)
        assert program.wait() == 0, program.output
        assert "of another project" not in program.output
    finally:
        program.kill()


def scheduler(programs: Path, folder: Path, *arguments: str) -> str:
    command = [str(programs / "scheduler"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment(programs))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_two_makings_of_a_release_are_the_same_bytes(releases: tuple[Path, Path]) -> None:
    one, other = ({path.name: path.read_bytes() for path in folder.iterdir()} for folder in releases)
    assert one.keys() == {
        *(f"{STEM}{end}" for end in (".tar.gz", "-py3-none-any.whl", ".cdx.json", "-licences.txt")),
        "SHA256SUMS",
    }
    assert [name for name in one if one[name] != other[name]] == []
    table = (CODE / "docs" / "releasing.md").read_text()
    named = re.findall(r"^\| `(rrule_scheduler-…\S+|SHA256SUMS)` \|", table, re.MULTILINE)
    assert {name.replace("rrule_scheduler-…", STEM) for name in named} == one.keys()


def test_the_bill_of_materials_names_what_is_installed_with_a_licence_each(
    releases: tuple[Path, Path], programs: Path
) -> None:
    bill = json.loads((releases[0] / f"{STEM}.cdx.json").read_text())
    assert bill["bomFormat"] == "CycloneDX"
    assert (bill["metadata"]["component"]["name"], bill["metadata"]["component"]["version"]) == (
        "rrule-scheduler",
        __version__,
    )
    named = {(each["name"].lower().replace("_", "-"), each["version"]) for each in bill["components"]}
    listed = subprocess.check_output(
        [str(UV), "pip", "list", "--format", "json", "--python", str(programs / "python")], text=True
    )
    installed = {(each["name"], each["version"]) for each in json.loads(listed)}
    assert installed - {("rrule-scheduler", __version__)} <= named
    assert {"htmx.org", "furo", "sphinx", "mongod", "redis-server"} <= {name for name, _ in named}
    assert [each["name"] for each in bill["components"] if not each["licenses"]] == []
    licences = (releases[0] / f"{STEM}-licences.txt").read_text()
    assert re.search(r"^mongod [\d.]+ +SSPL-1\.0$", licences, re.MULTILINE)
    for text in (json.dumps(bill), licences):
        assert str(CODE) not in text
        assert "file://" not in text


def test_a_callback_arrives_and_everything_is_there(
    url: str, programs: Path, folder: Path, journal: Journal
) -> None:
    said = json.loads(scheduler(programs, folder, "version", "--json"))
    assert (said["version"], said["extras"]) == (__version__, ["embedded", "server"])
    # Into what is empty yet.
    scheduler(programs, folder, "demo")
    create = ("create", journal.url("/called"), "--rrule", "FREQ=SECONDLY;COUNT=1", "--id", "installed")
    scheduler(programs, folder, *create, "--url", url)
    wait_until(lambda: len(journal.calls["/called"]) == 1, "the callback")
    assert "Everything is there." in scheduler(programs, folder, "doctor")


@pytest.mark.parametrize("page", ["/", "/schedules", "/docs/", "/docs/operations.html", "/swagger-ui/"])
def test_a_page_and_every_file_that_it_loads_are_there(page: str, url: str) -> None:
    shown = requests.get(url + page)
    assert shown.status_code == 200, shown.text
    files = [urljoin(shown.url, each) for each in LOADED.findall(shown.text)]
    files = [each for each in files if urlsplit(each).netloc == urlsplit(url).netloc]
    assert files
    for each in files:
        assert requests.get(each).status_code == 200, each


def test_the_specification_is_served(url: str) -> None:
    assert requests.get(f"{url}/docs/openapi.yml").status_code == 200


def test_processes_started_by_hand_take_no_api_and_no_beat_of_that_folder(
    url: str, programs: Path, folder: Path, tmp_path: Path
) -> None:
    """As deploy/ starts them, beside those of `up`."""
    for name in ("api.py", "beat.py"):
        (tmp_path / name).write_text((folder / name).read_text())
    port = free_port()
    given = {"SCHEDULER_CONFIG": str(folder / "data" / "running.yaml"), "API_PORT": str(port)}
    start = ("env", "-i", *(f"{name}={value}" for name, value in (environment(programs) | given).items()))
    gunicorn = (
        "gunicorn",
        "--config",
        "python:scheduler_app.cli.gunicorn_config",
        "scheduler_app.api:create_app()",
    )
    celery = ("celery", "--app", "scheduler_app")
    worker = ("worker", "--without-gossip", "--without-mingle", "--hostname", "by-hand@%h")
    started = [
        Program([*start, *command], tmp_path)
        for command in (gunicorn, (*celery, "beat", "--pidfile="), (*celery, *worker))
    ]
    try:
        for program, works in zip(
            started, ("Booting worker", "beat: Starting", r"by-hand@.* ready"), strict=True
        ):
            program.wait_for(works)
        wait_until(lambda: answers(f"http://127.0.0.1:{port}/readyz"), "the API that was started by hand")
        wait_until(lambda: answers(f"{url}/readyz"), "the API of that folder to be ready as before")
        for program in started:
            program.signal(signal.SIGTERM)
        for program in started:
            program.wait()
            assert "of another project" not in program.output
    finally:
        for program in started:
            program.kill()


def answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=5).ok
    except (requests.ConnectionError, requests.Timeout):
        return False

"""A copy of the repository's files, run by Docker Compose as the manual says, and what its blocks are."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import requests
from pymongo import MongoClient
from pymongo.database import Database
from pymongo.errors import PyMongoError

from scheduler_app.version import __version__
from tests.containers.engine import Engine, StepFailed

ROOT = Path(__file__).parents[2]
PROJECT = "rrule-scheduler"
#: What docker-compose.yml and the manifests name.
IMAGE = f"{PROJECT}:{__version__}"
API_PORT = 8080
#: At most, for what takes seconds on a machine with nothing else to do.
PATIENCE_SECONDS = 300

T = TypeVar("T")


def block(page: str, beginning: str) -> str:
    """The block of commands in that page of the manual which has a line that begins so."""
    found = [
        text
        for text in re.findall(r"^```bash\n(.*?)^```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
        if re.search(rf"^{re.escape(beginning)}", text, re.MULTILINE)
    ]
    if len(found) != 1:
        raise StepFailed(f"{page} has {len(found)} blocks with a line that begins with {beginning!r}")
    (text,) = found
    return str(text)


def blocks_of_step(page: str, step: str) -> list[str]:
    """The blocks of commands in that page of the manual which it says this step runs, in their order."""
    mark = rf"^<!-- run by make containers: {re.escape(step)} -->\n```bash\n(.*?)^```$"
    found = re.findall(mark, (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    if not found:
        raise StepFailed(f"{page} has no block for the step {step}")
    return [str(text) for text in found]


def copy_of_tree(to: Path, commit: str | None = None) -> Path:
    """The files of a commit, or those that are here now and not ignored."""
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir(parents=True)
    if commit:
        made = subprocess.run(["git", "-C", str(ROOT), "archive", commit], check=True, capture_output=True)
        subprocess.run(["tar", "-C", str(to), "-x"], input=made.stdout, check=True)
        return to
    names = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for name in filter(None, names.split("\0")):
        # scheduler_app/api and scheduler_app/beat are links to folders.
        if os.path.lexists(ROOT / name):
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name, follow_symlinks=False)
    return to


def until(condition: Callable[[], T], what: str, seconds: float = PATIENCE_SECONDS) -> T:
    """The first true answer."""
    deadline = time.monotonic() + seconds
    while True:
        if answer := condition():
            return answer
        if time.monotonic() > deadline:
            raise StepFailed(f"waited {seconds:.0f} s for {what}")
        time.sleep(0.3)


class Deployment:
    """The Compose project in `folder`; its settings are those of its `.env`."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.engine = engine
        self.folder = folder
        self._client: MongoClient[dict[str, Any]] | None = None

    # -- commands ----------------------------------------------------------------------------------------

    def shell(self, commands: str, *, check: bool = True) -> subprocess.CompletedProcess[str]:
        return self.engine.shell(commands, self.folder, check=check)

    def compose(self, *arguments: str, check: bool = True) -> str:
        done = self.engine.run("docker", "compose", *arguments, cwd=self.folder, check=check)
        return done.stdout + ("" if check else done.stderr)

    def execute(self, service: str, *command: str) -> str:
        return self.compose("exec", "-T", service, *command)

    def set(self, **settings: str) -> None:
        """Writes settings into `.env`, in the place of those that have these names."""
        path = self.folder / ".env"
        kept = [line for line in path.read_text().splitlines() if line.partition("=")[0] not in settings]
        path.write_text("\n".join([*kept, *(f"{name}={value}" for name, value in settings.items())]) + "\n")

    def settings(self) -> dict[str, str]:
        lines = (self.folder / ".env").read_text().splitlines()
        return {name: value for name, _, value in (line.partition("=") for line in lines) if value}

    def containers(self, service: str) -> list[dict[str, Any]]:
        """What the engine tells of each living container of a service."""
        ids = self.compose("ps", "-q", service, check=False).split()
        return json.loads(self.engine.run("docker", "inspect", *ids).stdout) if ids else []

    def address(self, service: str, network: str) -> str:
        """Of its first container, in that network."""
        (container, *_) = self.containers(service)
        return str(container["NetworkSettings"]["Networks"][f"{PROJECT}_{network}"]["IPAddress"])

    def down(self, *, volumes: bool = True) -> None:
        if self.folder.exists():
            options = ["--volumes"] if volumes else []
            self.compose(
                "--profile",
                "receiver",
                "--profile",
                "rabbitmq",
                "down",
                "--remove-orphans",
                *options,
                check=False,
            )

    # -- the API and the truth ---------------------------------------------------------------------------

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.settings()['API_KEYS'].split(',')[0]}"}

    def ask(self, method: str, path: str, body: Any = None, *, expect: int = 200) -> Any:
        answer = requests.request(
            method, f"http://127.0.0.1:{API_PORT}{path}", json=body, headers=self.headers, timeout=30
        )
        if answer.status_code != expect:
            raise StepFailed(f"{method} {path}: {answer.status_code} {answer.text[:500]}")
        return answer.json() if answer.text else None

    def answers(self) -> bool:
        try:
            return requests.get(f"http://127.0.0.1:{API_PORT}/readyz", headers=self.headers, timeout=5).ok
        except requests.RequestException:
            return False

    def read(self, question: Callable[[Database[dict[str, Any]]], T]) -> T:
        """What MongoDB says, asked again while it is away."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return question(self._database())
            except (PyMongoError, ValueError, KeyError):
                self._client = None
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)

    def _database(self) -> Database[dict[str, Any]]:
        if self._client is None:
            self._client = MongoClient(
                self.address("mongo", "data"),
                username="scheduler",
                password=self.settings()["MONGO_PASSWORD"],
                directConnection=True,
                authSource="admin",
                tz_aware=True,
                serverSelectionTimeoutMS=3000,
            )
        return self._client["schedulerdb"]

    def processes_alive(self, role: str) -> int:
        metrics = requests.get(f"http://127.0.0.1:{API_PORT}/metrics", headers=self.headers, timeout=10).text
        found = re.search(rf'^scheduler_nodes{{role="{role}"}} (\d+)', metrics, re.MULTILINE)
        return int(found[1]) if found else 0

    @contextlib.contextmanager
    def failing_with_logs(self) -> Any:
        try:
            yield
        except Exception:
            print(self.compose("ps", "-a", check=False), self.compose("logs", "--tail", "25", check=False))
            raise

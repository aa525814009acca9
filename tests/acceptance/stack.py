"""The product's own processes, started as a user starts them and killed for real."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import psutil
import requests
from pymongo import MongoClient

from scheduler_app.broker.redis.backend import key_prefix
from scheduler_app.broker.task import QUEUE
from scheduler_app.embedded import free_port
from tests.processes import wait_until

#: It fires once, at the next second: an instant of the test's own may have passed before the API reads it.
ONCE = "FREQ=SECONDLY;COUNT=1"
#: This checkout.
CODE = Path(__file__).parents[2]
GUNICORN = "python:scheduler_app.cli.gunicorn_config"
#: As `scheduler up` starts them. `python -m celery`, which does the same, takes a seventh more CPU to start.
CELERY = "scheduler_app.cli.up.celery_process"

Process = subprocess.Popen[bytes]


def pids_of(process: Process) -> list[int]:
    """Of the process and of all below it."""
    with suppress(psutil.NoSuchProcess):
        return [process.pid, *(each.pid for each in psutil.Process(process.pid).children(recursive=True))]
    return []


class Stack:
    """Beats, workers and an API over one database and one broker."""

    def __init__(self, folder: Path, environment: Mapping[str, str], code: Path = CODE) -> None:
        """`folder` takes the logs; `code` is the checkout whose processes are started."""
        self.folder = folder
        self.code = code
        # An older release has no such module.
        self._celery = (CELERY,) if code == CODE else ("celery", "-A", "scheduler_app")
        self.environment = {
            **os.environ,
            "LOG_FORMAT": "json",
            "PYTHONPATH": str(code),
            **environment,
        }
        self.running: list[Process] = []
        self.url = ""
        self.prefix: tuple[str, ...] = ()
        """What the commands begin with that start processes."""

    def start(self, name: str, *command: str, **environment: str) -> Process:
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [*self.prefix, sys.executable, "-m", *command],
                env={**self.environment, **environment},
                # `python -m` looks for modules there before anywhere else.
                cwd=self.code,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.running.append(process)
        return process

    def all(self, **of_worker: str) -> tuple[Process, Process, Process]:
        """API, beat and worker, started side by side: each of them takes a second or two."""
        api, beat, worker = (
            self._begin_api(),
            self._begin_beat("beat"),
            self._begin_worker("worker", **of_worker),
        )
        self._wait_for_api(api)
        self.wait_for_node("beat", beat.pid)
        self.wait_for_node("worker", worker.pid)
        return api, beat, worker

    def worker(self, name: str = "worker", **environment: str) -> Process:
        process = self._begin_worker(name, **environment)
        self.wait_for_node("worker", process.pid)
        return process

    def beat(self, name: str = "beat", **environment: str) -> Process:
        process = self._begin_beat(name, **environment)
        self.wait_for_node("beat", process.pid)
        return process

    def api(self, *, has_mongodb: bool = True, **environment: str) -> Process:
        process = self._begin_api(**environment)
        if has_mongodb:
            self._wait_for_api(process)
        return process

    def _begin_worker(self, name: str, **environment: str) -> Process:
        options = ("-P", "threads", "--without-gossip", "--without-mingle", "-n", f"{name}@%h")
        return self.start(name, *self._celery, "worker", *options, **environment)

    def _begin_beat(self, name: str, **environment: str) -> Process:
        pidfile = f"--pidfile={self.folder / name}.pid"
        return self.start(name, *self._celery, "beat", pidfile, **environment)

    def _begin_api(self, **environment: str) -> Process:
        """As `scheduler up` and deploy/ have it served, but by one process."""
        port = int(environment.get("API_PORT") or free_port())
        self.url = f"http://127.0.0.1:{port}"
        settings = {"API_PORT": str(port), "API_PROCESSES": "1", **environment}
        application = "scheduler_app.api:create_app()"
        if not (self.code / "scheduler_app" / "api").exists():
            # The release before had a package `api` beside it.
            application = application.removeprefix("scheduler_app.")
        return self.start("api", "gunicorn", "--config", GUNICORN, application, **settings)

    def _wait_for_api(self, process: Process) -> None:
        """Until it answers, and has made its indexes: it answers lists by a 503 before that."""
        wait_until(self._healthy, "the API to answer", pause=0.05)
        self.wait_for_node("api", *pids_of(process))

    def wait_for_node(self, role: str, *pids: int) -> None:
        """Until one of the processes says in the database that it lives, which follows its indexes."""
        with MongoClient[dict[str, Any]](self.environment["MONGO_URI"]) as client:
            nodes = client[self.environment["MONGO_DATABASE"]]["nodes"]
            alive = {"role": role, "pid": {"$in": pids}}
            wait_until(
                lambda: nodes.find_one(alive) is not None,
                f"{role} {pids}\n{self.logs()}",
                pause=0.05,
            )

    def key(self, name: str = QUEUE) -> str:
        """The name of the queue, or of another key of kombu's, in Redis."""
        return key_prefix(self.environment["MONGO_DATABASE"]) + name

    def kill(self, process: Process) -> None:
        """kill -9: nothing of it gets to say a last word."""
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def close(self) -> None:
        self._end(self.running)
        self.running.clear()

    @staticmethod
    def _end(processes: Iterable[Process]) -> None:
        """kill -9 of all that run, at once."""
        with ExitStack() as stack:
            for process in processes:
                stack.callback(process.wait)
                if process.poll() is None:
                    stack.callback(os.killpg, process.pid, signal.SIGKILL)

    def logs(self) -> str:
        return "\n".join(
            f"--- {path.name}\n{path.read_text(errors='replace')[-4000:]}"
            for path in self.folder.glob("*.log")
        )

    def _healthy(self) -> bool:
        try:
            return requests.get(f"{self.url}/health", timeout=5).ok
        except (requests.ConnectionError, requests.Timeout):
            return False

    # -- the API as a user sees it -----------------------------------------------------------------------

    def post(self, path: str, body: Any = None, status: int = 201) -> dict[str, Any]:
        answer = requests.post(f"{self.url}/api{path}", json=body)
        assert answer.status_code == status, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def put(self, schedule_id: str, **fields: Any) -> dict[str, Any]:
        answer = requests.put(f"{self.url}/api/schedules/{schedule_id}", json=fields)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def create(self, callback_url: str, **fields: Any) -> str:
        made = self.post("/schedules", {"name": "test", "callback_url": callback_url, **fields})
        identity: str = made["id"]
        return identity

    def create_many(self, count: int, callback_url: str, **fields: Any) -> list[str]:
        """So many alike in one request: one by one, the last might come after the instant they share."""
        one = {"name": "test", "callback_url": callback_url, **fields}
        made = self.post("/schedules/bulk", {"schedules": [one] * count}, status=200)
        assert made["created"] == count, made
        return [result["id"] for result in made["results"]]

    def events(
        self, schedule_id: str, which: str = "history", limit: int = 500, **filters: str
    ) -> list[dict[str, Any]]:
        url = f"{self.url}/api/schedules/{schedule_id}/events/{which}"
        asked = {"limit": str(limit), **filters}
        found: list[dict[str, Any]] = requests.get(url, params=asked).json()["events"]
        return found

    def finished(self, schedule_id: str, count: int = 1) -> list[dict[str, Any]]:
        """The history, as soon as it has so many events; newest first."""
        what = f"{count} finished events"
        # Each question is a request, which takes time from the processes that are to finish them.
        wait_until(lambda: len(self.events(schedule_id)) >= count, what, pause=0.2)
        return self.events(schedule_id)

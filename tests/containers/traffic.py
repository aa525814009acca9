"""The load and the audit of `make smoke`, over containers: what is owed, called, and doubled."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import requests
from pymongo.database import Database

from tests.acceptance.chaos.findings import Findings
from tests.acceptance.chaos.load import Load
from tests.acceptance.chaos.suite import settle
from tests.containers.deployment import API_PORT, PATIENCE_SECONDS, ROOT, Deployment
from tests.containers.engine import ALLOWED, HERE, StepFailed

T = TypeVar("T")
#: At most, from the end of a load until all of it has ended: a busy machine takes long.
QUIET_SECONDS = 600
#: From the first request that creates a load to its first occurrence: a busy machine takes long for hundreds.
LEAD_SECONDS = 45


class Traffic:
    """A load's target: the deployment's API, and a receiver in the lane's own network.

    `harmed` are the workers that were killed: only what they had claimed may have been sent twice.
    """

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self.api_ports = {"api": API_PORT}
        self.harmed: set[str] = set()
        self.exited: list[str] = []
        self._receiver = subprocess.Popen(
            [sys.executable, "-m", "tests.acceptance.chaos.receiver", "0.0.0.0"],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={name: value for name, value in os.environ.items() if name != "CONTAINERS_STAGE"},
        )
        assert self._receiver.stdout is not None
        self.port = int(self._receiver.stdout.readline())

    @property
    def api_headers(self) -> Mapping[str, str]:
        return self.deployment.headers

    def callback_url(self, path: str) -> str:
        return f"http://{HERE}:{self.port}{path}"

    def read(self, question: Callable[[Database[dict[str, Any]]], T]) -> T:
        return self.deployment.read(question)

    def seen(self) -> list[tuple[float, str, str, str]]:
        return [tuple(row) for row in requests.get(f"http://127.0.0.1:{self.port}/report", timeout=30).json()]

    def note_exits(self) -> None:
        """What Compose restarts by itself was killed by the lane: `kill` waits until it is back."""

    def close(self) -> None:
        self._receiver.kill()
        self._receiver.wait()

    # -- what is broken ----------------------------------------------------------------------------------

    def kill(self, service: str) -> str:
        """kill -9 of the first process in one container of a service, which starts again by itself."""
        (container, *_) = self.deployment.containers(service)
        name, restarts = container["Name"].lstrip("/"), container["RestartCount"]
        if service == "worker":
            self.harmed.add(f"celery@{container['Config']['Hostname']}")
        os.kill(main_process(container["State"]["Pid"]), signal.SIGKILL)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            (now,) = json.loads(self.deployment.engine.run("docker", "inspect", name).stdout)
            if now["RestartCount"] > restarts and now["State"]["Running"]:
                return str(name)
            if time.monotonic() > deadline:
                raise StepFailed(f"{name} was killed and did not start again: {now['State']}")
            time.sleep(0.2)


def main_process(init: int) -> int:
    """The one that a container's init has started."""
    children = Path(f"/proc/{init}/task/{init}/children").read_text().split()
    return int(children[0]) if children else init


@contextmanager
def traffic(deployment: Deployment) -> Iterator[Traffic]:
    """The deployment allows callbacks to the lane's receiver within it."""
    made = Traffic(deployment)
    try:
        if deployment.settings().get("CALLBACK_ALLOWED_NETWORKS") != ALLOWED:
            deployment.set(CALLBACK_ALLOWED_NETWORKS=ALLOWED)
            deployment.compose("up", "--wait")
        yield made
    finally:
        made.close()


def audited(
    target: Traffic,
    name: str,
    window: int,
    during: Callable[[], None],
    *,
    quiet_seconds: float = QUIET_SECONDS,
) -> Findings:
    """A load while `during` breaks something. Raises when any is lost, stuck, or doubled without leave."""
    load = Load(target, name, int(time.time()) % 100_000, window, lead=LEAD_SECONDS)
    load.start()
    time.sleep(max(0.0, (load.begins - datetime.now(UTC)).total_seconds()) + 3)
    during()
    load.finish()
    found = settle(target, load, quiet_seconds)
    if found.broken:
        lists = {key: value for key, value in vars(found).items() if isinstance(value, list) and value}
        raise StepFailed(
            f"the audit of {name} found:\n"
            + "\n".join(f"{key}: {len(value)}, {value[:3]}" for key, value in lists.items())
        )
    return found


def counted(target: Traffic, name: str, schedules: int, window: int, during: Callable[[], None]) -> str:
    """A load that every release understands: each schedule calls every two seconds. Raises when a call is
    missing or comes twice."""
    times = window // 2
    begins = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=20)
    drafts = [
        {
            "id": f"{name}-{number}",
            "name": name,
            "rrule": f"DTSTART:{begins:%Y%m%dT%H%M%SZ}\nRRULE:FREQ=SECONDLY;INTERVAL=2;COUNT={times}",
            "callback_url": target.callback_url("/ok"),
        }
        for number in range(schedules)
    ]
    for draft in drafts:
        # Releases before 1.0 have no /api/v1.
        target.deployment.ask("POST", "/api/schedules", draft, expect=201)
    time.sleep(max(0.0, (begins - datetime.now(UTC)).total_seconds()) + 3)
    during()
    calls: Counter[str] = Counter()
    deadline = time.monotonic() + window + QUIET_SECONDS
    while sum(calls.values()) < schedules * times and time.monotonic() < deadline:
        time.sleep(1)
        calls.update(key for _, key, _, _ in target.seen() if key.startswith(f"{name}-"))
    time.sleep(5)
    calls.update(key for _, key, _, _ in target.seen() if key.startswith(f"{name}-"))
    doubled = [key for key, count in calls.items() if count > 1]
    if len(calls) != schedules * times or doubled:
        raise StepFailed(f"{schedules * times} were owed, {len(calls)} came, and twice: {doubled[:5]}")
    return f"{schedules * times:,} occurrences: 0 missing, 0 doubled"


def told(found: Findings) -> str:
    return (
        f"{found.occurrences:,} occurrences, {found.requests:,} requests: {len(found.lost)} missing, "
        f"{len(found.permitted)} doubled by a killed worker, {len(found.repeated)} doubled otherwise"
    )

"""The blocks of docs/production.md, and those by which docs/operations.md copies the folder of `up`."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import requests

from scheduler_app.embedded import free_port
from tests import scratch
from tests.acceptance.journal import Journal
from tests.acceptance.shared_stack import SharedStack
from tests.acceptance.stack import Stack
from tests.acceptance.ups import READY, UP, start
from tests.processes import Program, wait_until
from tests.unit.docs.manual import DOCS, ROOT, table

MARK = "<!-- run by tests/acceptance/test_production_page.py -->\n```bash\n"
BIN = Path(sys.executable).parent
INTERVAL = timedelta(seconds=2)


def blocks(page: str) -> list[str]:
    return [part.split("```")[0] for part in (DOCS / page).read_text().split(MARK)[1:]]


def shell(commands: str, folder: Path, **environment: str) -> str:
    done = subprocess.run(
        ["bash", "-euc", commands],
        cwd=folder,
        env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="production-") as name:
        yield Path(name)


def end(up: Program) -> None:
    up.signal(signal.SIGINT, to_group=True)
    assert up.wait() == 0
    up.wait_for_nothing_left()


def instants(journal: Journal) -> set[datetime]:
    return {datetime.fromisoformat(call.run_time) for call in journal.calls["/first"]}


@pytest.mark.long
@pytest.mark.timeout(300)
def test_what_up_has_goes_on_in_a_copy_of_its_folder_and_in_an_installation_of_its_own(
    folder: Path, make_stack: Callable[..., Stack], journal: Journal
) -> None:
    take, put, make_up_for = blocks("production.md")
    copy, restore = blocks("operations.md")[0].strip().splitlines()
    secret = {"headers": {"X-Secret": "sealed"}}
    first = {"id": "my-first", "callback_url": journal.url("/first"), "every_seconds": INTERVAL.seconds}
    others: list[dict[str, Any]] = [
        {"id": "each-7h", "rrule": "FREQ=HOURLY;INTERVAL=7"},
        {"id": "each-11-days", "every_seconds": 11 * 86_400},
        {"id": "daily", "cron": "0 9 * * *", "timezone": "Europe/Zurich"},
    ]

    def next_runs(**environment: str) -> dict[str, str]:
        asked = ("scheduler", "next", "--limit", "3", "--json")
        return {each["id"]: shell(shlex.join([*asked, each["id"]]), folder, **environment) for each in others}

    up = start(folder)
    try:
        api = up.wait_for(r"^  API +(http://\S+)$")[1]
        up.wait_for(READY)
        for each in (first | secret, *(other | {"callback_url": journal.url("/other")} for other in others)):
            answer = requests.post(f"{api}/api/v1/schedules", json={"name": "test"} | each)
            assert answer.status_code == 201, answer.text
        shell("scheduler pause daily", folder)
        wait_until(lambda: bool(journal.calls["/first"]), "the first call")
        before = next_runs()
        shell(take, folder)
        end(up)
        assert (folder / "all.yaml").stat().st_mode & 0o077 == 0
        assert (folder / "secrets-key-of-up").stat().st_mode & 0o077 == 0
    finally:
        up.kill()

    # The copy is made while nothing runs, and started when the server has ended: both would send.
    shell(copy, folder)
    moved_at = datetime.fromisoformat((folder / "moved-at").read_text().strip())
    end_of_up = max(instants(journal))
    server = make_stack(SECRETS_KEY=(folder / "secrets-key-of-up").read_text().strip())
    server.all()
    there = {"SCHEDULER_URL": server.url}
    assert "refused 0" in shell(put, folder, **there)
    assert next_runs(**there) == before
    assert requests.get(f"{server.url}/api/v1/schedules/daily").json()["state"] == "paused"
    wait_until(lambda: max(instants(journal)) > end_of_up, "a call by the server")
    shell(make_up_for, folder, **there)

    def complete() -> bool:
        seen = sorted(each for each in instants(journal) if each >= moved_at)
        return seen[0] - moved_at < INTERVAL and all(two - one == INTERVAL for one, two in pairwise(seen))

    wait_until(complete, "what fell due between the two")
    assert all(call.seen.headers["x-secret"] == "sealed" for call in journal.calls["/first"])
    server.close()

    words = shlex.split(restore, comments=True)
    assert words[:2] == ["scheduler", "up"]
    copied = Program([*UP, "--port", str(free_port()), *words[2:]], folder)
    try:
        api = copied.wait_for(r"^  API +(http://\S+)$")[1]
        copied.wait_for(READY)
        asked = {"schedule_id": "my-first", "to": (folder / "moved-at").read_text().strip()}
        kept = requests.get(f"{api}/api/v1/events", params=asked).json()["events"]
        assert {event["state"] for event in kept} == {"completed"}
        end(copied)
    finally:
        copied.kill()


def test_a_worker_with_the_settings_that_the_page_names_joins_an_installation(
    stack: SharedStack, journal: Journal
) -> None:
    rows = table("production", "| setting | if it differs on one machine |")
    settings = {name: stack.environment[name] for name in rows.names() if name in stack.environment}
    assert {"MONGO_URI", "BROKER_URL", "SECRETS_KEY", "CALLBACK_ALLOWED_NETWORKS"} <= set(settings)
    unit = (ROOT / "deploy" / "systemd" / "scheduler-worker@.service").read_text()
    (started,) = re.findall(r'^ExecStart=.* exec "\$\$0" "\$\$@"\' (.+)$', unit, re.MULTILINE)
    command = (
        started.replace("/opt/scheduler/.venv/bin", str(BIN)).replace("%i", "2").replace("%%h", "second")
    )
    # The mark ends it with the tests, even if they are killed.
    inherited = {name: os.environ[name] for name in ("PATH", scratch.MARK)}
    second = subprocess.Popen(
        shlex.split(command),
        cwd=stack.folder,
        env={**inherited, "HOME": str(stack.folder), **settings},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    stack.running.append(second)
    stack.wait_for_node("worker", second.pid)
    doctor = subprocess.run(
        [BIN / "scheduler", "doctor", "--json"],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
    )
    checks = {each["name"]: each for each in json.loads(doctor.stdout)["checks"]}
    assert "worker2@second" in checks["worker"]["found"]
    assert checks["settings"]["status"] == "ok", checks["settings"]
    with stack.stopped("worker"):
        schedule = stack.create(journal.url("/second"), delay_seconds=1)
        (event,) = stack.finished(schedule)
    assert event["state"] == "completed"
    assert any("worker2@second" in line["message"] for line in event["status"])

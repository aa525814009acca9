"""`/readyz` and `scheduler doctor` name what is missing, whatever it is, and say what to do."""

import json
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
from click.testing import CliRunner, Result
from cryptography.fernet import Fernet
from redis import Redis as Client

from scheduler_app.cli import main
from scheduler_app.embedded import Mongod, Redis
from scheduler_app.embedded.server import Server
from tests.acceptance.stack import Stack
from tests.processes import wait_until

KEY = secrets.token_hex(24)


class Patient(Stack):
    """A stack over servers of its own, each part of which can be taken away and comes back."""

    def __init__(self, folder: Path, mongod: Mongod, redis: Redis) -> None:
        self.mongod, self.redis = mongod, redis
        settings = {"MONGO_URI": mongod.uri, "MONGO_DATABASE": "doctor", "BROKER_URL": redis.url}
        keys = {"API_KEYS": KEY, "SECRETS_KEY": Fernet.generate_key().decode()}
        super().__init__(folder, settings | keys | {"WORKER_SOFT_SHUTDOWN_SECONDS": "1"})
        _, beat, worker = self.all()
        self.parts = {"beat": beat, "worker": worker}

    def not_ready(self) -> dict[str, str]:
        """What /readyz names, by name, with its detail."""
        answer = requests.get(f"{self.url}/readyz", timeout=20)
        checks = answer.json()["checks"]
        named = {name: check["detail"] for name, check in checks.items() if not check["ok"]}
        assert answer.status_code == (503 if named else 200)
        return named

    def is_ready(self) -> bool:
        return not self.not_ready()

    def wait_until_named(self, name: str, detail: str, *, alone: bool = False) -> None:
        """Until /readyz says so. On a machine that stands still a second, its other checks come too late."""

        def is_named() -> bool:
            named = self.not_ready()
            return detail in named.get(name, "") and (not alone or list(named) == [name])

        wait_until(is_named, f"{name} to be named")

    def doctor(self, *options: str, **environment: str) -> Result:
        arguments = ("doctor", "--flower-url", "http://127.0.0.1:9", *options)
        return CliRunner().invoke(main, arguments, env=self.environment | environment, catch_exceptions=False)

    def diagnosis(self, **environment: str) -> dict[str, dict[str, Any]]:
        """Every check by name; the exit status agrees with them."""
        done = self.doctor("--json", **environment)
        said = json.loads(done.stdout)
        checks = {check["name"]: check for check in said["checks"]}
        wrong = [check for check in checks.values() if check["status"] == "wrong"]
        assert (done.exit_code, said["ok"]) == ((1, False) if wrong else (0, True)), done.stderr
        assert all(check["remedy"] for check in wrong)
        return checks

    def wrong(self, **environment: str) -> list[str]:
        return [name for name, check in self.diagnosis(**environment).items() if check["status"] == "wrong"]

    @contextmanager
    def without(self, name: str) -> Iterator[None]:
        """While a part is stopped, as an operator stops it."""
        process = self.parts[name]
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        try:
            yield
        finally:
            self.parts[name] = self.beat() if name == "beat" else self.worker()

    @staticmethod
    @contextmanager
    def dead(server: Server) -> Iterator[None]:
        server.kill()
        try:
            yield
        finally:
            server.start()


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Patient]:
    with (
        tempfile.TemporaryDirectory(prefix="doctor-") as folder,
        Mongod(Path(folder) / "mongod") as mongod,
        Redis(Path(folder) / "redis") as redis,
    ):
        made = Patient(tmp_path_factory.mktemp("stack"), mongod, redis)
        yield made
        made.close()


@pytest.fixture
def stack(patient: Patient) -> Patient:
    """In good health."""
    wait_until(patient.is_ready, "the stack to be ready")
    return patient


def test_doctor_finds_nothing_wrong_where_everything_runs(stack: Patient) -> None:
    command = [sys.executable, "-m", "scheduler_app.cli", "doctor"]
    done = subprocess.run(command, env=stack.environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout
    assert "Everything is there." in done.stdout
    assert KEY not in done.stdout


def test_a_stopped_beat_is_named(stack: Patient) -> None:
    with stack.without("beat"):
        assert stack.wrong() == ["beat"]
        stack.wait_until_named("beat", "celery -A scheduler_app beat")


def test_a_stopped_worker_is_named(stack: Patient) -> None:
    with stack.without("worker"):
        assert stack.wrong() == ["worker"]
        stack.wait_until_named("worker", "celery -A scheduler_app worker")


def test_a_process_whose_clock_is_5_s_off_is_named_with_its_host(stack: Patient) -> None:
    pidfile = f"--pidfile={stack.folder / 'slow'}.pid"
    slow = stack.start(
        "slow", "tests.acceptance.skewed", "-5", "celery", "-A", "scheduler_app", "beat", pidfile
    )
    try:
        # A measurement that the machine kept waiting is less exact: the quickest of several counts.
        stack.wait_until_named("clocks", "5.0 s behind mongod")
        stack.wait_until_named("clocks", "beat ")
        assert stack.wrong() == ["clocks"]
    finally:
        slow.terminate()
        slow.wait(60)


def test_a_dead_redis_is_named(stack: Patient) -> None:
    with stack.dead(stack.redis):
        assert stack.wrong() == ["redis"]
        stack.wait_until_named("broker", "does not answer", alone=True)


def test_a_redis_that_evicts_and_forgets_is_named(stack: Patient) -> None:
    with Client(port=stack.redis.port) as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        client.config_set("appendonly", "no")
        try:
            assert stack.wrong() == ["redis eviction", "redis persistence"]
        finally:
            client.config_set("maxmemory-policy", "noeviction")
            client.config_set("appendonly", "yes")


def test_a_dead_mongodb_is_named_and_nothing_that_depends_on_it(stack: Patient) -> None:
    with stack.dead(stack.mongod), ThreadPoolExecutor() as at_once:
        not_ready = at_once.submit(stack.not_ready)
        checks = stack.diagnosis()
        assert [name for name, check in checks.items() if check["status"] == "wrong"] == ["mongodb"]
        assert checks["worker"]["status"] == "unknown"
        assert "does not answer" in not_ready.result()["mongodb"]


def test_a_wrong_setting_ends_doctor_with_its_name(stack: Patient) -> None:
    done = stack.doctor(REDIS_PORT="none")
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: REDIS_PORT must be a whole number")


def test_missing_keys_are_told_and_are_not_wrong(stack: Patient) -> None:
    checks = stack.diagnosis(API_KEYS="", SECRETS_KEY="")
    assert checks["API_KEYS"]["status"] == checks["SECRETS_KEY"]["status"] == "note"

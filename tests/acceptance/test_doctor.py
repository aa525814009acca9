"""`/readyz` and `scheduler doctor` name what is missing, whatever it is, and say what to do."""

import json
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
import requests
from click.testing import CliRunner, Result
from cryptography.fernet import Fernet
from redis import Redis as Client

from scheduler_app.cli import main
from scheduler_app.embedded import Mongod, Redis
from scheduler_app.embedded.server import Server
from tests.acceptance.shared_stack import SharedStack
from tests.processes import wait_until

KEY = secrets.token_hex(24)


class Patient:
    """The shared stack and the servers it runs over, each part of which can be taken away and comes back."""

    def __init__(self, stack: SharedStack, mongod: Mongod, redis: Redis) -> None:
        self.stack, self.mongod, self.redis = stack, mongod, redis
        self.environment = stack.environment | {"API_KEYS": KEY}

    def not_ready(self) -> dict[str, str]:
        """What /readyz names, by name, with its detail."""
        answer = requests.get(f"{self.stack.url}/readyz")
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

    def wait_until_wrong(self, *names: str) -> None:
        """Until doctor finds these wrong and nothing else. On a machine that stood still, a part may not have
        reported for longer than parts that live do, or a server answer too late."""
        found: list[list[str]] = []

        def are_wrong() -> bool:
            found.append(self.wrong())
            return found[-1] == list(names)

        try:
            wait_until(are_wrong, f"{names} to be wrong", pause=1)
        except BaseException as error:
            error.add_note(f"found wrong: {found}")
            raise

    @contextmanager
    def without(self, name: str) -> Iterator[None]:
        """While a part is stopped, as an operator stops it."""
        process = self.stack.parts[name]
        process.send_signal(signal.SIGTERM)
        process.wait()
        try:
            yield
        finally:
            self.stack.mend()

    @staticmethod
    @contextmanager
    def dead(server: Server) -> Iterator[None]:
        server.kill()
        try:
            yield
        finally:
            server.start()


@pytest.fixture
def patient(stack: SharedStack, mongod_server: Mongod, redis_server: Redis) -> Patient:
    """In good health."""
    made = Patient(stack, mongod_server, redis_server)
    wait_until(made.is_ready, "the stack to be ready")
    return made


def test_doctor_finds_nothing_wrong_where_everything_runs(patient: Patient) -> None:
    command = [sys.executable, "-m", "scheduler_app.cli", "doctor"]
    said: list[str] = []

    def finds_nothing() -> bool:
        """On a machine that stood still, a part may not have reported in time."""
        done = subprocess.run(command, env=patient.environment, capture_output=True, text=True)
        said.append(done.stdout)
        return done.returncode == 0

    wait_until(finds_nothing, "doctor to find nothing wrong", pause=1)
    assert "Everything is there." in said[-1]
    assert KEY not in said[-1]


def test_a_stopped_beat_is_named(patient: Patient) -> None:
    with patient.without("beat"):
        patient.wait_until_wrong("beat")
        patient.wait_until_named("beat", "celery -A scheduler_app beat")


def test_a_stopped_worker_is_named(patient: Patient) -> None:
    with patient.without("worker"):
        patient.wait_until_wrong("worker")
        patient.wait_until_named("worker", "celery -A scheduler_app worker")


def test_a_process_whose_clock_is_5_s_off_is_named_with_its_host(patient: Patient) -> None:
    pidfile = f"--pidfile={patient.stack.folder / 'slow'}.pid"
    slow = patient.stack.start(
        "slow", "tests.acceptance.skewed", "-5", "celery", "-A", "scheduler_app", "beat", pidfile
    )
    try:
        # A measurement that the machine kept waiting is less exact: the quickest of several counts.
        patient.wait_until_named("clocks", "5.0 s behind mongod")
        patient.wait_until_named("clocks", "beat ")
        patient.wait_until_wrong("clocks")
    finally:
        slow.terminate()
        slow.wait()


def test_a_dead_redis_is_named(patient: Patient) -> None:
    with patient.dead(patient.redis):
        patient.wait_until_wrong("redis")
        patient.wait_until_named("broker", "does not answer", alone=True)


def test_a_redis_that_evicts_and_forgets_is_named(patient: Patient) -> None:
    with Client(port=patient.redis.port) as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        client.config_set("appendonly", "no")
        try:
            patient.wait_until_wrong("redis eviction", "redis persistence")
        finally:
            client.config_set("maxmemory-policy", "noeviction")
            client.config_set("appendonly", "yes")


def test_a_dead_mongodb_is_named_and_nothing_that_depends_on_it(patient: Patient) -> None:
    with patient.dead(patient.mongod), ThreadPoolExecutor() as at_once:
        not_ready = at_once.submit(patient.not_ready)
        checks = patient.diagnosis()
        assert [name for name, check in checks.items() if check["status"] == "wrong"] == ["mongodb"]
        assert checks["worker"]["status"] == "unknown"
        assert "does not answer" in not_ready.result()["mongodb"]


def test_a_wrong_setting_ends_doctor_with_its_name(patient: Patient) -> None:
    done = patient.doctor(REDIS_PORT="none")
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: REDIS_PORT must be a whole number")


def test_a_paused_destination_is_named(patient: Patient) -> None:
    url = f"{patient.stack.url}/api/destinations/held"
    made = {"url": "http://127.0.0.1:9/", "paused": True}
    assert requests.put(url, json=made).ok
    try:
        done = patient.doctor()
        assert done.exit_code == 0
        assert "held paused: their events wait" in " ".join(done.stdout.split())
        assert "Everything is there, but see: destinations." in done.stdout
    finally:
        requests.delete(url).raise_for_status()


def test_an_open_breaker_is_named(patient: Patient) -> None:
    url = f"{patient.stack.url}/api/destinations/broken"
    made = {"url": "http://127.0.0.1:9/", "breaker": {"failures": 1, "open_seconds": 600}, "max_retries": 0}
    assert requests.put(url, json=made).ok
    sent = {"destination": "broken", "delay_seconds": 0}
    requests.post(f"{patient.stack.url}/api/messages", json=sent).raise_for_status()
    wait_until(
        lambda: patient.diagnosis()["destinations"]["status"] == "note", "the breaker to open", pause=1
    )
    assert "broken" in patient.diagnosis()["destinations"]["found"]
    requests.delete(url).raise_for_status()


def test_a_broker_of_another_application_that_is_away_is_named(patient: Patient) -> None:
    done = patient.doctor(
        CELERY_BROKERS=f"ours={patient.redis.url},reports=redis://127.0.0.1:9/0",
        CELERY_TASKS="ours:*,reports:*",
        CELERY_RESULT_BACKENDS="",
    )
    said = " ".join(done.stdout.split())
    assert "reports at redis://127.0.0.1:9/0 does not answer" in said
    assert f"ours at {patient.redis.url} answers" in said
    assert done.exit_code == 1


def test_a_database_without_the_key_of_its_secrets_is_named(patient: Patient) -> None:
    secret = {"name": "s", "callback_url": "http://127.0.0.1:9/?token=1", "on_demand": True}
    requests.post(f"{patient.stack.url}/api/schedules", json=secret).raise_for_status()
    assert patient.diagnosis()["stored secrets"]["status"] == "ok"
    checks = patient.diagnosis(SECRETS_KEY=Fernet.generate_key().decode())
    assert checks["stored secrets"]["status"] == "wrong"
    assert "SECRETS_KEY" in checks["stored secrets"]["remedy"]


def test_missing_keys_are_told_and_are_not_wrong(patient: Patient) -> None:
    checks = patient.diagnosis(API_KEYS="", SECRETS_KEY="")
    assert (checks["API_KEYS"]["status"], checks["SECRETS_KEY"]["status"]) == ("ok", "note")

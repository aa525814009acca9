"""A process that cannot work ends at once, and says in one sentence which setting to mend, and how."""

import json
import os
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from scheduler_app.embedded import free_port
from scheduler_app.embedded.binaries import find_mongod
from scheduler_app.health.startup import EXIT_STATUS
from tests.processes import Program

Run = Callable[..., Program]
WORKER = ("celery", "-A", "scheduler_app", "worker", "--without-gossip", "--without-mingle")
BEAT = ("celery", "-A", "scheduler_app", "beat", "--pidfile=")
API = ("gunicorn", "--bind", "127.0.0.1:{port}", "scheduler_app.api:create_app()")
#: As deploy/ has it served.
SERVED = (
    "gunicorn",
    "--config",
    "python:scheduler_app.cli.gunicorn_config",
    "scheduler_app.api:create_app()",
)


@pytest.fixture
def environment(mongo_uri: str, database_name: str, redis_url: str) -> dict[str, str]:
    return {
        "PYTHONPATH": os.environ.get("PYTHONPATH", os.getcwd()),
        "MONGO_URI": mongo_uri,
        "MONGO_DATABASE": database_name,
        "BROKER_URL": redis_url,
        "LOG_FORMAT": "json",
    }


@pytest.fixture
def taken() -> Iterator[int]:
    """A port on which somebody else listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.fixture
def alone(tmp_path: Path, run: Run) -> str:
    """The address of a mongod that belongs to no replica set."""
    port, folder = free_port(), tmp_path / "alone"
    folder.mkdir()
    options = ("--port", str(port), "--bind_ip", "127.0.0.1", "--dbpath", str(folder), "--nounixsocket")
    run(str(find_mongod()), *options).wait_for("Waiting for connections")
    return f"mongodb://127.0.0.1:{port}"


def sentence_of(program: Program) -> str:
    """What it said, once it has ended by itself; a traceback or a second sentence is a failure."""
    assert program.wait() != 0
    assert "Traceback" not in program.output
    (said,) = refusals(program)
    return said


def refusals(program: Program) -> list[str]:
    """The sentences with which processes of a program refused to start."""
    lines = [json.loads(line) for line in program.output.splitlines() if line.startswith("{")]
    return [line["message"] for line in lines if line.get("event") == "process.refused"]


CAUSES = {
    "bad SECRETS_KEY": ({"SECRETS_KEY": "no key"}, "SECRETS_KEY must be Fernet keys"),
    "bad MONGO_URI": ({"MONGO_URI": "mongodb://[nowhere"}, "MONGO_URI cannot be used"),
    "foreign MONGO_URI": ({"MONGO_URI": "http://nowhere"}, "MONGO_URI must begin with mongodb://"),
    "bad networks": ({"CALLBACK_ALLOWED_NETWORKS": "10.0.0.1/8"}, "CALLBACK_ALLOWED_NETWORKS must be CIDR"),
    "bad number": ({"REDIS_PORT": "none"}, "REDIS_PORT must be a whole number"),
    "unknown broker": ({"BROKER_URL": "foo://localhost"}, "BROKER_URL cannot be used"),
}
KINDS = {"worker": WORKER, "beat": BEAT, "api": API}


@pytest.mark.parametrize(
    "causes",
    [
        # Found when the settings are read, which is one and the same for all.
        pytest.param({"worker": "foreign MONGO_URI", "beat": "bad networks", "api": "bad number"}, id="read"),
        # Found when each makes its store or its broker, in a place of its own.
        pytest.param(
            {"worker": "unknown broker", "beat": "bad MONGO_URI", "api": "bad SECRETS_KEY"}, id="used"
        ),
        pytest.param(
            {"worker": "bad MONGO_URI", "beat": "bad SECRETS_KEY", "api": "unknown broker"},
            id="used-otherwise",
            marks=pytest.mark.long,
        ),
        pytest.param(
            {"worker": "bad SECRETS_KEY", "beat": "unknown broker", "api": "bad MONGO_URI"},
            id="used-in-a-third-way",
            marks=pytest.mark.long,
        ),
    ],
)
def test_a_wrong_setting_ends_each_kind_of_process(
    causes: dict[str, str], run: Run, environment: dict[str, str]
) -> None:
    programs = {}
    for kind, cause in causes.items():
        command = [word.format(port=free_port()) for word in KINDS[kind]]
        programs[kind] = run(sys.executable, "-m", *command, **environment | CAUSES[cause][0])
    for kind, program in programs.items():
        assert program.wait() != 0
        assert "Traceback" not in program.output
        said = set(refusals(program))
        assert len(said) == 1, program.output
        assert CAUSES[causes[kind]][1] in said.pop()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param(
            {"SECRETS_KEY": "no key"},
            "SECRETS_KEY must be Fernet keys",
            id="found when it is used",
            marks=pytest.mark.long,
        ),
        pytest.param({"REDIS_PORT": "none"}, "REDIS_PORT must be a whole number", id="found when it is read"),
    ],
)
def test_an_api_of_several_processes_says_one_sentence_and_ends_with_the_status_of_all_others(
    given: dict[str, str], said: str, run: Run, environment: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    several = {"API_PROCESSES": "3", "API_PORT": str(free_port()), "TMPDIR": str(folder)}
    program = run(sys.executable, "-m", *SERVED, **environment | several | given)
    assert program.wait() == EXIT_STATUS
    assert said in sentence_of(program)
    assert len(program.output.splitlines()) <= 2, program.output
    assert list(folder.glob("scheduler-metrics-*")) == []


def test_where_logs_are_text_the_sentence_is_a_line_of_text(run: Run, environment: dict[str, str]) -> None:
    program = run(
        sys.executable, "-m", *WORKER, **environment | {"LOG_FORMAT": "text", "SECRETS_KEY": "no key"}
    )
    assert program.wait() == EXIT_STATUS
    assert program.output.splitlines()[-1].startswith("scheduler: SECRETS_KEY must be Fernet keys")


def test_a_taken_metrics_port_ends_worker_and_beat(taken: int, run: Run, environment: dict[str, str]) -> None:
    both = [
        run(sys.executable, "-m", *process, **environment, METRICS_PORT=str(taken))
        for process in (WORKER, BEAT)
    ]
    for said in map(sentence_of, both):
        assert f"METRICS_PORT {taken} cannot be listened on" in said
        assert "give each process" in said


def test_a_ca_bundle_that_is_none_ends_a_worker(
    tmp_path: Path, run: Run, environment: dict[str, str]
) -> None:
    missing = tmp_path / "missing.pem"
    program = run(sys.executable, "-m", *WORKER, **environment, CALLBACK_CA_BUNDLE=str(missing))
    assert f"CALLBACK_CA_BUNDLE {missing} cannot be read as certificates" in sentence_of(program)


def test_another_pool_ends_a_worker(run: Run, environment: dict[str, str]) -> None:
    # Celery's own default, which it takes for no answer: see tests/unit/worker/test_pool.py for the others.
    said = sentence_of(run(sys.executable, "-m", *WORKER, "-P", "prefork", **environment))
    assert "cannot deliver callbacks" in said
    assert "--pool threads" in said


def test_a_mongod_on_its_own_ends_worker_and_beat(alone: str, run: Run, environment: dict[str, str]) -> None:
    both = [
        run(sys.executable, "-m", *process, **environment | {"MONGO_URI": alone})
        for process in (WORKER, BEAT)
    ]
    for said in map(sentence_of, both):
        assert "replica set" in said
        assert "rs.initiate()" in said


def test_a_worker_needs_no_option_for_its_pool_and_waits_for_a_mongodb_that_is_away(
    tmp_path: Path, run: Run, environment: dict[str, str]
) -> None:
    uri = f"mongodb://127.0.0.1:{free_port()}/?replicaSet=rs0"
    program = run(sys.executable, "-m", *WORKER, **environment | {"MONGO_URI": uri})
    program.wait_for("celery@.* ready")
    assert '"concurrency": 16, "pool": "thread"' in program.output
    program.wait_for("MongoDB does not answer yet")

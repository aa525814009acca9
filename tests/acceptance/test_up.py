"""What `scheduler up` refuses: in a process of its own, or in this one where only the sentence differs."""

import os
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

from scheduler_app.cli import main
from scheduler_app.embedded import Redis, find_mongod, free_port
from tests.processes import Program

_UP = (sys.executable, "-m", "scheduler_app.cli", "up")


def _refused(program: Program) -> str:
    """The one sentence of a run that could not begin."""
    assert program.wait() == 1, program.output
    assert program.processes() == []
    lines = program.output.splitlines()
    assert len(lines) == 1, program.output
    return lines[0]


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """The one sentence of a run in this process that cannot begin: a process of its own takes a second of CPU
    to say it."""
    monkeypatch.chdir(tmp_path)
    before = os.umask(0o077)

    def sentence_of(*options: str, **environment: str) -> str:
        others = psutil.Process().children(recursive=True)
        done = CliRunner().invoke(main, ["up", *options], env=environment)
        assert done.exit_code == 1, done.output
        assert set(psutil.Process().children(recursive=True)) <= set(others)
        (sentence,) = done.output.splitlines()
        return sentence

    yield sentence_of
    os.umask(before)


def test_without_a_usable_mongod_one_sentence_says_what_to_do(
    run: Callable[..., Program], tmp_path: Path
) -> None:
    nothing_installed = (
        "import sys; from scheduler_app.cli import main; from scheduler_app.cli.up import local_run;"
        "sys.path.clear(); main(['up', *sys.argv[1:]])"
    )
    sentence = _refused(
        run(sys.executable, "-c", nothing_installed, "--port", str(free_port()), PATH=str(tmp_path))
    )
    assert sentence.startswith("Error: No usable mongod for ")
    assert "install MongoDB" in sentence
    assert "pip install 'rrule-scheduler[embedded]'" in sentence
    assert "MONGO_URI" in sentence
    assert sentence.endswith("or run `docker compose up`.")


def test_a_port_that_is_taken_is_one_sentence(run: Callable[..., Program]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        sentence = _refused(run(*_UP, "--port", str(port)))
    assert f"port {port} of 127.0.0.1 is taken" in sentence
    assert "--port" in sentence


def test_a_redis_port_that_is_taken_is_one_sentence(refused: Callable[..., str], redis_server: Redis) -> None:
    sentence = refused("--port", str(free_port()), REDIS_PORT=str(redis_server.port))
    assert sentence.startswith(f"Error: REDIS_PORT: port {redis_server.port}")


def test_a_mongo_uri_that_does_not_answer_is_one_sentence_without_its_password(
    refused: Callable[..., str],
) -> None:
    uri = f"mongodb://app:s3cret@127.0.0.1:{free_port()}/"
    sentence = refused("--port", str(free_port()), MONGO_URI=uri)
    assert sentence.startswith("Error: MONGO_URI: mongodb://app:***@127.0.0.1")
    assert "does not answer" in sentence
    assert "s3cret" not in sentence


def test_a_mongod_that_is_no_replica_set_is_one_sentence_that_says_how_to_make_it_one(
    run: Callable[..., Program], tmp_path: Path
) -> None:
    (tmp_path / "alone").mkdir()
    port = str(free_port())
    alone = run(str(find_mongod()), "--dbpath", str(tmp_path / "alone"), "--port", port, "--nounixsocket")
    alone.wait_for("Waiting for connections")
    sentence = _refused(run(*_UP, "--port", str(free_port()), MONGO_URI=f"mongodb://127.0.0.1:{port}"))
    assert "rs.initiate()" in sentence
    alone.kill()
    shutil.rmtree(tmp_path / "alone")


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("WORKER_COUNT", "abc", "WORKER_COUNT"),
        ("MONGO_URI", "localhost:27017", "MONGO_URI must begin with mongodb://"),
        ("ALLOWED_COMMANDS", '["echo a,b", "shell:*"]', "ALLOW_ANY_COMMAND=true"),
        ("CELERY_BROKERS", "shop=redis://h:1/0", "CELERY_TASKS must say"),
    ],
)
def test_a_wrong_setting_is_one_sentence_with_its_name(
    refused: Callable[..., str], name: str, value: str, says: str
) -> None:
    assert says in refused(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("REDIS_HOST", "127.0.0.1"),
        ("BROKER_URL", "redis://:s3cret@127.0.0.1:{port}/0"),
        pytest.param(
            "BROKER_URL",
            "sentinel://:s3cret@127.0.0.1:{port};sentinel://:s3cret@127.0.0.1:{port}",
            marks=pytest.mark.long,
        ),
        ("BROKER_URL", "amqp://guest:s3cret@127.0.0.1:{port}//"),
    ],
)
def test_a_broker_that_does_not_answer_is_one_sentence_without_its_password(
    refused: Callable[..., str], name: str, value: str
) -> None:
    port = str(free_port())
    given = {name: value.format(port=port), "REDIS_PORT": port}
    sentence = refused("--port", str(free_port()), **given)
    assert sentence.startswith(f"Error: {name}: ")
    assert "does not answer" in sentence
    assert "s3cret" not in sentence


def test_a_broker_of_no_known_kind_is_one_sentence_that_names_those_there_are(
    refused: Callable[..., str],
) -> None:
    given = {"BROKER_URL": "carrier-pigeon://keeper:s3cret@coop", "REDIS_PORT": str(free_port())}
    sentence = refused("--port", str(free_port()), **given)
    assert sentence.startswith("Error: BROKER_URL ")
    assert "redis:// or" in sentence
    assert "s3cret" not in sentence


def test_a_data_directory_that_cannot_be_written_is_one_sentence(
    refused: Callable[..., str], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    sentence = refused("--port", str(free_port()), "--data-dir", "file/data")
    assert "data directory file/data cannot be written" in sentence

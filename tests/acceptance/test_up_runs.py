"""`scheduler up` with everything: MongoDB, Redis, API, beat, a worker and Flower, for real."""

import json
import shlex
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import requests

from scheduler_app.embedded import Mongod, Redis, free_port
from tests.acceptance.ups import READY, UP, Ups, start
from tests.processes import Program, wait_until


@contextmanager
def _started(folder: Path, port: int) -> Iterator[Program]:
    up = start(folder, port)
    try:
        up.wait_for(READY)
        yield up
    finally:
        up.kill()


def _api(up: Program) -> str:
    return up.wait_for(r"^  API +(http://\S+)$")[1]


def _named(up: Program, *words: str) -> psutil.Process:
    """The running process with these words in its command line."""
    return next(each for each in up.processes() if set(words) <= set(each.cmdline()))


def _paste_curl(up: Program, **instead: object) -> str:
    """What the printed curl line does, with other values here and there; gives the schedule's id."""
    words = shlex.split(up.wait_for(r"^  (curl .*)$")[1])
    answer = requests.post(words[1], json=json.loads(words[-1]) | instead)
    assert answer.status_code == 201, answer.text
    identity: str = answer.json()["id"]
    return identity


def _completed(api: str, schedule: str) -> int:
    """How many of its events are in the history as completed (at most 50)."""
    answer = requests.get(f"{api}/api/schedules/{schedule}/events/history", params={"limit": 50})
    assert answer.status_code == 200, answer.text
    return sum(event["status"][-1]["status"] == "completed" for event in answer.json()["events"])


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="up-") as name:
        yield Path(name)


@pytest.fixture
def running(ups: Ups) -> Program:
    """One for the tests that leave it as it was."""
    return ups.runs()[0]


def test_all_addresses_that_are_printed_answer(running: Program) -> None:
    # A probe gives up after a second and a half, which a machine that stands still may take.
    wait_until(lambda: _answers(f"{_api(running)}/readyz"), "the API to be ready")
    flower = running.wait_for(r"^  Flower +(http://\S+)")[1]
    assert requests.get(f"{flower}/healthcheck").status_code == 200
    swagger = running.wait_for(r"^  Swagger UI +(http://\S+)$")[1]
    assert requests.get(swagger).status_code == 200
    running.wait_for(r"^  MongoDB +mongodb://scheduler:\*\*\*@127\.0\.0\.1:\d+/\?replicaSet=rs0")
    running.wait_for(r"^  Redis +redis://:\*\*\*@127\.0\.0\.1:\d+/0$")


def _answers(url: str) -> bool:
    try:
        return requests.get(url, timeout=5).ok
    except (requests.ConnectionError, requests.Timeout):
        return False


def test_a_mongod_on_path_that_cannot_be_used_is_told_and_another_one_is_started(running: Program) -> None:
    running.wait_for(r"mongod is started, and not \S+/bin/mongod: libcrypto\.so\.1\.1: no such file$")


def test_it_says_that_callbacks_may_reach_this_machine(running: Program) -> None:
    running.wait_for(r"^up +\| callbacks may reach this machine \(loopback\): 127\.0\.0\.0/8,::1/128$")


def test_the_printed_curl_line_makes_a_schedule_that_fires(running: Program) -> None:
    schedule = _paste_curl(running)
    wait_until(lambda: _completed(_api(running), schedule) >= 2, "two calls of a rule of every 2 s")


def test_the_printed_doctor_finds_everything_in_order(running: Program, run: Callable[..., Program]) -> None:
    folder = Path(running.wait_for(r"^  Data +(/.*)$")[1])
    config = running.wait_for(r"^  Doctor +.*scheduler doctor --config (.*)$")[1]
    assert (folder / "running.yaml").stat().st_mode & 0o077 == 0
    doctor = run(
        sys.executable, "-m", "scheduler_app.cli", "doctor", "--config", str(folder / Path(config).name)
    )
    assert doctor.wait() == 0, doctor.output


def test_every_tool_finds_the_run_by_its_folder(running: Program) -> None:
    home = Path(running.wait_for(r"^  Data +(/.*)$")[1]).parent
    doctor = Program([sys.executable, "-m", "scheduler_app.cli", "doctor"], home)
    assert doctor.wait() == 0, doctor.output
    assert "!  " not in doctor.output, "a healthy run is without a warning"
    # Asked by name, the worker is not waited for others, and may take longer than a second.
    worker = f"worker1@{socket.gethostname()}"
    options = ("--timeout", "30", "--destination", worker)
    ping = Program([sys.executable, "-m", "celery", "-A", "scheduler_app", "inspect", *options, "ping"], home)
    assert ping.wait() == 0, ping.output
    assert worker in ping.output
    page = requests.get(running.wait_for(r"^  Page +(http://\S+)$")[1], timeout=30)
    assert page.status_code == 200
    assert page.headers["Content-Type"].startswith("text/html")


def test_mongods_own_words_go_to_a_file(running: Program) -> None:
    assert "WiredTiger" not in running.output
    folder = Path(running.wait_for(r"^  Data +(/.*)$")[1])
    assert "WiredTiger" in (folder / "mongod.log").read_text()


def test_a_second_one_on_the_same_data_directory_is_one_sentence(
    running: Program, run: Callable[..., Program]
) -> None:
    folder = running.wait_for(r"^  Data +(/.*)$")[1]
    second = run(*UP, "--port", str(free_port()), "--data-dir", folder)
    assert second.wait() == 1
    assert "Another `scheduler up` uses the data directory" in second.output
    assert len(second.output.splitlines()) == 1


def test_a_worker_and_a_mongod_that_are_killed_come_back_and_the_schedule_goes_on(running: Program) -> None:
    schedule = _paste_curl(running)
    _named(running, "scheduler_app.cli.up.celery_process", "worker").kill()
    running.wait_for(r"^up +\| worker1 ended \(killed by SIGKILL\), is started again in 1 s$")
    _named(running, "--replSet").kill()
    running.wait_for(r"^up +\| mongod ended \(killed by SIGKILL\), is started again in 1 s$")
    wait_until(lambda: _answers(f"{_api(running)}/readyz"), "the API to be ready again")
    before = _completed(_api(running), schedule)
    wait_until(lambda: _completed(_api(running), schedule) >= before + 2, "two more calls")


@pytest.mark.long
@pytest.mark.timeout(240)
def test_a_run_goes_on_where_the_last_one_stopped_by_ctrl_c_or_by_kill_9(folder: Path) -> None:
    """One data directory through three runs: a start takes as long as all that is asked of it."""
    port = free_port()  # it is the receiver too: the schedule calls the API's own /health
    with _started(folder, port) as up:
        schedule = _paste_curl(up)
        wait_until(lambda: _completed(_api(up), schedule) >= 1, "the first call")
        up.signal(signal.SIGINT, to_group=True)
        assert up.wait() == 0
        up.wait_for_nothing_left()
        assert "had to be killed" not in up.output
    with _started(folder, port) as up:
        before = _completed(_api(up), schedule)
        assert before >= 1
        wait_until(lambda: _completed(_api(up), schedule) > before, "the next call")
        up.signal(signal.SIGKILL)
        up.wait()
        up.wait_for_nothing_left()
    with _started(folder, port) as up:
        assert requests.get(f"{_api(up)}/api/schedules/{schedule}").status_code == 200
        _end_beside_a_receiver_that_never_answers(up)


def _end_beside_a_receiver_that_never_answers(up: Program) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        _paste_curl(up, callback_url=url, timeout_seconds=300)
        with silent.accept()[0]:
            began = time.monotonic()
            up.signal(signal.SIGINT, to_group=True)
            assert up.wait() == 0
            assert time.monotonic() - began >= 7
    up.wait_for_nothing_left()
    assert "worker1 had to be killed" not in up.output, "it gives back what it could not finish"


def test_servers_that_are_named_take_the_place_of_the_embedded_ones(
    folder: Path, mongod_server: Mongod, redis_server: Redis, database_name: str, redis_url: str
) -> None:
    up = start(folder, MONGO_URI=mongod_server.uri, BROKER_URL=redis_url, MONGO_DATABASE=database_name)
    try:
        up.wait_for(READY)
        schedule = _paste_curl(up)
        wait_until(lambda: _completed(_api(up), schedule) >= 1, "the first call")
        assert not any((folder / "data" / name).exists() for name in ("mongod", "redis", "secrets-key"))
        assert not any("mongod" in str(each.cmdline()[:1]) for each in up.processes())
        up.signal(signal.SIGTERM)
        assert up.wait() == 0
    finally:
        up.kill()


def test_ctrl_c_ends_all_of_it(ups: Ups) -> None:
    """The last one of those that are shared."""
    for running in ups.runs():
        running.signal(signal.SIGINT, to_group=True)
    for running in ups.runs():
        assert running.wait() == 0
        running.wait_for_nothing_left()
        assert "had to be killed" not in running.output
    ups.close()

"""Redis or MongoDB is frozen: connections are accepted, and nothing is ever answered."""

import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests
from click.testing import CliRunner

from scheduler_app.cli import main
from scheduler_app.embedded import Mongod, Redis
from scheduler_app.embedded.server import Server
from tests.acceptance.stack import Stack
from tests.processes import wait_until

#: 2 s are promised, and some are for a machine that does other things as well.
SECONDS = 4.0
#: A machine that stands still meanwhile makes one of several tries late.
TRIES, LATE_SECONDS = 3, 20.0
DOCTOR_SECONDS = 30.0


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, Server]]:
    with (
        tempfile.TemporaryDirectory(prefix="frozen-") as folder,
        Mongod(Path(folder) / "mongod") as mongod,
        Redis(Path(folder) / "redis") as redis,
    ):
        yield {"mongodb": mongod, "broker": redis}


@pytest.fixture(scope="module")
def stack(make_stack: Callable[..., Stack], servers: dict[str, Server]) -> Stack:
    mongod, redis = servers["mongodb"], servers["broker"]
    assert isinstance(mongod, Mongod)
    assert isinstance(redis, Redis)
    made = make_stack(MONGO_URI=mongod.uri, BROKER_URL=redis.url)
    made.all()
    return made


@contextmanager
def frozen(server: Server) -> Iterator[None]:
    assert server.pid
    os.kill(server.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.pid, signal.SIGCONT)


def timed(stack: Stack, path: str) -> tuple[requests.Response, float]:
    started = time.monotonic()
    answer = requests.get(stack.url + path, timeout=60)
    return answer, time.monotonic() - started


def say_so_soon(stack: Stack, which: str) -> bool:
    """Whether nine questions at once are all answered soon, and nothing but `which` is named."""
    with ThreadPoolExecutor(9) as at_once:
        asked = [at_once.submit(timed, stack, path) for path in ("/readyz", "/metrics", "/healthz") * 3]
        answers = [future.result() for future in asked]
    assert [answer.status_code for answer, _ in answers] == [503, 200, 200] * 3
    took = max(seconds for _, seconds in answers)
    assert took < LATE_SECONDS
    checks = answers[0][0].json()["checks"]
    named = [name for name in ("mongodb", "broker") if not checks[name]["ok"]]
    assert which in named
    return took < SECONDS and named == [which]


@pytest.mark.timeout(180)
@pytest.mark.parametrize("which", ["broker", "mongodb"])
def test_probes_scrapes_and_doctor_say_so_soon(which: str, stack: Stack, servers: dict[str, Server]) -> None:
    wait_until(lambda: timed(stack, "/readyz")[0].status_code == 200, "the stack to be ready")
    with frozen(servers[which]):
        # Several at once, and again: none waits for what another has asked.
        for _ in range(2):
            assert any(say_so_soon(stack, which) for _ in range(TRIES))
        started = time.monotonic()
        command = ["doctor", "--flower-url", "http://127.0.0.1:9"]
        done = CliRunner().invoke(main, command, env=stack.environment, catch_exceptions=False)
        assert done.exit_code == 1, done.stdout
        assert "does not answer" in done.stdout
        assert time.monotonic() - started < DOCTOR_SECONDS
    wait_until(lambda: timed(stack, "/readyz")[0].status_code == 200, "the stack to be ready again", 60)


def test_a_probe_whose_answer_never_comes_keeps_one_thread(
    servers: dict[str, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    from scheduler_app.broker.app import make_app
    from scheduler_app.broker.queue_probe import QueueProbe
    from scheduler_app.broker_faults import broker_faults
    from scheduler_app.config import Settings

    redis = servers["broker"]
    assert isinstance(redis, Redis)
    app = make_app(Settings(broker_url=redis.url))
    probe = QueueProbe(app)
    unanswered = broker_faults(app.connection_for_read())  # a TimeoutError, too, is an OSError
    assert probe.ask()(10) == 0
    with frozen(redis):
        before = threading.active_count()
        for wait in [probe.ask() for _ in range(50)]:
            with pytest.raises(TimeoutError):
                wait(0)
        assert threading.active_count() <= before + 1

    def answers() -> bool:
        try:
            return probe.ask()(1) == 0
        except unanswered:  # of a question that was asked while Redis was frozen
            return False

    wait_until(answers, "Redis to be asked again")

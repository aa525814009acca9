"""Redis or MongoDB is frozen: connections are accepted, and nothing is ever answered."""

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
import requests
from click.testing import CliRunner

from scheduler_app.cli import main
from scheduler_app.embedded import Mongod, Redis
from scheduler_app.embedded.server import Server
from tests.acceptance.stack import Stack
from tests.processes import freeze, wait_until

#: 2 s are promised, and some are for a machine that does other things as well.
SECONDS = 4.0
DOCTOR_SECONDS = 30.0


@pytest.fixture(scope="module")
def servers(mongod_server: Mongod, redis_server: Redis) -> dict[str, Server]:
    return {"mongodb": mongod_server, "broker": redis_server}


@contextmanager
def frozen(server: Server) -> Iterator[None]:
    assert server.pid
    freeze(server.pid)
    try:
        yield
    finally:
        os.kill(server.pid, signal.SIGCONT)


def timed(stack: Stack, path: str) -> tuple[requests.Response, float]:
    started = time.monotonic()
    answer = requests.get(stack.url + path)
    return answer, time.monotonic() - started


def say_so_soon(stack: Stack, which: str) -> bool:
    """Whether nine questions at once are all answered soon, and nothing but `which` is named."""
    with ThreadPoolExecutor(9) as at_once:
        asked = [at_once.submit(timed, stack, path) for path in ("/readyz", "/metrics", "/healthz") * 3]
        answers = [future.result() for future in asked]
    assert [answer.status_code for answer, _ in answers] == [503, 200, 200] * 3
    took = max(seconds for _, seconds in answers)
    checks = answers[0][0].json()["checks"]
    named = [name for name in ("mongodb", "broker") if not checks[name]["ok"]]
    assert which in named
    return took < SECONDS and named == [which]


def doctor_says_so_soon(stack: Stack) -> bool:
    started = time.monotonic()
    command = ["doctor", "--flower-url", "http://127.0.0.1:9"]
    done = CliRunner().invoke(main, command, env=stack.environment, catch_exceptions=False)
    assert done.exit_code == 1, done.stdout
    assert "does not answer" in done.stdout
    return time.monotonic() - started < DOCTOR_SECONDS


@pytest.mark.timeout(180)
@pytest.mark.parametrize("which", ["broker", "mongodb"])
def test_probes_scrapes_and_doctor_say_so_soon(which: str, stack: Stack, servers: dict[str, Server]) -> None:
    wait_until(lambda: timed(stack, "/readyz")[0].status_code == 200, "the stack to be ready")
    with frozen(servers[which]):
        # Several at once, and again: none waits for what another has asked.
        for _ in range(2):
            # A machine that stands still meanwhile makes some tries late.
            wait_until(lambda: say_so_soon(stack, which), "an answer that comes soon")
        wait_until(lambda: doctor_says_so_soon(stack), "a doctor that answers soon")
    wait_until(lambda: timed(stack, "/readyz")[0].status_code == 200, "the stack to be ready again")


def answered_within(stack: Stack, seconds: float, method: str, path: str, **given: Any) -> bool:
    """Whether the request is refused as one to try again, and soon."""
    started = time.monotonic()
    answer = requests.request(method, stack.url + path, timeout=60, **given)
    took = time.monotonic() - started
    print(f"{method} {path}: {answer.status_code} after {took:.2f} s")
    assert (answer.status_code, "Retry-After" in answer.headers) == (503, True), answer.text
    return took < seconds


#: Of each kind of request about one resource, and of lists: its method, its path, its body.
SOON_REFUSED = [
    ("GET", "/api/schedules", None),
    ("GET", "/api/events", None),
    ("GET", "/api/messages", None),
    ("GET", "/api/forecast", None),
    ("GET", "/api/schedules/none/preview", None),
    ("GET", "/api/schedules/none/why?at=2030-01-01T00:00:00Z", None),
    ("GET", "/api/schedules/none/backfill", None),
    ("GET", "/api/schedules/none/edits", None),
    ("GET", "/api/schedules/none/events/pending", None),
    ("GET", "/api/schedules/none/events/history", None),
    ("GET", "/api/calendars/none/days?from=2030-01-01&to=2030-02-01", None),
    ("POST", "/api/schedules/preview", {"rrule": "FREQ=DAILY", "calendar": "none"}),
    ("POST", "/api/schedules/pause", {"tag": "none"}),
    ("GET", "/api/schedules/none", None),
    ("GET", "/api/events/none", None),
    ("GET", "/api/messages/none", None),
    ("POST", "/api/messages", {"callback_url": "http://127.0.0.1:9/", "delay_seconds": 600}),
    ("POST", "/api/schedules/none/trigger", None),
    ("PUT", "/api/schedules/none", {"name": "other"}),
    ("DELETE", "/api/schedules/none", None),
    ("PUT", "/api/destinations/none", {"url": "http://127.0.0.1:9/"}),
    ("PATCH", "/api/destinations/none", {"concurrency": 2}),
    ("DELETE", "/tasks/none", None),
    ("PUT", "/api/kill-switch", {"tag": "none"}),
]


@pytest.mark.timeout(180)
def test_requests_are_refused_soon_while_mongodb_is_frozen(stack: Stack, servers: dict[str, Server]) -> None:
    wait_until(lambda: timed(stack, "/readyz")[0].status_code == 200, "the stack to be ready")
    with frozen(servers["mongodb"]):
        for method, path, body in SOON_REFUSED:
            # A machine that stands still meanwhile makes some tries late.
            asked = partial(answered_within, stack, 2 if method == "GET" else 5, method, path, json=body)
            wait_until(asked, "a refusal that comes soon")


def ends_with_a_sentence(url: str, sentence: str, *command: str) -> bool:
    """Whether a command ends soon. Its three retries would take 40 s and more with an API that hangs."""
    started = time.monotonic()
    done = CliRunner().invoke(main, [*command, "--api-url", url])
    took = time.monotonic() - started
    print(f"scheduler {command[0]}: {done.output.strip()} after {took:.2f} s")
    assert done.exit_code == 1
    assert isinstance(done.exception, SystemExit)
    assert sentence in done.output
    return took < 20


def test_commands_end_with_a_sentence_while_mongodb_or_the_api_is_frozen(
    stack: Stack, servers: dict[str, Server]
) -> None:
    wait_until(lambda: timed(stack, "/readyz")[0].status_code == 200, "the stack to be ready")
    commands = [("list",), ("get", "none"), ("pause", "none")]
    with frozen(servers["mongodb"]):
        for command in commands:
            asked = partial(ends_with_a_sentence, stack.url, "the database does not answer", *command)
            wait_until(asked, "a command that ends soon")
    # As with a process that is stopped: the kernel accepts connections, and nobody answers.
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        url = f"http://127.0.0.1:{hanging.getsockname()[1]}"
        for command in commands[:2]:
            asked = partial(ends_with_a_sentence, url, "cannot be reached", *command)
            wait_until(asked, "a command that ends soon")


@pytest.mark.timeout(180)
def test_a_trigger_that_a_frozen_mongodb_has_refused_is_repeated_once(
    stack: Stack, servers: dict[str, Server]
) -> None:
    wait_until(lambda: timed(stack, "/readyz")[0].status_code == 200, "the stack to be ready")
    made = {"id": "repeated", "name": "n", "callback_url": "http://127.0.0.1:9/", "on_demand": True}
    assert requests.post(f"{stack.url}/api/schedules", json=made, timeout=60).ok
    key, trigger = {"Idempotency-Key": "once"}, "/api/schedules/repeated/trigger"
    with frozen(servers["mongodb"]):
        for _ in range(3):
            answered_within(stack, 5, "POST", trigger, headers=key)

    triggered: list[str] = []

    def repeated() -> bool:
        answer = requests.post(stack.url + trigger, headers=key, timeout=60)
        if answer.ok:
            triggered.append(answer.json()["event_id"])
        return len(triggered) == 2

    wait_until(repeated, "two answers of the same trigger", pause=0.5)
    assert len(set(triggered)) == 1
    lists = [f"{stack.url}/api/schedules/repeated/events/{which}" for which in ("pending", "history")]
    found = [event["_id"] for each in lists for event in requests.get(each, timeout=60).json()["events"]]
    assert found == triggered[:1]


PAGES = ["/", "/schedules", "/schedules/none", "/destinations", "/events", "/messages", "/dead-letters"]
PAGES += ["/calendar", "/forecast", "/processes", "/stops", "/new-schedule", "/new-message"]


@pytest.mark.timeout(180)
@pytest.mark.parametrize("which", ["broker", "mongodb"])
def test_pages_are_answered_soon_beside_a_frozen_server(
    which: str, stack: Stack, servers: dict[str, Server]
) -> None:
    wait_until(lambda: timed(stack, "/readyz")[0].status_code == 200, "the stack to be ready")
    for number in range(3):
        limited = {"url": "http://127.0.0.1:9/", "concurrency": 1}
        assert requests.put(f"{stack.url}/api/destinations/limited-{number}", json=limited, timeout=60).ok

    def comes_soon(page: str) -> bool:
        answer, took = timed(stack, page)
        print(f"{page}: {answer.status_code} after {took:.2f} s")
        assert answer.headers["Content-Type"].startswith("text/html")
        if which == "broker":
            assert answer.status_code == (404 if page.endswith("none") else 200), answer.text
        else:
            assert (answer.status_code, "Retry-After" in answer.headers) == (503, True), answer.text
            assert "the database does not answer" in answer.text
        return took < 2

    with frozen(servers[which]):
        for page in PAGES:
            # A machine that stands still meanwhile makes some tries late.
            wait_until(partial(comes_soon, page), "a page that comes soon")


def test_a_probe_whose_answer_never_comes_keeps_one_thread(
    servers: dict[str, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    from scheduler_app.broker.app import make_app
    from scheduler_app.broker.publisher import QueueProbe
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

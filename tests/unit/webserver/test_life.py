"""How a worker of the API begins and ends, what it logs of answers, and what ends a connection."""

import gc
import json
import logging
import os
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from gunicorn.config import Config

from scheduler_app.webserver import limits, worker
from scheduler_app.webserver.worker import _IDLE_SECONDS, _SWEEP_SECONDS, WaitressWorker
from tests.processes import wait_until
from tests.unit.webserver.serving import Served, served

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture
def api() -> Iterator[Served]:
    with served() as made:
        yield made


@contextmanager
def run(api: Served) -> Iterator[None]:
    """The worker's own loop, in a thread, until it has ended."""
    begun: list[bool] = []
    api.worker.begin = lambda: begun.append(True)  # type: ignore[method-assign]  # it has begun
    thread = threading.Thread(target=api.worker.run)
    thread.start()
    try:
        yield
    finally:
        api.worker.alive = False
        thread.join()
    assert begun == [True], "it begins by itself"


def statuses(said: bytes) -> list[bytes]:
    return re.findall(rb"HTTP/1.1 (\d+)", said)


def said_to(client: socket.socket) -> bytes:
    said = b""
    while data := client.recv(65536):
        said += data
    return said


def test_after_so_many_requests_a_worker_ends_and_its_last_answer_closes_the_connection() -> None:
    told: list[str] = []
    with served(max_requests=3) as api:
        api.worker.log.info = told.append
        _, client = api.connect()
        with run(api):
            client.sendall(GET * 4)
            answer = said_to(client)
        assert not api.worker.alive
    assert told == ["Restarting the worker after max_requests"]
    assert [b"Connection: close" in each for each in answer.split(b"HTTP/1.1 200 ")[1:]] == [
        False,
        False,
        True,
    ]


def test_a_worker_that_serves_fewer_requests_goes_on() -> None:
    with served(max_requests=3) as api:
        channel, _ = api.connect(GET * 2)
        api.wait_until(lambda: api.worker.nr == 2 and channel.phase == "idle")
        assert api.worker.alive


def test_a_worker_that_ends_answers_what_has_begun_and_keeps_nobody_else(
    api: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "STOPPING_IDLE_SECONDS", 0.3)
    _, waits = api.connect(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
    _, half = api.connect(b"GET / HTT")
    _, silent = api.connect()
    [server] = api.worker.servers
    began = time.monotonic()
    with run(api):
        api.worker.alive = False
        assert said_to(half) == b""
        assert said_to(silent) == b""
        assert time.monotonic() - began >= 0.2, "they have a moment in which their requests may come"
        assert not server.accepting
        assert len(api.worker.channels) == 1
        api.gate.set()
        answer = said_to(waits)
    assert statuses(answer) == [b"200"]
    assert b"\r\nConnection: close\r\n" in answer


def test_a_worker_that_ends_waits_for_what_has_begun_for_a_bounded_time() -> None:
    with served(graceful_timeout=1) as api:
        api.connect(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
        began = time.monotonic()
        with run(api):
            api.worker.alive = False
        assert time.monotonic() - began >= 1
        assert len(api.worker.channels) == 1


def test_a_worker_that_ends_accepts_nobody_and_ends_with_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now, turns = [100.0], list[tuple[float, bool, int]]()
    with served(graceful_timeout=1) as api:
        [server] = api.worker.servers
        api.connect(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
        api.connect()

        def turn(_: float) -> None:
            turns.append((now[0], server.accepting, len(api.worker.channels)))
            now[0] += 0.25

        with monkeypatch.context() as patch:
            patch.setattr(limits, "STOPPING_IDLE_SECONDS", 0.5)
            patch.setattr(worker, "time", SimpleNamespace(monotonic=lambda: now[0]))
            patch.setattr(api.worker, "turn", turn)
            patch.setattr(api.worker, "begin", lambda: None)
            api.worker.alive = False
            api.worker.run()
    assert turns == [(100.0, False, 2), (100.25, False, 2), (100.5, False, 1), (100.75, False, 1)]


def test_an_application_is_loaded_without_a_collection_of_garbage(
    api: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    collects = list[bool]()

    def load() -> str:
        collects.append(gc.isenabled())
        return "the application"

    with monkeypatch.context() as patch:
        patch.setattr(api.worker, "app", SimpleNamespace(wsgi=load))
        patch.setattr(api.worker, "wsgi", None)
        api.worker.load_wsgi()
        assert (api.worker.wsgi, collects, gc.isenabled()) == ("the application", [False], True)


def test_a_worker_ends_with_the_process_that_started_it(api: Served) -> None:
    api.worker.ppid = os.getppid() + 1
    with run(api):
        api.wait_until(lambda: not api.worker.threads.threads)
        assert api.worker.alive, "nobody told it to end"


def test_a_worker_that_has_ended_has_no_thread_left_also_none_for_probes() -> None:
    before = set(threading.enumerate())
    with served(threads=2) as api:
        api.wait_until(lambda: len(set(threading.enumerate()) - before) == 5)
    wait_until(lambda: not set(threading.enumerate()) - before, "its threads to end")


def test_a_worker_without_a_connection_looks_around_rarely_and_is_woken_by_signals_and_clients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pipe = os.pipe2(os.O_NONBLOCK)
    monkeypatch.setattr(WaitressWorker, "PIPE", pipe)  # as gunicorn makes one
    pauses: list[float] = []
    with served() as api:
        poll = api.worker.poll

        def noted(seconds: float) -> None:
            pauses.append(seconds)
            poll(3_600.0 if seconds == _IDLE_SECONDS else seconds)  # by itself it would not come back

        monkeypatch.setattr(api.worker, "poll", noted)
        api.worker.ppid = os.getppid()
        with run(api):
            wait_until(lambda: pauses == [_IDLE_SECONDS], "the first look around")
            with socket.create_connection(("127.0.0.1", api.port)) as client:
                client.sendall(GET)
                assert client.recv(100).startswith(b"HTTP/1.1 200 ")
                wait_until(lambda: pauses[-1] == _SWEEP_SECONDS, "a look at deadlines")
            wait_until(lambda: pauses[-1] == _IDLE_SECONDS, "the connection to be gone")
            os.write(pipe[1], b"s")
            wait_until(lambda: pauses[-2:] == [_IDLE_SECONDS] * 2, "the signal to wake it, and once")
            api.worker.alive = False
            os.write(pipe[1], b"s")
        assert not api.worker.channels
    assert len(pauses) < 100, "a signal wakes it once"
    for each in pipe:
        os.close(each)


@pytest.mark.parametrize(("told", "longest"), [(15.0, _IDLE_SECONDS), (1.0, 0.5), (0.0, _IDLE_SECONDS)])
def test_a_worker_tells_gunicorn_in_time_that_it_lives(
    told: float, longest: float, api: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    def noted(seconds: float) -> None:
        pauses.append(seconds)
        api.worker.alive = False

    api.worker.ppid = os.getppid()
    monkeypatch.setattr(api.worker, "timeout", told)
    monkeypatch.setattr(api.worker, "turn", noted)
    with run(api):
        pass
    assert pauses[0] == longest


def test_it_speaks_no_tls() -> None:
    cfg = Config()
    WaitressWorker.check_config(cfg, None)
    cfg.set("certfile", "a.pem")
    with pytest.raises(SystemExit, match="put a TLS proxy in front of it"):
        WaitressWorker.check_config(cfg, None)


def test_each_answer_has_a_line_in_the_access_log(caplog: pytest.LogCaptureFixture) -> None:
    line = "%(r)s %(U)s?%(q)s %(s)s %(B)s %({content-type}o)s %({x-asked}i)s %(M)s"
    with served(accesslog="-", access_log_format=line, logconfig_dict={}) as api:
        api.worker.log.access_log.propagate = True
        caplog.set_level(logging.INFO, "gunicorn.access")
        _, client = api.connect(
            b"GET /pieces?a=b HTTP/1.1\r\nHost: x\r\nX-Asked: this\r\nConnection: close\r\n\r\n"
        )
        body = api.answer_to(client)
        api.wait_until(lambda: bool(caplog.messages))
    assert body.startswith(b"HTTP/1.1 200 ")
    told, _, took = caplog.messages[0].rpartition(" ")
    size = sum(number * 37 % 5000 for number in range(2000))
    assert told == f"GET /pieces?a=b HTTP/1.1 /pieces?a=b 200 {size} text/plain this"
    assert 0 < int(took) < 60_000, "milliseconds"


def test_what_the_application_has_not_answered_has_no_line_in_the_access_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with served(accesslog="-", access_log_format="%(U)s %(s)s", logconfig_dict={}) as api:
        api.worker.log.access_log.propagate = True
        caplog.set_level(logging.INFO, "gunicorn.access")
        for path in (b"/fails", b"/"):
            _, client = api.connect(b"GET " + path + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            api.answer_to(client)
        api.wait_until(lambda: "/ 200" in caplog.messages)
    assert [told for told in caplog.messages if told.startswith("/fails ")] == []


def test_a_body_that_ends_before_it_is_complete_is_a_400(api: Served) -> None:
    _, client = api.connect(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc")
    client.shutdown(socket.SHUT_WR)
    answer = api.answer_to(client)
    assert statuses(answer) == [b"400"]
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["detail"] == "the body ended before it was complete"


def test_a_client_that_ends_without_a_request_is_forgotten(api: Served) -> None:
    channel, client = api.connect(b"GET / HTT")
    client.shutdown(socket.SHUT_WR)
    assert api.answer_to(client) == b""
    assert channel not in api.worker.channels.values()


def test_a_connection_that_has_nothing_to_read_after_all_stays(api: Served) -> None:
    channel, client = api.connect(b"GET / HT")
    channel.handle_read()
    assert channel in api.worker.channels.values()
    api.send(client, b"TP/1.0\r\n\r\n")
    assert statuses(api.answer_to(client).replace(b"1.0", b"1.1")) == [b"200"]


def test_probes_wait_for_no_request_of_others(api: Served) -> None:
    """There is one thread, which computes for the first client."""
    api.connect(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n")
    for path in (b"/health", b"/healthz", b"/readyz"):
        _, client = api.connect(b"GET " + path + b" HTTP/1.0\r\n\r\n")
        assert api.answer_to(client).endswith(b"[]")
    _, refused = api.connect(b"G@T / HTTP/1.1\r\n\r\n")
    assert statuses(api.answer_to(refused)) == [b"400"]


def test_a_client_of_a_unix_socket_has_no_address(api: Served) -> None:
    [server] = api.worker.servers
    assert server.fix_addr("") == ("", "")
    assert server.fix_addr(("1.2.3.4", 5)) == ("1.2.3.4", 5)


@pytest.mark.parametrize(
    ("bound", "told"), [("/run/api.sock", ("localhost", 0)), (("::1", 80, 0, 0), ("::1", 80))]
)
def test_a_server_is_at_a_host_and_a_port_whatever_its_socket_is_bound_to(
    api: Served, bound: object, told: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    [server] = api.worker.servers
    with monkeypatch.context() as patch:
        patch.setattr(server, "socket", SimpleNamespace(getsockname=lambda: bound))
        assert server.getsockname() == told


@pytest.mark.parametrize(
    "asked",
    [
        b"HEAD /pieces HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /pieces HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"GET /short HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
    ids=["head", "asked-for", "shorter-than-it-says"],
)
def test_a_connection_ends_whose_answer_has_no_other_end_or_that_is_asked_to(
    api: Served, asked: bytes
) -> None:
    _, client = api.connect(asked)
    assert statuses(api.answer_to(client)) == [b"200"]


def test_what_is_wrong_with_a_request_is_told_in_a_bounded_sentence(api: Served) -> None:
    _, client = api.connect(b"GET / HTTP/1.1\r\nHost: x\r\nno colon " + b"x" * 1_000 + b"\r\n\r\n")
    head, _, body = api.answer_to(client).partition(b"\r\n\r\n")
    assert b"Content-Type: application/problem+json" in head
    assert f"Content-Length: {len(body)}".encode() in head
    problem = json.loads(body)
    assert problem["type"] == "about:blank"
    assert (problem["title"], problem["status"]) == ("Bad Request", 400)
    assert len(problem["detail"]) <= 300


def test_a_new_connection_has_its_time_from_now_on(api: Served) -> None:
    began = time.monotonic()
    channel, _ = api.connect()
    assert began <= channel.since <= time.monotonic()


def test_it_looks_for_slow_clients_every_half_a_second_and_not_at_each_turn(
    api: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[float] = []
    monkeypatch.setattr(api.worker, "sweep", looks.append)
    began = time.monotonic()
    for _ in range(3):
        api.worker.turn(0.0)
    assert len(looks) == 1 or time.monotonic() - began > 0.5
    assert api.worker.next_sweep == pytest.approx(looks[-1] + 0.5)
    api.worker.next_sweep = time.monotonic()
    api.worker.turn(0.0)
    assert len(looks) >= 2


def test_each_turn_tells_gunicorn_that_it_lives_and_judges_deadlines_by_the_time_after_its_wait(
    api: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, looks, told = [100.0], list[float](), list[bool]()

    def wait(seconds: float) -> None:
        now[0] += seconds

    with monkeypatch.context() as patch:
        patch.setattr(worker, "time", SimpleNamespace(monotonic=lambda: now[0]))
        patch.setattr(api.worker, "poll", wait)
        patch.setattr(api.worker, "sweep", looks.append)
        patch.setattr(api.worker, "notify", lambda: told.append(True))
        api.worker.turn(2.0)
    assert (looks, told) == ([102.0], [True])


def test_a_worker_looks_around_soon_while_one_of_its_sockets_accepts_nothing(
    api: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert api.worker._pause() == _IDLE_SECONDS
    with monkeypatch.context() as patch:
        patch.setattr(api.worker, "servers", [*api.worker.servers, SimpleNamespace(accepting=False)])
        assert api.worker._pause() == _SWEEP_SECONDS


def test_a_worker_keeps_gunicorns_backlog_and_waitress_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("waitress", "waitress.queue"):
        monkeypatch.setattr(logging.getLogger(name), "level", logging.NOTSET)
    with served(backlog=7) as api:
        assert api.worker.adj.backlog == 7
    assert logging.getLogger("waitress").level == logging.WARNING
    assert logging.getLogger("waitress.queue").level == logging.ERROR

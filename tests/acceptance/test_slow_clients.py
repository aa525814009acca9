"""The API beside clients that send half a request, a byte a second, or never read what they asked for."""

import signal
import socket
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import psutil
import pytest
import requests

from scheduler_app.embedded import free_port
from tests.acceptance.stack import Stack
from tests.processes import wait_until
from tests.slow_clients import (
    BODY,
    HEAD,
    answer_of,
    byte_by_byte,
    crowd,
    half_body,
    half_header,
    slow_reader,
)

NOBODY = "http://127.0.0.1:9/"
CROWD = 200
CREATES = 40
MEBIBYTE = 1024 * 1024
BULK = b"POST /api/schedules/bulk HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % (16 * MEBIBYTE)
ONE = {"name": "x", "rrule": "FREQ=YEARLY", "callback_url": NOBODY}


def serve(stack: Stack, **environment: str) -> subprocess.Popen[bytes]:
    """The API as deploy/ has it served."""
    port = free_port()
    stack.url = f"http://127.0.0.1:{port}"
    options = ("--config", "deploy/gunicorn.conf.py")
    process = stack.start(
        "api", "gunicorn", *options, "scheduler_app.api:create_app()", API_PORT=str(port), **environment
    )
    wait_until(stack._healthy, "the API to answer")
    return process


def port_of(stack: Stack) -> int:
    return int(stack.url.rpartition(":")[2])


@pytest.fixture(scope="module")
def api(stack: Stack) -> Stack:
    return stack


@pytest.fixture(scope="module")
def impatient(make_stack: Callable[..., Stack]) -> Stack:
    """One process that waits for nobody longer than a second."""
    stack = make_stack()
    serve(stack, API_SLOW_CLIENT_SECONDS="1", API_PROCESSES="1")
    return stack


@pytest.fixture(scope="module")
def patient(make_stack: Callable[..., Stack]) -> Stack:
    """One process of twenty connections that waits for slow clients longer than any test lasts."""
    stack = make_stack(GUNICORN_CMD_ARGS="--worker-connections 20")
    serve(stack, API_SLOW_CLIENT_SECONDS="300", API_PROCESSES="1")
    return stack


@pytest.fixture(scope="module")
def large(api: Stack) -> str:
    """A path whose answer is more than a socket takes: ten of a hundred schedules with bodies of 100 KB."""
    body = {**ONE, "method": "POST", "body": "x" * 100_000}
    api.post("/schedules/bulk", {"schedules": [body] * 100}, status=200)
    return "/api/schedules?limit=10"


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(half_header, id="half-a-header"),
        pytest.param(half_body, id="half-a-body"),
        pytest.param(byte_by_byte, id="a-byte-a-second"),
        pytest.param(None, id="slow-readers"),
        pytest.param("export", id="slow-readers-of-an-export", marks=pytest.mark.long),
    ],
)
def test_others_are_served_beside_two_hundred_slow_clients(
    api: Stack, large: str, kind: Callable[[int], socket.socket] | str | None
) -> None:
    path = "/api/schedules/export" if kind == "export" else large
    connect = kind if callable(kind) else slow_reader(path)
    with crowd(connect, port_of(api), CROWD), ThreadPoolExecutor(4) as clients:
        # Health answers at once, whatever the threads are doing.
        for path in ("/healthz", "/health"):
            assert requests.get(f"{api.url}{path}").status_code == 200
        made = list(clients.map(lambda _: api.post("/schedules", ONE)["id"], range(CREATES)))
        # Its probes may give up on a machine that stands still: it answers all the same.
        assert requests.get(f"{api.url}/readyz").status_code in (200, 503)
    assert len(set(made)) == CREATES


def test_a_request_whose_header_does_not_come_is_a_408(impatient: Stack) -> None:
    with half_header(port_of(impatient)) as sock:
        assert_problem(answer_of(sock), 408)


def test_a_request_whose_body_stalls_is_a_408(impatient: Stack) -> None:
    with half_body(port_of(impatient)) as sock:
        assert_problem(answer_of(sock), 408)


def test_a_body_that_comes_a_byte_at_a_time_is_a_408_however_it_goes_on(impatient: Stack) -> None:
    over = threading.Event()

    def keep_sending() -> None:
        with suppress(OSError):  # the server has closed
            while not over.wait(0.2):
                sock.send(b"x")

    with byte_by_byte(port_of(impatient)) as sock, ThreadPoolExecutor(1) as sender:
        sender.submit(keep_sending)
        answer = answer_of(sock)
        over.set()
    assert_problem(answer, 408)


def test_a_connection_that_says_nothing_is_closed_without_a_word(impatient: Stack) -> None:
    with socket.create_connection(("127.0.0.1", port_of(impatient))) as sock:
        assert answer_of(sock) == b""


def test_a_body_in_pieces_that_keeps_the_pace_is_taken(api: Stack) -> None:
    """By an API that waits for longer than the machine may stand still, and this client with it."""
    body = b'{"name": "paced", "rrule": "FREQ=YEARLY", "callback_url": "http://127.0.0.1:9/"}'
    with socket.create_connection(("127.0.0.1", port_of(api))) as sock:
        sock.sendall(HEAD + f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode())
        for byte in body:
            sock.sendall(bytes([byte]))
        assert answer_of(sock).startswith(b"HTTP/1.1 201 ")


def create_again(stack: Stack) -> str:
    """Creates a schedule, and asks again if its connection made room for others: those of the crowd come
    again by dozens, perhaps while the machine lets this client wait between connecting and sending."""
    while True:
        with suppress(requests.ConnectionError):
            made: str = stack.post("/schedules", ONE)["id"]
            return made


def test_a_full_process_closes_half_open_connections_for_new_clients(patient: Stack) -> None:
    stack = patient
    with crowd(half_header, port_of(stack), 19) as half_open:
        made = [create_again(stack) for _ in range(CREATES)]
        with crowd(half_body, port_of(stack), 60):
            made += [create_again(stack) for _ in range(CREATES)]
        assert len(half_open) == 19
    assert len(set(made)) == 2 * CREATES


def test_bodies_that_are_never_completed_have_a_bound_together(patient: Stack) -> None:
    """Sixteen of 15 MiB each: the oldest make room, and others are served."""
    stack = patient
    [process] = psutil.Process(stack.running[0].pid).children()
    before = process.memory_info().rss
    with ExitStack() as held:
        sent = []
        for _ in range(16):
            sock = held.enter_context(socket.create_connection(("127.0.0.1", port_of(stack))))
            sock.sendall(BULK)
            sock.sendall(b"x" * 15 * MEBIBYTE)
            sent.append(sock)
        stack.post("/schedules", ONE)
        assert process.memory_info().rss - before < 160 * MEBIBYTE
        assert answer_of(sent[0]) == b""


@pytest.mark.long  # it measures memory, and wants the machine for itself
def test_slow_readers_hold_no_answer_in_memory_that_is_not_made_yet(api: Stack, large: str) -> None:
    """An export is made as it is read: forty that nobody reads are not forty times its 10 MB."""
    processes = psutil.Process(api.running[0].pid).children()
    before = sum(each.memory_info().rss for each in processes)
    with crowd(slow_reader("/api/schedules/export"), port_of(api), 40):
        requests.get(f"{api.url}/api/schedules?limit=1")
        after = sum(each.memory_info().rss for each in processes)
    assert after - before < 25 * 10_000_000


@pytest.fixture(scope="module")
def ending(make_stack: Callable[..., Stack]) -> Stack:
    """Two processes, of which the first test kills one and the second ends both."""
    stack = make_stack()
    process = serve(stack, API_PROCESSES="2")
    # One of them answers, and the other may not be there yet.
    wait_until(lambda: len(psutil.Process(process.pid).children()) == 2, "both processes")
    return stack


def test_a_killed_process_does_not_take_the_other_along(ending: Stack) -> None:
    stack, process = ending, ending.running[0]
    first, second = psutil.Process(process.pid).children()
    first.kill()
    wait_until(
        lambda: len(set(psutil.Process(process.pid).children()) - {first}) == 2,
        "another process",
    )
    assert second.is_running()
    assert stack.post("/schedules", ONE)["id"]


def test_a_request_in_flight_is_answered_after_sigterm(ending: Stack) -> None:
    stack, process = ending, ending.running[0]
    body = b'{"name": "late", "rrule": "FREQ=YEARLY", "callback_url": "http://127.0.0.1:9/"}'
    with socket.create_connection(("127.0.0.1", port_of(stack))) as sock, requests.Session() as idle:
        assert idle.get(f"{stack.url}/healthz").ok
        sock.sendall(HEAD + f"Content-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n".encode())
        # By then it is this process's, and not the backlog's.
        assert sock.recv(100).startswith(b"HTTP/1.1 100 ")
        process.send_signal(signal.SIGTERM)
        sock.sendall(body)
        answer = answer_of(sock)
    assert answer.startswith(b"HTTP/1.1 201 ")
    assert process.wait() == 0


def assert_problem(answer: bytes, status: int) -> None:
    assert answer.startswith(f"HTTP/1.1 {status} ".encode()), answer
    assert b"Content-Type: application/problem+json\r\n" in answer
    assert BODY not in answer

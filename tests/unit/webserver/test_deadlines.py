"""When a client is too slow, and what waits for it meanwhile."""

import socket
import time
from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from scheduler_app.webserver import limits
from scheduler_app.webserver.limits import LINGER_SECONDS, MAX_BODY_SECONDS, MIN_BYTES_PER_SECOND
from tests.unit.webserver.serving import PIECES, Served, served

SLOW, KEEPALIVE = 0.5, 30.0
ENOUGH = int(MIN_BYTES_PER_SECOND * SLOW)
HEAD = b"POST / HTTP/1.1\r\nHost: x\r\n"
BODY = HEAD + b"Content-Length: 1040000\r\n\r\n"


@pytest.fixture
def api() -> Iterator[Served]:
    with served() as made:
        yield made


@pytest.fixture
def now() -> float:
    """A time at which everything that a test prepares has happened."""
    return time.monotonic() + 1000


def test_a_header_has_its_time_whatever_comes_of_it(api: Served, now: float) -> None:
    channel, client = api.connect(HEAD)
    assert not channel.is_too_slow(now, SLOW, KEEPALIVE)
    api.send(client, b"X: " + b"x" * 5000 + b"\r\nY: " + b"y" * 5000)
    assert not channel.is_too_slow(now + SLOW - 0.1, SLOW, KEEPALIVE)
    assert channel.phase == "header"
    assert channel.is_too_slow(now + SLOW, SLOW, KEEPALIVE)


def test_a_body_that_keeps_the_pace_is_measured_anew(api: Served, now: float) -> None:
    channel, client = api.connect(BODY)
    assert not channel.is_too_slow(now, SLOW, KEEPALIVE)
    api.send(client, b"x" * ENOUGH)
    assert not channel.is_too_slow(now + SLOW, SLOW, KEEPALIVE)
    api.send(client, b"x" * (ENOUGH - 1))
    assert not channel.is_too_slow(now + 2 * SLOW - 0.1, SLOW, KEEPALIVE)
    assert channel.is_too_slow(now + 2 * SLOW, SLOW, KEEPALIVE)


def test_a_body_has_an_end_at_any_pace(api: Served, now: float) -> None:
    channel, client = api.connect(BODY)
    began = now
    assert not channel.is_too_slow(now, SLOW, KEEPALIVE)
    while now + SLOW < began + MAX_BODY_SECONDS:
        now += SLOW
        api.send(client, b"x" * ENOUGH)
        assert not channel.is_too_slow(now, SLOW, KEEPALIVE)
    api.send(client, b"x" * ENOUGH)
    assert channel.is_too_slow(now + SLOW, SLOW, KEEPALIVE)


def test_an_answer_may_take_as_long_as_it_keeps_the_pace(api: Served, now: float) -> None:
    channel, client = api.connect(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
    api.wait_until(lambda: channel.phase == "answer")
    api.read()
    assert not channel.is_too_slow(now, SLOW, KEEPALIVE)
    for turn in range(1, 4):
        read = 0
        while read < 3_000_000:
            read += len(client.recv(65536))
            api.read()
        assert not channel.is_too_slow(now + turn * SLOW, SLOW, KEEPALIVE)
    assert channel.is_too_slow(now + 4 * SLOW, SLOW, KEEPALIVE)


def test_a_connection_that_has_said_nothing_has_less_time_than_one_that_was_served(
    api: Served, now: float
) -> None:
    silent, _ = api.connect()
    kept, _ = api.connect(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    api.wait_until(lambda: kept.phase == "idle")
    for channel in (silent, kept):
        assert not channel.is_too_slow(now, SLOW, KEEPALIVE)
    assert silent.is_too_slow(now + SLOW, SLOW, KEEPALIVE)
    assert not kept.is_too_slow(now + KEEPALIVE - 0.1, SLOW, KEEPALIVE)
    assert kept.is_too_slow(now + KEEPALIVE, SLOW, KEEPALIVE)


def test_a_request_that_is_computed_has_all_time_and_a_client_that_does_not_close_has_little(
    api: Served, now: float
) -> None:
    channel, _ = api.connect(b"GET /wait HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert not channel.is_too_slow(now, SLOW, KEEPALIVE)
    assert not channel.is_too_slow(now + 1000, SLOW, KEEPALIVE)
    api.gate.set()
    api.wait_until(lambda: channel.phase == "linger")
    assert not channel.writable(), "the loop would spin"
    assert not channel.is_too_slow(now + 2000, SLOW, KEEPALIVE)
    assert channel.is_too_slow(now + 2000 + LINGER_SECONDS, SLOW, KEEPALIVE)


def test_what_does_not_come_in_time_is_a_408_and_what_was_not_begun_is_closed(
    api: Served, now: float
) -> None:
    _, silent = api.connect()
    _, header = api.connect(HEAD)
    _, body = api.connect(BODY)
    api.worker.sweep(now)
    with capture_logs() as lines:
        api.worker.sweep(now + api.worker.slow_seconds)
    assert [line["too_slow"] for line in lines] == [2]
    assert api.answer_to(silent) == b""
    assert api.answer_to(header).startswith(b"HTTP/1.1 408 ")
    assert api.answer_to(body).startswith(b"HTTP/1.1 408 ")


def test_an_answer_comes_whole_and_in_order(api: Served) -> None:
    _, client = api.connect(b"GET /pieces HTTP/1.0\r\n\r\n")
    assert api.answer_to(client).partition(b"\r\n\r\n")[2] == b"".join(PIECES)


def test_an_answer_goes_on_where_it_waited_when_its_client_reads_again(api: Served) -> None:
    channel, client = api.connect()
    channel.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
    api.send(client, b"GET /pieces HTTP/1.0\r\n\r\n")
    api.wait_until(lambda: channel.total_outbufs_len > limits.PENDING_ANSWER_BYTES)
    api.wait_until(lambda: len(api.worker.threads.threads) == 2)
    assert api.answer_to(client).partition(b"\r\n\r\n")[2] == b"".join(PIECES)


def test_a_client_that_does_not_read_keeps_no_thread_from_others(api: Served) -> None:
    """There is one thread, which waits for the first client."""
    channel, _ = api.connect(b"GET /pieces HTTP/1.1\r\nHost: x\r\n\r\n" * 20)
    api.wait_until(lambda: channel.total_outbufs_len > limits.PENDING_ANSWER_BYTES)
    api.wait_until(lambda: len(api.worker.threads.threads) == 2)
    _, client = api.connect(b"GET / HTTP/1.0\r\n\r\n")
    assert api.answer_to(client).endswith(b"\r\n\r\n[]")
    channel.handle_close()
    api.wait_until(lambda: len(api.worker.threads.threads) == 1)
    _, client = api.connect(b"GET / HTTP/1.0\r\n\r\n")
    assert api.answer_to(client).endswith(b"\r\n\r\n[]")

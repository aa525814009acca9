"""When a client is too slow, and what waits for it meanwhile."""

import socket
from collections.abc import Iterator

import pytest
from gunicorn.config import Config

from scheduler_app.webserver.connection import Connection, Phase
from scheduler_app.webserver.limits import MAX_BODY_SECONDS, MIN_BYTES_PER_SECOND

SLOW = 10.0
ENOUGH = int(MIN_BYTES_PER_SECOND * SLOW)


@pytest.fixture
def pair() -> Iterator[tuple[Connection, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Connection(Config(), ours, ("127.0.0.1", 1), ("127.0.0.1", 2)), theirs


def test_a_header_has_its_time_whatever_comes_of_it(pair: tuple[Connection, socket.socket]) -> None:
    connection, _ = pair
    connection.enter(Phase.HEADER, 100.0, SLOW)
    connection.progress(ENOUGH)
    assert not connection.is_too_slow(109.9, SLOW)
    assert connection.is_too_slow(110.0, SLOW)


def test_a_body_that_keeps_the_pace_is_measured_anew(pair: tuple[Connection, socket.socket]) -> None:
    connection, _ = pair
    connection.enter(Phase.BODY, 100.0, SLOW)
    connection.progress(ENOUGH)
    assert not connection.is_too_slow(110.0, SLOW)
    connection.progress(ENOUGH - 1)
    assert not connection.is_too_slow(119.9, SLOW)
    assert connection.is_too_slow(120.0, SLOW)


def test_a_body_has_an_end_at_any_pace(pair: tuple[Connection, socket.socket]) -> None:
    connection, _ = pair
    connection.enter(Phase.BODY, 100.0, SLOW)
    now = 100.0
    while now + SLOW < 100.0 + MAX_BODY_SECONDS:
        now += SLOW
        connection.progress(ENOUGH)
        assert not connection.is_too_slow(now, SLOW)
    connection.progress(ENOUGH)
    assert connection.is_too_slow(now + SLOW, SLOW)


def test_an_answer_may_take_as_long_as_it_keeps_the_pace(pair: tuple[Connection, socket.socket]) -> None:
    connection, theirs = pair
    connection.sendall(b"x" * 100 * ENOUGH)
    connection.flush()
    connection.enter(Phase.ANSWER, 0.0, SLOW)
    for turn in range(1, 50):
        read = 0
        while read < ENOUGH:
            read += len(theirs.recv(65536))
            connection.flush()
        assert not connection.is_too_slow(turn * SLOW, SLOW)
    assert connection.is_too_slow(50 * SLOW, SLOW)


def test_an_answer_comes_whole_and_in_order(pair: tuple[Connection, socket.socket]) -> None:
    connection, theirs = pair
    pieces = [bytes([number % 256]) * (number * 37 % 5000) for number in range(2000)]
    for piece in pieces:
        connection.sendall(piece)
    wanted = b"".join(pieces)
    assert connection.pending == len(wanted)
    read = b""
    while len(read) < len(wanted):
        connection.flush()
        read += theirs.recv(65536)
    assert read == wanted
    assert connection.pending == 0
    assert connection.flush()

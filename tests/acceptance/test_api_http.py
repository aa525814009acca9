"""HTTP/1.1 as the API speaks it, to the byte."""

import json
import re
import socket
from contextlib import suppress

import pytest

from tests.acceptance.stack import Stack
from tests.acceptance.test_slow_clients import NOBODY, assert_problem, port_of
from tests.slow_clients import HEAD, answer_of

BODY = json.dumps({"name": "raw", "rrule": "FREQ=YEARLY", "callback_url": NOBODY}).encode()
CLOSE = b"Connection: close\r\n"
CHUNKED = HEAD + CLOSE + b"Transfer-Encoding: chunked\r\n\r\n"


def say(stack: Stack, data: bytes, *, end: bool = False) -> bytes:
    """What the server answers to these bytes until it closes; `end` closes our side first."""
    with socket.create_connection(("127.0.0.1", port_of(stack))) as sock:
        with suppress(ConnectionError):  # it waits seconds for a client that goes on sending after its answer
            sock.sendall(data)
        if end:
            sock.shutdown(socket.SHUT_WR)
        return answer_of(sock)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        pytest.param(CHUNKED + b"zz\r\n", 400, id="a chunk without a size"),
        pytest.param(CHUNKED + b"3\r\nlonger", 400, id="a chunk that is too long"),
        pytest.param(HEAD + b"Content-Length: x\r\n\r\n", 400, id="a length that is no number"),
        pytest.param(HEAD + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\n", 400, id="two lengths"),
        pytest.param(
            HEAD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, id="CL and TE"
        ),
        pytest.param(HEAD + b"Transfer-Encoding: snail\r\n\r\n", 501, id="an unknown coding"),
        pytest.param(b"nonsense\r\n\r\n", 400, id="no request"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400, id="TLS"),
        pytest.param(b"GET /" + b"x" * 10_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414, id="a long path"),
        pytest.param(HEAD + b"X-Long: " + b"x" * 9_000 + b"\r\n\r\n", 431, id="a large field"),
        pytest.param(HEAD + b"X: 1\r\n" * 200 + b"\r\n", 431, id="many fields"),
        pytest.param(HEAD + b"Content-Length: 2000000\r\n\r\n", 413, id="a large body"),
        pytest.param(
            HEAD + b"Expect: 100-continue\r\nContent-Length: 2000000\r\n\r\n", 413, id="one that asks first"
        ),
    ],
)
def test_what_is_no_request_is_a_problem_and_ends_the_connection(
    stack: Stack, data: bytes, status: int
) -> None:
    assert_problem(say(stack, data), status)
    assert "Traceback" not in stack.logs()
    assert say(stack, HEAD + CLOSE + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY).startswith(
        b"HTTP/1.1 201 "
    )


def test_a_body_that_ends_early_is_a_400(stack: Stack) -> None:
    assert_problem(say(stack, HEAD + b"Content-Length: 100\r\n\r\n{", end=True), 400)
    assert_problem(say(stack, CHUNKED + b"5\r\n{", end=True), 400)


def test_an_error_is_read_by_a_client_that_is_still_sending(stack: Stack) -> None:
    assert_problem(say(stack, HEAD + b"Content-Length: 3000000\r\n\r\n" + b"x" * 3_000_000), 413)


def test_a_chunked_body_is_taken(stack: Stack) -> None:
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in BODY)
    assert say(stack, CHUNKED + chunks + b"0\r\n\r\n").startswith(b"HTTP/1.1 201 ")


def test_requests_in_one_piece_are_answered_in_their_order(stack: Stack) -> None:
    create = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
    health = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    nothing = b"GET /api/nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    answer = say(stack, create + health + create + nothing)
    assert re.findall(rb"HTTP/1.1 (\d+) ", answer) == [b"201", b"200", b"201", b"404"]


def test_head_is_answered_as_get_without_a_body(stack: Stack) -> None:
    asked = b" /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    head, _, body = say(stack, b"HEAD" + asked).partition(b"\r\n\r\n")
    _, _, content = say(stack, b"GET" + asked).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert body == b""
    assert b"Content-Length: %d" % len(content) in head


def test_an_old_client_is_answered_and_the_connection_closed(stack: Stack) -> None:
    answer = say(stack, b"GET /healthz HTTP/1.0\r\n\r\n")
    assert answer.startswith((b"HTTP/1.0 200 ", b"HTTP/1.1 200 "))


def test_a_client_that_asks_first_is_told_to_go_on(stack: Stack) -> None:
    with socket.create_connection(("127.0.0.1", port_of(stack))) as sock:
        sock.sendall(HEAD + CLOSE + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(BODY))
        assert sock.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(BODY)
        assert answer_of(sock).startswith(b"HTTP/1.1 201 ")

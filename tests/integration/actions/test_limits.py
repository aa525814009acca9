"""What a receiver can do to us: nothing but end its own attempt."""

import resource
import select
import socket
import time
from collections.abc import Callable

import pytest

from scheduler_app.actions.http.sender import Sender
from tests.integration.actions.receiver import (
    Receiver,
    Seen,
    first_answers_then,
    hangs,
    says,
    streams,
    writes,
)
from tests.integration.actions.sending import request, send_one
from tests.processes import PATIENCE_SECONDS

Receive = Callable[..., Receiver]


def drips(seen: Seen, connection: socket.socket) -> bool:
    """Answers with a byte every 20 ms: always alive, never done."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    connection.settimeout(0.02)
    while True:
        connection.sendall(b"x")
        try:
            connection.recv(1)
            return False
        except TimeoutError:
            continue


@pytest.mark.parametrize("behave", [hangs, drips])
def test_the_timeout_is_for_the_whole_answer(
    behave: Callable[[Seen, socket.socket], bool], receive: Receive, sender: Sender
) -> None:
    receiver = receive(first_answers_then(behave))
    assert send_one(sender, receiver.url).status == 200
    began = time.monotonic()
    answer = send_one(sender, receiver.url, timeout_seconds=0.3)
    assert time.monotonic() - began > 0.29
    assert (answer.status, answer.error, answer.permanent) == (None, "timed out after 0.3 s", False)
    assert answer.duration_ms > 290


def test_an_address_that_does_not_answer_costs_no_more_than_the_timeout(
    receive: Receive, sender: Sender
) -> None:
    assert send_one(sender, receive().url).status == 200
    # A full backlog drops further connections, as a firewall does.
    with socket.socket() as deaf, socket.socket() as first, socket.socket() as second:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        for filler in (first, second):
            filler.setblocking(False)
            filler.connect_ex(deaf.getsockname())
        select.select([deaf], [], [])  # the first one has arrived, and there is no room any more
        answer = send_one(sender, f"http://127.0.0.1:{deaf.getsockname()[1]}/", timeout_seconds=0.3)
    assert answer.error == "timed out: no connection within 0.3 s"
    assert (answer.status, answer.permanent) == (None, False)


def test_a_handshake_that_never_ends_is_no_connection(sender: Sender) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}/"
        answer = send_one(sender, url, timeout_seconds=0.3)
    assert answer.error == "timed out: no connection within 0.3 s"


def test_a_timeout_on_a_kept_connection_is_of_the_answer(receive: Receive, sender: Sender) -> None:
    def once(seen: Seen, connection: socket.socket) -> bool:
        return (says() if len(receiver.seen) == 1 else hangs)(seen, connection)

    receiver = receive(once)
    assert send_one(sender, receiver.url).status == 200
    assert send_one(sender, receiver.url, timeout_seconds=0.2).error == "timed out after 0.2 s"
    assert receiver.connections == 1


def test_each_request_has_its_own_timeout(receive: Receive, sender: Sender) -> None:
    receiver = receive(hangs)
    for limit in (PATIENCE_SECONDS, 0.1, 0.3, 2 * PATIENCE_SECONDS):
        sender.start(request(receiver.url, key=str(limit), timeout_seconds=limit))
    took: dict[str, float] = {}
    while len(took) < 2:
        took |= {answer.key: answer.duration_ms for answer in sender.wait(PATIENCE_SECONDS)}
    assert took.keys() == {"0.1", "0.3"}
    assert all(duration_ms > 1000 * float(limit) - 10 for limit, duration_ms in took.items())
    assert sender.in_flight == 2


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
    ],
)
def test_a_huge_body_is_not_read_and_the_status_stands(head: bytes, receive: Receive, sender: Sender) -> None:
    receiver = receive(streams(head, b"x" * 65536))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # It has no end: a sender that read it all would go on for longer than a test may take.
    answer = send_one(sender, receiver.url)
    assert (answer.status, answer.error, answer.snippet) == (200, None, "x" * 1024)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8 * 1024


def test_a_body_of_the_limit_is_read_whole_and_its_connection_kept(receive: Receive, sender: Sender) -> None:
    receiver = receive(says(body=b"x" * 65536))
    for _ in range(2):
        assert send_one(sender, receiver.url).status == 200
    assert receiver.connections == 1


@pytest.mark.parametrize(
    ("head", "forever"),
    [
        (b"HTTP/1.1 200 OK\r\n", b"X-A: " + b"b" * 200 + b"\r\n"),
        (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"),
        (b"HTTP/1.1 200 OK\r\nX-A: ", b"b" * 5000),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"X-T: " + b"t" * 200 + b"\r\n"),
    ],
    ids=["long lines", "short lines", "one line", "100 Continue", "103 Early Hints", "trailers"],
)
def test_headers_without_an_end_are_given_up(
    head: bytes, forever: bytes, receive: Receive, sender: Sender
) -> None:
    receiver = receive(streams(head, forever))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answer = send_one(sender, receiver.url)
    assert (answer.status, answer.permanent) == (None, False)
    assert answer.error == "the answer's headers are too large"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8 * 1024


@pytest.mark.parametrize(
    ("pieces", "error"),
    [
        ((), "the receiver closed the connection without an answer"),
        ((b"HTTP/1.1 200 OK\r\nContent-Le",), "before the answer was complete"),
        ((b"HTTP/1.1 200 OK\r\nX: y\r\n",), "before the answer was complete"),
        ((b"HTTP/1.1 200 OK\r\n",), "before the answer was complete"),
        ((b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n",), "before the answer was complete"),
        (
            (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",),
            "closed the connection before the answer was complete",
        ),
        (
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhal",),
            "before the answer was complete",
        ),
        ((b"SSH-2.0-OpenSSH_9.2\r\n",), "the answer is not HTTP/1.1"),
        ((b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",), "the answer is not HTTP/1.1"),
        (
            (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",),
            "the answer is not HTTP/1.1",
        ),
    ],
)
def test_half_an_answer_is_none_and_may_be_retried(
    pieces: tuple[bytes, ...], error: str, receive: Receive, sender: Sender
) -> None:
    receiver = receive(writes(*pieces))
    answer = send_one(sender, receiver.url)
    assert (answer.status, answer.permanent) == (None, False)
    assert answer.error is not None
    assert error in answer.error


def test_a_malformed_location_is_only_text(receive: Receive, sender: Sender) -> None:
    receiver = receive(writes(b"HTTP/1.1 302 Found\r\nLocation: http://[bad\r\nContent-Length: 0\r\n\r\n"))
    answer = send_one(sender, receiver.url)
    assert (answer.status, answer.location) == (302, "http://[bad")


def test_a_compressed_answer_is_not_unpacked(receive: Receive, sender: Sender) -> None:
    body = b"\x1f\x8b\x08\x00bomb"
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body)
    receiver = receive(writes(head, body))
    answer = send_one(sender, receiver.url)
    assert answer.status == 200
    assert answer.snippet.endswith("bomb")
    assert "accept-encoding" not in receiver.seen[0].headers


def test_trailers_after_a_body_belong_to_a_whole_answer(receive: Receive, sender: Sender) -> None:
    chunks = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-T: 1\r\n\r\n"
    receiver = receive(writes(chunks))
    answer = send_one(sender, receiver.url)
    assert (answer.status, answer.error, answer.snippet) == (200, None, "ok")

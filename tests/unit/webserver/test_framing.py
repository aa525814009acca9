"""Where a request ends, however its bytes are cut, and what is no request."""

import json
import re
import socket
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from scheduler_app.webserver.limits import MAX_CHUNKS, MAX_HEADER_BYTES
from tests.slow_clients import answer_of
from tests.unit.webserver.serving import running

HEAD = b"POST /api/schedules HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
LAST = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
MEBIBYTE = 1024 * 1024


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """Of an application whose answer is the request's body, in brackets."""
    with running() as number:
        yield number


def said(port: int, data: bytes, step: int = 65536) -> bytes:
    """What the server answers to `data`, sent in pieces of `step` bytes, until it closes."""
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(ConnectionError):  # it may close before all is sent
            for at in range(0, len(data), step):
                client.sendall(data[at : at + step])
        return answer_of(client)


def bodies(port: int, data: bytes, step: int = 65536) -> list[bytes]:
    """The bodies of the requests in `data`, which is not the end of what the client says."""
    answers = said(port, data + LAST, step)
    assert re.findall(rb"HTTP/1.1 (\d+)", answers) == [b"200"] * answers.count(b"HTTP/1.1")
    found = re.findall(rb"\[([^]]*)\]", answers)
    assert found.pop() == b""
    return found


def refusal(port: int, data: bytes, step: int = 65536) -> tuple[int, str]:
    """The status and the sentence of the problem that is the only answer to `data`."""
    head, _, body = said(port, data, step).partition(b"\r\n\r\n")
    assert b"\r\nContent-Type: application/problem+json" in head
    assert b"\r\nConnection: close" in head
    problem = json.loads(body)
    assert head.startswith(f"HTTP/1.1 {problem['status']} {problem['title']}\r\n".encode())
    return problem["status"], problem["detail"]


def sized(body: bytes) -> bytes:
    return HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode() + body


@pytest.mark.parametrize("step", [1, 2, 3, 7, 64, 65536])
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 3, [b"", b"", b""]),
        (sized(b"one") + sized(b"") + sized(b"three"), [b"one", b"", b"three"]),
        (CHUNKED + b"3\r\none\r\n2 ;a=b\r\n!!\r\n0\r\n\r\n" + sized(b"next"), [b"one!!", b"next"]),
        (CHUNKED + b"00\r\nX-Sum: 7\r\nX-More:\r\n\r\n" + sized(b"next"), [b"", b"next"]),
        (CHUNKED + b"A\r\n0123456789\r\n0\r\n\r\n", [b"0123456789"]),
        # What old clients send after a body.
        (sized(b"one") + b"\r\n" + sized(b"two"), [b"one", b"two"]),
    ],
)
def test_requests_are_told_apart_however_their_bytes_are_cut(
    data: bytes, expected: list[bytes], step: int, port: int
) -> None:
    assert bodies(port, data, step) == expected


@pytest.mark.parametrize(
    "body",
    [
        b"zz\r\n",
        b"-1\r\n",
        b"0x3\r\none\r\n",
        b" 3\r\none\r\n",
        b"3\none\n",
        b"3\r\nonee\r\n",
        b"3\r\none\n0\r\n\r\n",
        b"FFFFFFFFF\r\n",
        b"3;" + b"x" * 300 + b"\r\none\r\n",
        b"3;\x00\r\none\r\n",
        b"0\r\nno header\r\n\r\n",
        b"\r\n",
    ],
)
@pytest.mark.parametrize("step", [1, 65536])
def test_a_malformed_chunked_body_is_a_400(body: bytes, step: int, port: int) -> None:
    status, detail = refusal(port, CHUNKED + body, step)
    assert status == 400
    assert "chunk" in detail.lower()


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (b"Content-Length: 3\r\nTransfer-Encoding: chunked", 400),
        (b"Transfer-Encoding: chunked\r\nContent-Length: 3", 400),
        (b"Content-Length: 3\r\nContent-Length: 4", 400),
        (b"Content-Length: 3\r\nContent-Length: 3", 400),
        (b"Content-Length: +3", 400),
        (b"Content-Length: 3, 3", 400),
        (b"Content-Length: " + b"9" * 5000, 400),
        (b"Content-Length:", 400),
        (b"Transfer-Encoding: chunked, chunked", 400),
        (b"Transfer-Encoding: gzip", 501),
        (b"Transfer-Encoding: gzip, chunked", 400),
        (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", 400),
        (b"Transfer-Encoding: \x0bchunked", 400),
        (b"Transfer-Encoding: xchunked", 501),
        (b"Transfer_Encoding: chunked\r\nContent-Length : 3", 400),
        (b"Host: another", 400),
        (b" folded", 400),
        (b"X: 1\r\n folded", 400),
        (b"X: a\rb", 400),
        (b"X: a\nb", 400),
        (b"X: \x00", 400),
        (b"no colon", 400),
        (b"Expect: a miracle", 417),
        (b"X: " + b"x" * 9000, 431),
        (b"\r\n".join(b"X%d: 1" % number for number in range(101)), 431),
    ],
)
def test_a_header_that_could_be_read_in_two_ways_is_refused(header: bytes, status: int, port: int) -> None:
    assert refusal(port, HEAD + header + b"\r\n\r\none")[0] == status


@pytest.mark.parametrize(
    "line",
    [
        b"GET /",
        b"GET  / HTTP/1.1",
        b" GET / HTTP/1.1",
        b"GET / HTTP/1.1 ",
        b"GET x HTTP/1.1",
        b"GET http://[ HTTP/1.1",
        b"GET /a\tb HTTP/1.1",
        b"\x16\x03\x01\x02",
        b"GET / HTTP/9.9",
        b"PRI * HTTP/2.0",
        b"G@T / HTTP/1.1",
    ],
)
def test_a_request_line_that_is_none_is_a_400(line: bytes, port: int) -> None:
    assert refusal(port, line + b"\r\nHost: x\r\n\r\n")[0] == 400


@pytest.mark.parametrize(
    "data", [b"GET / HTTP/1.1\nHost: x\n\n", b"\nGET / HTTP/1.1", HEAD + b"X: 1\n", b"\x16\x03\x01"]
)
def test_what_can_become_no_request_is_refused_before_a_header_ends(data: bytes, port: int) -> None:
    """For the rest it would wait longer than a test may take."""
    assert refusal(port, data)[0] == 400


def test_blanks_before_a_value_cost_no_time(port: int) -> None:
    fields = b"".join(b"X%d:" % number + b" " * 8000 + b"x\r\n" for number in range(8))
    began = time.process_time()
    assert bodies(port, HEAD + fields + b"\r\n") == [b""]
    assert time.process_time() - began < 1


@pytest.mark.parametrize("value", [b"close", b"Close, x", b"x ,close"])
def test_a_connection_closes_where_its_list_of_wishes_has_close(value: bytes, port: int) -> None:
    answer = said(port, HEAD + b"Content-Length: 0\r\nConnection: " + value + b"\r\n\r\n" + LAST)
    assert answer.count(b"HTTP/1.1 200") == 1
    assert b"\r\nConnection: close\r\n" in answer


@pytest.mark.parametrize("path", [b"/", b"/nothing", b"/pieces"])
def test_a_connection_is_kept_after_any_answer_whose_end_is_told(path: bytes, port: int) -> None:
    answers = said(port, b"GET " + path + b" HTTP/1.1\r\nHost: x\r\n\r\n" + LAST)
    assert answers.endswith(b"[]")
    assert answers.count(b"\r\nConnection: close\r\n") == 1


def test_an_old_client_keeps_its_connection_where_it_asks_for_that(port: int) -> None:
    asked = b"GET / HTTP/1.0\r\nConnection: keep-alive, x\r\n\r\n"
    assert said(port, asked + asked + LAST).count(b"[]") == 3
    assert said(port, b"GET / HTTP/1.0\r\n\r\n" + LAST).count(b"[]") == 1


@pytest.mark.parametrize("path", [b"/api/v1/schedules/bulk", b"/api/schedules/import"])
def test_a_connection_ends_with_a_long_request(path: bytes, port: int) -> None:
    answer = said(port, b"POST " + path + b" HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n1" + LAST)
    assert answer.endswith(b"[1]")


def test_a_client_that_asks_first_is_told_to_go_on_or_is_refused(port: int) -> None:
    asking = HEAD + b"Expect: 100-continue\r\nContent-Length: "
    answer = said(port, asking + b"3\r\nConnection: close\r\n\r\none")
    assert re.findall(rb"HTTP/1.1 (\d+)", answer) == [b"100", b"200"]
    assert refusal(port, asking + b"2000000\r\n\r\n")[0] == 413
    assert bodies(port, HEAD + b"Expect: 100-continue\r\n\r\n") == [b""]


def test_no_chunked_body_comes_from_an_old_client(port: int) -> None:
    data = b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    assert refusal(port, data)[0] == 400


def test_a_header_without_an_end_is_refused_as_soon_as_it_is_too_large(port: int) -> None:
    assert refusal(port, HEAD + b"X: 1\r\n" * MAX_HEADER_BYTES)[0] == 431
    assert refusal(port, b"GET /" + b"x" * 2 * MAX_HEADER_BYTES)[0] == 414
    assert refusal(port, b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\nHost: x\r\n\r\n")[0] == 414


def test_a_body_that_is_too_large_is_refused_before_it_is_read(port: int) -> None:
    assert refusal(port, HEAD + f"Content-Length: {MEBIBYTE + 1}\r\n\r\n".encode())[0] == 413
    assert refusal(port, CHUNKED + b"%x\r\n" % (MEBIBYTE + 1))[0] == 413
    assert refusal(port, CHUNKED + (b"%x\r\n" % MEBIBYTE) + b"x" * MEBIBYTE + b"\r\n1\r\n")[0] == 413
    for name in (b"/api/v1", b"/api"):
        bulk = b"POST " + name + b"/schedules/bulk HTTP/1.1\r\nHost: x\r\n"
        body = b"x" * (2 * MEBIBYTE)
        assert said(port, bulk + b"Content-Length: %d\r\n\r\n" % len(body) + body).endswith(
            b"[" + body + b"]"
        )
        assert refusal(port, bulk + f"Content-Length: {16 * MEBIBYTE + 1}\r\n\r\n".encode())[0] == 413


def test_chunks_are_counted_and_so_is_what_follows_the_last(port: int) -> None:
    assert refusal(port, CHUNKED + b"1\r\nx\r\n" * (MAX_CHUNKS + 1))[0] == 413
    assert refusal(port, CHUNKED + b"0\r\n" + b"X: 1\r\n" * 10_000)[0] == 431


@pytest.mark.parametrize(
    "host",
    [
        b"",
        b"Host:\r\n",
        b"Host: a b\r\n",
        b"Host: a/b\r\n",
        b"Host: user@localhost\r\n",
        b"Host: localhost:http\r\n",
        b"Host: localhost:123456\r\n",
        b"Host: [::1\r\n",
        b"Host: ::1\r\n",
        b"Host: \xe4.example\r\n",
        b"Host: a,b\r\n",
        b"Host: a\r\nHost: a\r\n",
        b"Host: %s\r\n" % (b"a" * 300),
    ],
)
def test_a_request_without_one_host_in_good_form_is_refused(host: bytes, port: int) -> None:
    assert refusal(port, b"GET /healthz HTTP/1.1\r\n" + host + b"\r\n")[0] == 400


@pytest.mark.parametrize(
    "host",
    [
        b"localhost",
        b"localhost:8080",
        b"10.0.0.1:80",
        b"[::1]:8080",
        b"[fe80::1]",
        b"my_host.example.",
        b"x:",
    ],
)
def test_a_host_is_a_name_or_an_address_with_or_without_a_port(host: bytes, port: int) -> None:
    assert bodies(port, b"GET / HTTP/1.1\r\nHost: " + host + b"\r\n\r\n") == [b""]


def test_an_old_client_may_name_no_host(port: int) -> None:
    assert said(port, b"GET / HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.0 200 ")

"""Where a request ends, however its bytes are cut, and what is no request."""

import pytest
from gunicorn.config import Config

from scheduler_app.webserver.framing import RequestReader
from scheduler_app.webserver.limits import MAX_CHUNKS, MAX_HEADER_BYTES
from scheduler_app.webserver.problems import RefusedRequest

HEAD = b"POST /api/schedules HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
MEBIBYTE = 1024 * 1024


def reader() -> RequestReader:
    return RequestReader(Config(), ("127.0.0.1", 4711))


def bodies(data: bytes, step: int) -> list[bytes]:
    """The bodies of the requests in `data`, fed in pieces of `step` bytes."""
    read, found = reader(), []
    for at in range(0, len(data), step):
        read.feed(data[at : at + step])
        while (request := read.next_request()) is not None:
            found.append(request.body.read())
    return found


def refusal(data: bytes, step: int = 65536) -> RefusedRequest:
    with pytest.raises(RefusedRequest) as refused:
        bodies(data, step)
    return refused.value


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
    data: bytes, expected: list[bytes], step: int
) -> None:
    assert bodies(data, step) == expected


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
def test_a_malformed_chunked_body_is_a_400(body: bytes, step: int) -> None:
    refused = refusal(CHUNKED + body, step)
    assert refused.status == 400
    assert "chunked body is malformed" in refused.detail


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
        (b"Transfer-Encoding: gzip", 400),
        (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", 400),
        (b"Transfer-Encoding: \x0bchunked", 400),
        (b"Transfer-Encoding: xchunked", 501),
        (b"Transfer_Encoding: chunked\r\nContent-Length : 3", 400),
        (b"Host: another", 400),
        (b" folded", 400),
        (b"no colon", 400),
        (b"Expect: a miracle", 417),
        (b"X: " + b"x" * 9000, 431),
        (b"\r\n".join(b"X%d: 1" % number for number in range(101)), 431),
    ],
)
def test_a_header_that_could_be_read_in_two_ways_is_refused(header: bytes, status: int) -> None:
    refused = refusal(HEAD + header + b"\r\n\r\none")
    assert refused.status == status, refused


@pytest.mark.parametrize(
    "line", [b"GET /", b"GET  / HTTP/1.1", b"\x16\x03\x01\x02", b"GET / HTTP/9.9", b"G@T / HTTP/1.1"]
)
def test_a_request_line_that_is_none_is_a_400(line: bytes) -> None:
    assert refusal(line + b"\r\nHost: x\r\n\r\n").status == 400


def test_a_header_without_an_end_is_refused_as_soon_as_it_is_too_large() -> None:
    assert refusal(HEAD + b"X: 1\r\n" * MAX_HEADER_BYTES).status == 431
    assert refusal(b"GET /" + b"x" * 2 * MAX_HEADER_BYTES).status == 414
    assert refusal(b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\nHost: x\r\n\r\n").status == 414


def test_a_body_that_is_too_large_is_refused_before_it_is_read() -> None:
    assert refusal(HEAD + f"Content-Length: {MEBIBYTE + 1}\r\n\r\n".encode()).status == 413
    assert refusal(CHUNKED + b"%x\r\n" % (MEBIBYTE + 1)).status == 413
    for name in (b"/api/v1", b"/api"):
        bulk = b"POST " + name + b"/schedules/bulk HTTP/1.1\r\nHost: x\r\n"
        read = reader()
        read.feed(bulk + f"Content-Length: {16 * MEBIBYTE}\r\n\r\n".encode())
        assert read.next_request() is None
        assert refusal(bulk + f"Content-Length: {16 * MEBIBYTE + 1}\r\n\r\n".encode()).status == 413


def test_chunks_are_counted_and_so_is_what_follows_the_last() -> None:
    assert refusal(CHUNKED + b"1\r\nx\r\n" * (MAX_CHUNKS + 1)).status == 413
    assert refusal(CHUNKED + b"0\r\n" + b"X: 1\r\n" * 10_000).status == 431


def test_what_is_held_for_a_client_is_counted() -> None:
    read = reader()
    read.feed(HEAD + b"Content-Length: 1000\r\n\r\n" + b"x" * 600)
    assert read.next_request() is None
    assert read.in_body
    assert read.held_bytes == 600


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
def test_a_request_without_one_host_in_good_form_is_refused(host: bytes) -> None:
    assert refusal(b"GET /healthz HTTP/1.1\r\n" + host + b"\r\n").status == 400


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
def test_a_host_is_a_name_or_an_address_with_or_without_a_port(host: bytes) -> None:
    assert bodies(b"GET / HTTP/1.1\r\nHost: " + host + b"\r\n\r\n", 65536) == [b""]


def test_an_old_client_may_name_no_host() -> None:
    assert bodies(b"GET / HTTP/1.0\r\n\r\n", 65536) == [b""]

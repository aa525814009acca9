"""Finds where requests begin and end in the bytes of a connection. gunicorn's parser reads the header."""

import re
from io import BytesIO
from typing import Protocol

from gunicorn.config import Config
from gunicorn.http.body import ChunkedReader
from gunicorn.http.errors import NoMoreData, ParseException
from gunicorn.http.message import Request
from gunicorn.http.unreader import IterUnreader

from scheduler_app.webserver.limits import (
    MAX_CHUNK_LINE_BYTES,
    MAX_CHUNKS,
    MAX_HEADER_BYTES,
    MAX_HOST_BYTES,
    MAX_TRAILER_BYTES,
    max_body_bytes,
)
from scheduler_app.webserver.problems import RefusedRequest, of_parse_error, too_large, wrong_host

_CRLF = b"\r\n"
_END_OF_HEADER = b"\r\n\r\n"
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[\t\x20-\x7e\x80-\xff]*)?")
_HOST = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?")
_TRAILER = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*")


class _Body(Protocol):
    content: bytearray

    def take(self, buffer: bytearray) -> bool:
        """Moves the body's bytes out of `buffer`; returns whether the body is complete."""
        ...


class RequestReader:
    """Reads the requests of one connection one after another; bytes of the next one are kept."""

    def __init__(self, cfg: Config, peer: object) -> None:
        self._cfg = cfg
        self._peer = peer
        self._buffer = bytearray()
        self._scanned = 0
        self._count = 0
        self._request: Request | None = None
        self._body: _Body | None = None
        self.continue_expected = False
        """Whether the client waits for "100 Continue" before it sends the body."""

    @property
    def is_empty(self) -> bool:
        """Whether no byte of a next request has come."""
        return self._request is None and not self._buffer

    @property
    def in_body(self) -> bool:
        return self._request is not None

    @property
    def held_bytes(self) -> int:
        return len(self._buffer) + (len(self._body.content) if self._body else 0)

    def feed(self, data: bytes) -> None:
        self._buffer += data

    def next_request(self) -> Request | None:
        """Returns the next request once its whole body has come, None before. Raises RefusedRequest."""
        if self._body is None and not self._read_header():
            return None
        if self._request is None or self._body is None or not self._body.take(self._buffer):
            return None
        request, body = self._request, self._body
        self._request = self._body = None
        self.continue_expected = False
        request.body = BytesIO(body.content)
        return request

    def _read_header(self) -> bool:
        buffer = self._buffer
        if buffer[:2] == _CRLF:
            # Old clients send an extra line end after a body (RFC 9112, 2.2).
            del buffer[:2]
        end = buffer.find(_END_OF_HEADER, max(0, self._scanned - 3))
        if end > MAX_HEADER_BYTES or (end < 0 and len(buffer) > MAX_HEADER_BYTES):
            if buffer.find(_CRLF, 0, MAX_HEADER_BYTES) < 0:
                raise RefusedRequest(414, "the request line is longer than 8,190 bytes")
            raise RefusedRequest(431, f"the header is larger than {MAX_HEADER_BYTES // 1024} KiB")
        if end < 0:
            self._scanned = len(buffer)
            return False
        header = bytes(buffer[: end + 4])
        del buffer[: end + 4]
        self._scanned = 0
        self._count += 1
        try:
            request = Request(self._cfg, IterUnreader([header]), self._peer, self._count)
        except (ParseException, NoMoreData, StopIteration, ValueError) as error:
            raise of_parse_error(error) from None
        _check_host(request)
        self._request, self._body = request, _body_of(request)
        # The worker answers the expectation: wsgi.create would do so only after the body has come.
        self.continue_expected = request._expected_100_continue
        request._expected_100_continue = False
        return True


def _check_host(request: Request) -> None:
    """Raises RefusedRequest unless the request names its host (RFC 9112, 3.2): checks of names rely on it."""
    hosts = [value for name, value in request.headers if name == "HOST"]
    if not hosts and request.version < (1, 1):
        return
    if len(hosts) != 1 or len(hosts[0]) > MAX_HOST_BYTES or not _HOST.fullmatch(hosts[0]):
        raise wrong_host()


def _body_of(request: Request) -> _Body:
    most = max_body_bytes(request.path)
    reader = request.body.reader
    if isinstance(reader, ChunkedReader):
        return _ChunkedBody(most)
    if reader.length > most:
        raise too_large(most)
    return _SizedBody(reader.length)


class _SizedBody:
    def __init__(self, length: int) -> None:
        self._length = length
        self.content = bytearray()

    def take(self, buffer: bytearray) -> bool:
        missing = self._length - len(self.content)
        self.content += buffer[:missing]
        del buffer[:missing]
        return len(self.content) == self._length


class _ChunkedBody:
    """RFC 9112, 7.1. Chunk extensions and trailers are ignored; a bare line feed does not end a line."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._chunks = 0
        self._missing = 0
        self._trailer_bytes = 0
        self._in_chunk = self._in_trailer = False
        self.content = bytearray()

    def take(self, buffer: bytearray) -> bool:
        at, complete = 0, False
        while not complete:
            if self._in_chunk:
                at = self._take_chunk(buffer, at)
                if self._in_chunk:
                    break
                continue
            line = _line(buffer, at, MAX_TRAILER_BYTES if self._in_trailer else MAX_CHUNK_LINE_BYTES)
            if line is None:
                break
            at += len(line) + 2
            if self._in_trailer:
                complete = self._is_last(line)
            else:
                self._begin_chunk(line)
        del buffer[:at]
        return complete

    def _begin_chunk(self, line: bytes) -> None:
        found = _CHUNK.fullmatch(line)
        if found is None:
            raise _malformed("a chunk does not begin with its size in hexadecimal digits")
        self._missing = int(found[1], 16)
        self._chunks += 1
        if len(self.content) + self._missing > self._most:
            raise too_large(self._most)
        if self._chunks > MAX_CHUNKS:
            raise RefusedRequest(413, f"the body comes in more than {MAX_CHUNKS} chunks; send larger ones")
        self._in_chunk = self._missing > 0
        self._in_trailer = self._missing == 0

    def _take_chunk(self, buffer: bytearray, at: int) -> int:
        """Takes the bytes that have come of a chunk and its line end; returns where they end."""
        if self._missing:
            data = buffer[at : at + self._missing]
            self.content += data
            self._missing -= len(data)
            at += len(data)
            if self._missing:
                return at
        end = buffer[at : at + 2]
        if end == _CRLF:
            self._in_chunk = False
            return at + 2
        if not _CRLF.startswith(end):
            raise _malformed("a chunk is longer than its size says")
        return at

    def _is_last(self, line: bytes) -> bool:
        self._trailer_bytes += len(line) + 2
        if self._trailer_bytes > MAX_TRAILER_BYTES:
            raise RefusedRequest(431, f"the trailer is larger than {MAX_TRAILER_BYTES // 1024} KiB")
        if line and not _TRAILER.fullmatch(line):
            raise _malformed("a trailer is not a header field")
        return not line


def _line(buffer: bytearray, at: int, most: int) -> bytes | None:
    """Returns the line that begins at `at`, without its end; None until its end has come."""
    end = buffer.find(_CRLF, at, at + most + 2)
    if end >= 0:
        return bytes(buffer[at:end])
    if len(buffer) - at > most or b"\n" in buffer[at:]:
        raise _malformed("a line of it has no end where it should")
    return None


def _malformed(what: str) -> RefusedRequest:
    return RefusedRequest(400, f"the chunked body is malformed: {what}")

"""What is a request: waitress's parser, made strict where HTTP could be read in two ways."""

import re
from http import HTTPStatus
from typing import Any

from waitress.buffers import OverflowableBuffer
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.receiver import ChunkedReceiver
from waitress.utilities import BadRequest, Error

from scheduler_app.webserver import limits

#: What no header may hold: control characters, a line end that is not CRLF, a folded line.
_ILLEGAL = re.compile(rb"[^\t\r\n\x20-\x7e\x80-\xff]|(?<!\r)\n|\r(?=[^\n])|(?:\A|\n)[ \t]")
_REQUEST_LINE = re.compile(rb"[^ \t]+ (?:/|\*|[A-Za-z]+://)[^ \t]* HTTP/1\.[01]")
#: The blanks before a field's value. waitress's own pattern needs time that grows with their square.
_PADDING = re.compile(rb"^([^:\r\n]+:)[ \t]+", re.MULTILINE)
_HOST = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{0,5})?")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[\t\x20-\x7e\x80-\xff]*)?\r\n")
_TRAILER = re.compile(rb"(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e\x80-\xff]*)?\r\n")


class Refusal(Error):  # type: ignore[misc]
    """The answer to what is no acceptable request. waitress's BadRequest says that it is no HTTP at all."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.code, self.reason = status, HTTPStatus(status).phrase


class RequestParser(HTTPRequestParser):  # type: ignore[misc]
    """Reads one request. `error` is what is wrong with it; such a request is complete at once."""

    path = ""
    body_rcv: Any
    completed: bool

    def received(self, data: bytes) -> int:
        """Takes bytes; returns how many of them belong to this request."""
        if self.body_rcv is None:
            self.error = self._early_fault(self.header_plus + data)
        consumed: int = len(data) if self.error else super().received(data)
        if self.error is None and self.headers_finished:
            self.error = self._too_large()
        self.completed = self.completed or self.error is not None
        if self.completed:
            # waitress would forget that it is.
            self.expect_continue = False
        return consumed

    def parse_header(self, header_plus: bytes) -> None:
        """Called by waitress, with the whole header."""
        line, *fields = header_plus.removesuffix(b"\r\n\r\n").split(b"\r\n")
        self.error = self._fault_of_fields(fields)
        if self.error is not None:
            return
        if not _REQUEST_LINE.fullmatch(line):
            raise ParsingError("it does not begin with a method, a path and HTTP/1.1 or HTTP/1.0")
        try:
            super().parse_header(_PADDING.sub(rb"\1", header_plus))
        except ValueError as error:  # a length of thousands of digits, an address without its bracket
            raise ParsingError(str(error)) from None
        self.error = self._fault_of_meaning()
        if self.chunked:
            self.body_rcv = _Chunks(self.body_rcv.getbuf())
        # waitress compares the whole list with one word.
        asked = [word.strip().lower() for word in self.headers.get("CONNECTION", "").split(",")]
        if "close" in asked or limits.ends_connection(self.path):
            self.headers["CONNECTION"] = "close"
        elif "keep-alive" in asked:
            self.headers["CONNECTION"] = "keep-alive"

    def _early_fault(self, head: bytes) -> Error | None:
        """What is wrong with the beginning of a request, whether or not its header has come to its end."""
        # Old clients send an extra line end after a body (RFC 9112, 2.2).
        head = head.removeprefix(b"\r\n").partition(b"\r\n\r\n")[0]
        line = head.partition(b"\r\n")[0]
        most = self.adj.gunicorn.limit_request_line or limits.MAX_HEADER_BYTES
        if len(line) > most:
            return Refusal(414, f"the request line is longer than {most:,} bytes")
        if len(head) > limits.MAX_HEADER_BYTES:
            return Refusal(431, f"the header is larger than {limits.MAX_HEADER_BYTES // 1024} KiB")
        if _ILLEGAL.search(head):
            return BadRequest("a control character, a line that does not end with CRLF, or a folded one")
        return None

    def _fault_of_fields(self, fields: list[bytes]) -> Error | None:
        most_fields = self.adj.gunicorn.limit_request_fields
        most = self.adj.gunicorn.limit_request_field_size or limits.MAX_HEADER_BYTES
        if len(fields) > most_fields or any(len(field) > most for field in fields):
            return Refusal(431, f"send at most {most_fields} header fields of at most {most:,} bytes each")
        named = [(name.lower(), value) for name, _, value in (field.partition(b":") for field in fields)]
        codings = [value.strip(b" \t").lower() for name, value in named if name == b"transfer-encoding"]
        if codings and any(name == b"content-length" for name, _ in named):
            return BadRequest("it has a Content-Length and a Transfer-Encoding")
        if not codings or codings == [b"chunked"]:
            return None
        if b"chunked" in re.split(rb"[ \t]*,[ \t]*", b",".join(codings)):
            return BadRequest("chunked is not its only Transfer-Encoding")
        return Refusal(501, "the only Transfer-Encoding understood is chunked")

    def _fault_of_meaning(self) -> Error | None:
        if self.version == "1.0" and "TRANSFER_ENCODING" in self.headers:
            return BadRequest("HTTP/1.0 knows no Transfer-Encoding")
        # Checks of names rely on it (RFC 9112, 3.2). waitress has joined two of them by a comma.
        host = self.headers.get("HOST", "" if self.version == "1.1" else "none")
        if len(host) > limits.MAX_HOST_BYTES or not _HOST.fullmatch(host):
            return Refusal(400, "send one header Host, with a name or an address, and a port if need be")
        if self.headers.get("EXPECT", "100-continue").lower() != "100-continue":
            return Refusal(417, "the only expectation understood is 100-continue")
        return None

    def _too_large(self) -> Error | None:
        most, size = limits.max_body_bytes(self.path), self.content_length
        if self.chunked:
            size = len(self.body_rcv) + self.body_rcv.chunk_remainder
        if size <= most:
            return None
        text = f"{most // 1024**2} MiB" if most >= 1024**2 else f"{most // 1024} KiB"
        return Refusal(413, f"the body is larger than {text}; send less at once")


class _Chunks(ChunkedReceiver):  # type: ignore[misc]
    """A chunked body (RFC 9112, 7.1). Chunk extensions and trailers are ignored. waitress takes what is in a
    chunk; of the lines between, it forgives too much."""

    completed: bool
    all_chunks_received: bool
    chunk_remainder: int
    error: Error | None

    def __init__(self, buf: OverflowableBuffer) -> None:
        super().__init__(buf)
        self._line = b""
        self._chunks = 0

    def received(self, data: bytes) -> int:
        at = 0
        while at < len(data) and not (self.completed or self.error):
            if self.chunk_remainder or self.validate_chunk_end:
                end = min(at + self.chunk_remainder + 2 - len(self.chunk_end), len(data))
                super().received(data[at:end])
            else:
                end = data.find(b"\n", at) + 1 or len(data)
                self._line += data[at:end]
                self.error = self._take_line()
            at = end
        return at

    def _take_line(self) -> Error | None:
        line, in_trailer = self._line, self.all_chunks_received
        if in_trailer and len(self.trailer) + len(line) > limits.MAX_TRAILER_BYTES:
            return Refusal(431, f"the trailer is larger than {limits.MAX_TRAILER_BYTES // 1024} KiB")
        if not in_trailer and len(line) > limits.MAX_CHUNK_LINE_BYTES:
            return BadRequest("its chunked body is malformed: a line is too long")
        if not line.endswith(b"\n"):
            return None
        found, self._line = (_TRAILER if in_trailer else _CHUNK).fullmatch(line), b""
        if found is None:
            return BadRequest("its chunked body is malformed: a line is neither a chunk's size nor a field")
        if in_trailer:
            self.trailer += line
            self.completed = line == b"\r\n"
            return None
        self.chunk_remainder = int(found[1], 16)
        self.all_chunks_received = self.chunk_remainder == 0
        self._chunks += 1
        if self._chunks > limits.MAX_CHUNKS:
            return Refusal(413, f"the body comes in more than {limits.MAX_CHUNKS} chunks; send larger ones")
        return None

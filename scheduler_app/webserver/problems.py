"""Answers that the web server gives itself, before any route is called, as problems (RFC 9457)."""

import json
from collections.abc import Mapping
from email.utils import formatdate
from http import HTTPStatus

from gunicorn.http import errors


class RefusedRequest(Exception):
    """A request that reaches no route: the answer's status, and a sentence that says what to do."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = dict(headers or {})

    def answer(self) -> bytes:
        """Returns the whole answer, which is the last one of its connection."""
        reason = HTTPStatus(self.status).phrase
        problem = {"type": "about:blank", "title": reason, "status": self.status, "detail": self.detail}
        body = (json.dumps(problem) + "\n").encode()
        fields = {
            "Date": formatdate(usegmt=True),
            "Connection": "close",
            "Content-Type": "application/problem+json",
            "Content-Length": str(len(body)),
            **self.headers,
        }
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        return f"HTTP/1.1 {self.status} {reason}\r\n{lines}\r\n".encode("latin-1") + body


def of_parse_error(error: Exception) -> RefusedRequest:
    """Returns the refusal for an error of gunicorn's parser."""
    match error:
        case errors.LimitRequestLine():
            return RefusedRequest(414, "the request line is longer than 8,190 bytes")
        case errors.LimitRequestHeaders():
            return RefusedRequest(431, "send at most 100 header fields of at most 8,190 bytes each")
        case errors.UnsupportedTransferCoding():
            return RefusedRequest(501, "the only Transfer-Encoding understood is chunked")
        case errors.ExpectationFailed():
            return RefusedRequest(417, "the only expectation understood is 100-continue")
        case _:
            return RefusedRequest(400, f"the request is not well-formed HTTP: {error}"[:300])


def wrong_host() -> RefusedRequest:
    return RefusedRequest(400, "send one header Host, with a name or an address, and a port if need be")


def too_slow(what: str) -> RefusedRequest:
    return RefusedRequest(408, f"{what} did not come in time; send it again, faster")


def too_large(most: int) -> RefusedRequest:
    """Returns the refusal of a body of more than `most` bytes, a whole number of KiB."""
    size = f"{most // 1024**2} MiB" if most >= 1024**2 else f"{most // 1024} KiB"
    return RefusedRequest(413, f"the body is larger than {size}; send less at once")


def overloaded() -> RefusedRequest:
    return RefusedRequest(503, "the server is full; try again", {"Retry-After": "2"})

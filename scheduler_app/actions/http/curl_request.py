"""Turns a request into what libcurl takes, and refuses what must never reach libcurl."""

from functools import lru_cache
from urllib.parse import quote

from scheduler_app.actions.http.connection_pools import Credentials
from scheduler_app.actions.http.headers import OUR_HEADERS, check_name, check_value
from scheduler_app.actions.http.request import Request
from scheduler_app.actions.http.url import check_url
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.masking import is_credential

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD")

_ASCII = "".join(map(chr, range(0x21, 0x7F)))


def header_lines(request: Request) -> tuple[list[str] | list[bytes], Credentials]:
    """The headers for CURLOPT_HTTPHEADER, where "Name;" is sent empty and "Name:" is not sent at all; and
    those of them that tell who is calling.

    Raises InvalidField for a header that must not be sent. All of it was checked when the schedule was
    made; it is checked again because what is stored may be older than today's rules, and because a line end
    that reaches libcurl is a header, or a whole request, injected by a stranger.
    """
    headers = request.headers
    typed, secret = _check_names(tuple([name for name, _ in headers]))
    credentials = (
        tuple([(headers[place][0].lower(), headers[place][1]) for place in secret]) if secret else ()
    )
    lines = [f"{name}: {value}" if value else f"{name};" for name, value in headers]
    if not typed:
        lines.append("Content-Type:")  # libcurl would claim that a body is a form
    lines.append("Expect:")  # libcurl would wait up to a second for "100 Continue" before a large body
    text = "".join(lines)
    if text.isascii() and text.isprintable():  # the common case in one look: no line end, nothing to encode
        return lines, credentials
    for name, value in headers:
        check_value(name, value)
    try:
        return [line.encode() for line in lines], credentials
    except UnicodeEncodeError:
        raise InvalidField("headers", "must not contain half a surrogate pair") from None


def checked_url(request: Request) -> str:
    """The URL with what is beyond ASCII percent-encoded as UTF-8 (RFC 3987 §3.1).

    Raises InvalidField for a URL or method that cannot be sent.
    """
    if request.method not in METHODS:
        raise InvalidField("method", f"must be one of {', '.join(METHODS)}, not {request.method[:32]!r}")
    return _checked_url(request.url)


# Cached, because a schedule brings the same URL and the same names every time.


@lru_cache(maxsize=1024)
def _checked_url(url: str) -> str:
    check_url(url)
    return quote(url, safe=_ASCII, errors="replace")


@lru_cache(maxsize=1024)
def _check_names(names: tuple[str, ...]) -> tuple[bool, tuple[int, ...]]:
    """Whether Content-Type is among them, and the places of those that tell who is calling; raises
    InvalidField."""
    for name in names:
        check_name(name)
    lower = [name.lower() for name in names]
    places = [place for place, name in enumerate(lower) if is_credential(name) and name not in OUR_HEADERS]
    return "content-type" in lower, tuple(places)

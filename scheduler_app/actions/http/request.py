"""What an event asks of a receiver: the form of its URL, the headers that the user wrote and those that we
add, and the signature, as Standard Webhooks describes it (https://www.standardwebhooks.com).
"""

import base64
import binascii
import hmac
import json
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from ipaddress import AddressValueError, IPv6Address
from typing import NamedTuple

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.event import Event
from scheduler_app.domain.http_action import http_action
from scheduler_app.domain.instants import shown_instant
from scheduler_app.domain.message import Message
from scheduler_app.domain.schedule import Deliverable
from scheduler_app.version import __version__


class Request(NamedTuple):
    """One attempt's HTTP request.

    `key` is the event's id; it names the request in its `Response` and must be unique among those in flight.
    `method` is GET, POST, PUT, PATCH, DELETE or HEAD. `headers` are sent in this order, as they are
    (`headers_for` makes them). `body` None sends none; a HEAD never has one (RFC 9110 §9.3.2).
    `timeout_seconds` is for the whole answer, its body included; connecting may take the shorter of it
    and 5 s.
    """

    key: str
    url: str
    method: str
    headers: tuple[tuple[str, str], ...]
    body: bytes | None
    timeout_seconds: float

    def __repr__(self) -> str:
        # The rest may be secret, and a traceback may show it.
        return f"Request(key={self.key!r})"


MAX_URL = 8000
"""Characters; RFC 9110 §4.1 asks every party to support at least this."""

_UNSEEN = re.compile(r"[\x00-\x20\x7f-\x9f]")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_.-])?")


def check_url(url: str) -> None:
    """Refuse what no callback's URL can be; names and addresses are judged when the socket is opened.

    Raises InvalidField("callback_url", …). The rules are stricter than RFC 3986 wherever two parsers are
    known to disagree about the host, so that what a person reads is what libcurl connects to. A path or
    query may hold characters beyond ASCII; they are percent-encoded when sent.
    """
    if len(url) > MAX_URL:
        raise _invalid(f"must be at most {MAX_URL} characters")
    if _UNSEEN.search(url):
        raise _invalid("must not contain spaces or control characters; write a space as %20")
    scheme = _SCHEME.match(url)
    if scheme is None or not url.startswith("//", scheme.end()):
        raise _invalid("must be an absolute URL such as https://example.com/hook")
    if scheme[1].lower() not in ("http", "https"):
        raise _invalid(f"the scheme must be http or https, not {scheme[1]}")
    authority = re.split(r"[/?#]", url[scheme.end() + 2 :], maxsplit=1)[0]
    if "@" in authority:
        raise _invalid("must not contain a user or password; use an Authorization header")
    _check_authority(authority)


def port_of(url: str) -> int:
    """The port of a URL that `check_url` has passed."""
    scheme, _, rest = url.partition("://")
    port = re.split(r"[/?#]", rest, maxsplit=1)[0].rpartition("]")[2].partition(":")[2]
    return int(port) if port else 443 if scheme.lower() == "https" else 80


def _check_authority(authority: str) -> None:
    if authority.startswith("["):
        literal, closed, rest = authority[1:].partition("]")
        if not closed or (rest and not rest.startswith(":")):
            raise _invalid("the IPv6 address must be closed by ]")
        try:
            IPv6Address(literal)
        except AddressValueError:
            raise _invalid(f"[{literal}] is not an IPv6 address") from None
        if "%" in literal:
            raise _invalid("an IPv6 address must not have a zone")
        _check_port(rest)
        return
    host, colon, port = authority.partition(":")
    if not host:
        raise _invalid("a host is missing")
    if not host.isascii():
        raise _invalid(_ascii_remedy(host))
    if len(host) > 253 or not _HOST.fullmatch(host):
        raise _invalid(f"{host[:64]!r} is not a host name")
    _check_port(colon + port)


def _check_port(text: str) -> None:
    """`text` is "" or ":" and what follows it."""
    if text and not (
        text[1:].isascii() and text[1:].isdigit() and len(text) <= 6 and 1 <= int(text[1:]) <= 65535
    ):
        raise _invalid("the port must be a number from 1 to 65535")


def _ascii_remedy(host: str) -> str:
    try:
        return f"write the host in its ASCII form, {host.encode('idna').decode()}"
    except UnicodeError:
        return "write the host in its ASCII form (xn--…)"


def _invalid(message: str) -> InvalidField:
    return InvalidField("callback_url", message)


PREFIX = "whsec_"
SECRET_BYTES = (24, 64)


def new_secret() -> str:
    """A fresh signing secret: "whsec_" and the base64 of 32 random bytes."""
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def check_secret(secret: str) -> None:
    """Raises InvalidField("signing_secret", …) where `sign` could not use `secret`; never repeats it."""
    _mac(secret)


def sign(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """One signature, "v1,<base64>": HMAC-SHA256 with the secret's bytes over `id.timestamp.body`.

    `timestamp` is in seconds since 1970, as in `webhook-timestamp`. Raises InvalidField for an unusable
    secret.
    """
    mac = _mac(secret).copy()
    mac.update(f"{message_id}.{timestamp}.".encode())
    mac.update(body)
    return "v1," + base64.b64encode(mac.digest()).decode()


@lru_cache(maxsize=512)
def _mac(secret: str) -> hmac.HMAC:
    """The HMAC that has taken in the key; a signature continues a copy, which costs less than setting up."""
    try:
        key = (
            base64.b64decode(secret.removeprefix(PREFIX), validate=True) if secret.startswith(PREFIX) else b""
        )
    except (binascii.Error, ValueError):
        key = b""
    low, high = SECRET_BYTES
    if not low <= len(key) <= high:
        raise InvalidField("signing_secret", f"must be {PREFIX} and the base64 of {low} to {high} bytes")
    return hmac.new(key, digestmod="sha256")


USER_AGENT = f"RRule-Scheduler/{__version__}"

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")

# They belong to the connection and the framing of the message, which libcurl does (RFC 9110 §7.6.1, RFC 9112
# §6): two opinions on where a request ends are a smuggled second request.
CONNECTION_HEADERS = frozenset(
    (
        *("connection", "content-length", "expect", "keep-alive", "te", "trailer", "transfer-encoding"),
        *("proxy-authenticate", "proxy-authorization", "proxy-connection", "upgrade"),
    )
)

OUR_HEADERS = frozenset(
    (
        *("idempotency-key", "webhook-id", "webhook-signature", "webhook-timestamp"),
        "x-scheduler-attempt",
        "x-scheduler-completion-token",
        "x-scheduler-event-name",
        "x-scheduler-hops",
        "x-scheduler-run-time",
        "x-scheduler-schedule-id",
    )
)


def check_header(name: str, value: str) -> None:
    """Raises InvalidField("headers", …) for a header that must not be sent.

    The name must be a token (RFC 9110 §5.1) and none of the connection's own; the value must not hold control
    characters other than the tab: a line end would begin a header, or a request, of a stranger's making.
    """
    check_name(name)
    check_value(name, value)


def check_name(name: str) -> None:
    """`check_header`, for the name alone."""
    if not _TOKEN.fullmatch(name):
        raise InvalidField("headers", f"{name[:64]!r} is not the name of a header")
    if name.lower() in CONNECTION_HEADERS:
        raise InvalidField("headers", f"{name} belongs to the connection and cannot be set")


def check_value(name: str, value: str) -> None:
    """`check_header`, for the value alone; the message never repeats it, as it may be a secret."""
    if _CONTROL.search(value):
        raise InvalidField("headers", f"the value of {name} must not contain line ends or control characters")


def headers_for(
    *,
    event_id: str,
    schedule_id: str,
    event_name: str | None = None,
    run_time: datetime,
    attempt: int,
    now: datetime,
    user_headers: Mapping[str, str] | Iterable[tuple[str, str]],
    body: bytes | None,
    signing_secrets: Sequence[str] = (),
    hops: int = 0,
    completion_token: str | None = None,
) -> tuple[tuple[str, str], ...]:
    """The headers of one attempt: the user's, then ours.

    `Idempotency-Key` and `webhook-id` are the event's id, the same on every attempt. `webhook-timestamp` is
    `now` in whole seconds; `webhook-signature` (with secrets only) has one signature for each secret,
    separated by spaces, so that both ends can rotate (Standard Webhooks). `X-Scheduler-Attempt` counts
    from 1, `X-Scheduler-Run-Time` is the occurrence in UTC, `X-Scheduler-Schedule-Id` its schedule; a
    message has no schedule (an empty id), and perhaps an `X-Scheduler-Event-Name`.
    `X-Scheduler-Completion-Token` is what the receiver shows to say how its work went, where that is awaited.
    `X-Scheduler-Hops` is one more than `hops`, those of the request that made the event, so that a callback
    to an API of ours cannot go round for ever. Ours replace the user's of the same name, in any case of
    letters; a `User-Agent` is the user's where given.

    A body without the user's `Content-Type` gets application/json where it parses as JSON, text/plain in
    UTF-8 where it is that, otherwise application/octet-stream.

    `run_time` and `now` are aware. Raises InvalidField for an unusable secret.
    """
    pairs = user_headers.items() if isinstance(user_headers, Mapping) else user_headers
    headers: list[tuple[str, str]] = []
    typed = named = False
    for name, value in pairs:
        lower = name.lower()
        if lower in OUR_HEADERS:
            continue
        typed = typed or lower == "content-type"
        named = named or lower == "user-agent"
        headers.append((name, value))
    if body is not None and not typed:
        # A schedule's body is the same at each occurrence, and to parse a large one takes milliseconds of the
        # thread that all requests share; large ones are kept of a few only, for the memory.
        headers.append(("Content-Type", (_type_of if len(body) <= 1024 else _type_of_large)(body)))
    if not named:
        headers.append(("User-Agent", USER_AGENT))
    timestamp = int(now.timestamp())
    headers += (
        ("Idempotency-Key", event_id),
        ("webhook-id", event_id),
        ("webhook-timestamp", str(timestamp)),
        ("X-Scheduler-Attempt", str(attempt)),
        ("X-Scheduler-Hops", str(hops + 1)),
        ("X-Scheduler-Run-Time", _instant(run_time.astimezone(UTC))),
    )
    if schedule_id:
        headers.append(("X-Scheduler-Schedule-Id", schedule_id))
    if completion_token is not None:
        headers.append(("X-Scheduler-Completion-Token", completion_token))
    if event_name is not None:
        headers.append(("X-Scheduler-Event-Name", event_name))
    if signing_secrets:
        signatures = [sign(secret, event_id, timestamp, body or b"") for secret in signing_secrets]
        headers.append(("webhook-signature", " ".join(signatures)))
    return tuple(headers)


# Of UTC alone: two hours of a zone, where a clock is put back, are equal to a cache.
@lru_cache(maxsize=256)
def _instant(utc: datetime) -> str:
    return shown_instant(utc)


def _content_type(body: bytes) -> str:
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return "application/octet-stream"
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return "text/plain; charset=utf-8"
    return "application/json"


_type_of = lru_cache(maxsize=256)(_content_type)
_type_of_large = lru_cache(maxsize=16)(_content_type)


def request_of(event: Event, deliverable: Deliverable, now: datetime) -> Request:
    """Returns the request of an event's next attempt, which starts at `now` (UTC).

    Raises TypeError where the action is no HTTP request, InvalidField for an unusable secret.
    """
    action, signing = http_action(deliverable.action), deliverable.signing
    body = action.body.data if action.body else None
    return Request(
        key=event.id,
        url=action.url,
        method=action.method,
        headers=headers_for(
            event_id=event.id,
            schedule_id=event.schedule_id,
            event_name=event.message.event_name if isinstance(event.message, Message) else None,
            run_time=event.run_time,
            attempt=event.attempt + 1,
            now=now,
            user_headers=action.headers,
            body=body,
            hops=max(event.hops, deliverable.hops),
            completion_token=event.completion_token,
            signing_secrets=signing.secrets(now) if signing else (),
        ),
        body=body,
        timeout_seconds=deliverable.timeout_seconds,
    )

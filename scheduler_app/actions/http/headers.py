"""The headers of a callback: what the user wrote, and what we say about the attempt."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache

from scheduler_app.actions.http.signature import sign
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.instants import shown_instant
from scheduler_app.version import __version__

USER_AGENT = f"RRule-Scheduler/{__version__}"

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")

# They belong to the connection and the framing of the message, which libcurl does (RFC 9110 §7.6.1, RFC 9112
# §6): two opinions on where a request ends are a smuggled second request.
CONNECTION_HEADERS = frozenset(
    (
        "connection",
        "content-length",
        "expect",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    )
)

OUR_HEADERS = frozenset(
    (
        "idempotency-key",
        "webhook-id",
        "webhook-signature",
        "webhook-timestamp",
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

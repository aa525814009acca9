"""What a receiver answered, or why there is no answer; what that means for the event; and the masking of the
request's secrets in it.

A receiver may echo what it was sent, and an attempt's record is kept and shown long after. Secrets are found
as they are, and in the forms in which echoes bring them: in base64, percent-encoded, escaped as JSON or HTML.
"""

import binascii
import codecs
import html
import json
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote, quote_plus, unquote_plus

from scheduler_app.actions.kind import Outcome, Verdict
from scheduler_app.domain.http_action import HttpAction, http_action
from scheduler_app.domain.masking import MASK, Headers, is_secret, one_line, query_values
from scheduler_app.domain.schedule import Deliverable
from scheduler_app.telemetry import metrics

SNIPPET_BYTES = 1024


class Response(NamedTuple):
    """How one request ended.

    `status` is None when there was no whole answer; then `error` says why, in a clear sentence. An answer has
    no error, except that a redirect says where it was not followed to: judge by `status` first.
    `permanent` is True for what no retry can mend without an edit: a scheme that is not HTTP, a malformed URL
    or header. `retry_after` and `location` are the headers as received, without control characters. `snippet`
    is the first KiB of the body, on one line. `duration_ms` counts from the start of the transfer to its end.
    `ours` is True for what this worker's own settings refused: not the receiver's fault, and another worker
    may allow it.
    """

    key: str
    status: int | None
    error: str | None
    permanent: bool
    retry_after: str | None
    location: str | None
    snippet: str
    duration_ms: float
    ours: bool = False


def refused_response(key: str, error: str) -> Response:
    """The Response to a request that was never sent, because as it stands it never can be."""
    return Response(key, None, error, True, None, None, "", 0.0)


def snippet_of(body: bytes) -> str:
    """The first KiB of `body` for people to read: UTF-8 with U+FFFD for what is not, on one line."""
    cut = len(body) > SNIPPET_BYTES
    # Not final where it is cut: half a character at the cut is our doing, not the receiver's.
    text, _ = codecs.utf_8_decode(body[:SNIPPET_BYTES], "replace", not cut)
    return one_line(text)


def parse_retry_after(value: str, now: datetime) -> float | None:
    """Seconds (≥ 0) from `now` (aware) that a receiver asks us to wait, or None if `value` is unusable.

    RFC 9110 §10.2.3: a whole number of seconds, or an HTTP-date in any of its three forms (§5.6.7). A date in
    the past is 0. How long a wait is worth obeying is the caller's to judge: the number may be huge.
    """
    value = value.strip()
    if value.isascii() and value.isdigit():
        # Enough for 300,000 years; more digits are an attack on int(), not a wish.
        return float(value) if len(value) <= 13 else None
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max(0.0, (date - now).total_seconds())


#: Shorter values do not count as secrets: they stand in any text.
MIN_CHARACTERS = 4
MIN_BODY_CHARACTERS = 6
#: The most values of a body that are masked.
MAX_BODY_VALUES = 500
#: No longer piece of a value can stand in what is kept of an answer.
MAX_PIECE = 4 * SNIPPET_BYTES
#: The values of larger bodies are kept of a few requests only: they take a hundred times the memory.
LARGE_BODY_BYTES = 4 * 1024
LARGE_BODIES_KEPT = 16

_BASE64_RUN = re.compile(r"[A-Za-z0-9+/_-]{8,}")
_URL_SAFE = str.maketrans("+/", "-_")
_STANDARD = str.maketrans("-_", "+/")


def redacted(answer: Response, action: HttpAction, completion_token: str | None = None) -> Response:
    """The answer without the secrets of the request it answers, `completion_token` among them; the very same
    where there are none in it."""
    snippet, error, location = answer.snippet, answer.error or "", answer.location or ""
    if len(snippet) < MIN_CHARACTERS and not error and not location:
        return answer
    values = _values_of(action)
    if completion_token is not None:
        values = (*values, completion_token)
    if not values:
        return answer
    return answer._replace(
        snippet=_without(snippet, values),
        error=_without(error, values) if answer.error else answer.error,
        location=_without(location, values) if answer.location else answer.location,
    )


def _without(text: str, values: tuple[str, ...]) -> str:
    # To decode the little that came back is cheaper than to encode all that was sent.
    if found := _found(text, values):
        forms = {one_line(form) for value in found for form in _encoded(value)}
        for form in sorted(forms, key=len, reverse=True):
            text = text.replace(form, MASK)
        if _found(text, found):
            return MASK  # it is there in a form that we can read, and cannot write
    # Only such a text may have been cut: to KiB, of at most four bytes a character.
    return _without_cut_end(text, values) if len(text) >= SNIPPET_BYTES // 4 else text


def _found(text: str, values: Sequence[str]) -> list[str]:
    views = tuple(_views(text))
    return [value for value in values if any(value in view for view in views)]


def _views(text: str) -> Iterator[str]:
    """The text as it is, and as it is once decoded from what it seems to be in."""
    yield text
    if "%" in text or "+" in text:
        yield unquote_plus(text)
    if "&" in text:
        yield html.unescape(text)
    if "\\" in text:
        yield _ESCAPE.sub(_unescaped, text)
    yield from map(_from_base64, _BASE64_RUN.findall(text))


_ESCAPE = re.compile(r'\\(?:u[0-9a-fA-F]{4}|["\\/])')


def _unescaped(found: re.Match[str]) -> str:
    escape = found[0]
    return chr(int(escape[2:], 16)) if escape[1] == "u" else escape[1]


def _from_base64(run: str) -> str:
    whole = len(run) - (len(run) % 4 == 1)
    run = run[:whole].translate(_STANDARD)
    return binascii.a2b_base64(run + "=" * (-whole % 4)).decode("utf-8", "replace")


def _without_cut_end(text: str, values: tuple[str, ...]) -> str:
    """Without the beginning of a secret that the end of the text cuts off."""
    for value in values:
        start = text.find(value[:MIN_CHARACTERS], max(0, len(text) - len(value) + 1))
        while start >= 0:
            if value.startswith(text[start:]):
                return text[:start] + MASK
            start = text.find(value[:MIN_CHARACTERS], start + 1)
    return text


def _values_of(action: HttpAction) -> tuple[str, ...]:
    body = action.body.data if action.body else b""
    # A schedule's request is the same at each occurrence.
    values = _values if len(body) <= LARGE_BODY_BYTES else _values_of_large
    return values(action.headers, action.url, body)


def _all_values(headers: Headers, url: str, body: bytes) -> tuple[str, ...]:
    """All that is to be looked for. The courier waits for it: what it takes is bounded."""
    return tuple(dict.fromkeys(one_line(value[:MAX_PIECE]) for value in _secrets(headers, url, body)))


_values = lru_cache(maxsize=1024)(_all_values)
_values_of_large = lru_cache(maxsize=LARGE_BODIES_KEPT)(_all_values)


def _secrets(headers: Headers, url: str, body: bytes) -> Iterator[str]:
    for name, value in headers:
        if is_secret(name):
            yield from _of_header(value)
    for value in query_values(url):
        yield from _worth(MIN_CHARACTERS, value, unquote_plus(value))
    yield from _worth(MIN_BODY_CHARACTERS, *_of_body(body))


def _worth(least: int, *values: str) -> Iterator[str]:
    return (value for value in values if len(value) >= least)


def _of_header(value: str) -> Iterator[str]:
    """The value, and what of it is a secret by itself: credentials after their scheme, cookies by name."""
    parts = [value]
    scheme, _, credentials = value.partition(" ")
    parts.append(credentials.strip())
    if scheme.lower() == "basic":
        try:
            pair = b64decode(credentials, validate=True).decode()
        except (binascii.Error, ValueError):
            pair = ""
        parts += [pair, pair.partition(":")[2]]
    if ";" in value:
        parts += [cookie.partition("=")[2].strip() for cookie in value.split(";")]
    return _worth(MIN_CHARACTERS, *parts)


def _of_body(body: bytes) -> Iterator[str]:
    if not body:
        return
    text = body.decode("utf-8", "replace")
    yield text
    yield b64encode(body[:MAX_PIECE]).decode()
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        pairs = text.split("&", MAX_BODY_VALUES)[:MAX_BODY_VALUES]
        lines = text.split("\n", MAX_BODY_VALUES)[:MAX_BODY_VALUES]
        parsed = [unquote_plus(pair.partition("=")[2][:MAX_PIECE]) for pair in pairs]
        parsed += [line.rstrip("\r") for line in lines]
    for number, value in enumerate(_leaves(parsed)):
        if number == MAX_BODY_VALUES:
            return
        yield value


def _leaves(value: Any) -> Iterator[str]:
    """Texts and numbers in a JSON value, at all depths."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            waiting += reversed(each.values())
        elif isinstance(each, list):
            waiting += reversed(each)
        elif isinstance(each, str | int | float) and not isinstance(each, bool):
            yield str(each)


def _encoded(value: str) -> Iterator[str]:
    """A value in the forms in which an echo may bring it."""
    data = value.encode("utf-8", "surrogatepass")
    yield value
    yield from (quote(data), quote(data, safe=""), quote_plus(data), html.escape(value))
    yield from (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1])
    for offset in range(3):
        # As a part of something longer: without the characters that depend on the bytes before and after.
        encoded = b64encode(bytes(offset) + data).decode()
        inner = encoded[-(-offset * 8 // 6) : (offset + len(data)) * 8 // 6]
        yield from (inner, inner.translate(_URL_SAFE))


def verdict_of(
    response: Response,
    deliverable: Deliverable,
    started_at: datetime,
    *,
    completion_token: str | None = None,
) -> Verdict:
    """Judges the response to an attempt that began at `started_at` by the status codes of what asked for it.

    Secrets of the request that the receiver echoed are masked.
    """
    response = redacted(response, http_action(deliverable.action), completion_token)
    key, status, error = response.key, response.status, response.error
    snippet, duration_ms = response.snippet, response.duration_ms
    if status is not None and status in deliverable.success:
        return Verdict(key, Outcome.SUCCESS, status, error, snippet, duration_ms)
    reason = error or f"HTTP {status}"
    if response.ours:  # and therefore not permanent: a worker with other settings may allow it
        metrics.refused.inc()
    if response.permanent or (status is not None and status not in deliverable.retry.codes):
        return Verdict(key, Outcome.PERMANENT, status, error, snippet, duration_ms, reason)
    retry_after = None
    if response.retry_after:
        ended_at = started_at + timedelta(milliseconds=int(duration_ms))
        retry_after = parse_retry_after(response.retry_after, ended_at)
    return Verdict(key, Outcome.RETRY, status, error, snippet, duration_ms, reason, retry_after)

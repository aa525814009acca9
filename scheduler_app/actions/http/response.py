"""The end of a request: what the receiver answered, or why there is no answer."""

import codecs
from typing import NamedTuple

from scheduler_app.domain.text import one_line

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


def refused(key: str, error: str) -> Response:
    """The Response to a request that was never sent, because as it stands it never can be."""
    return Response(key, None, error, True, None, None, "", 0.0)


def snippet_of(body: bytes) -> str:
    """The first KiB of `body` for people to read: UTF-8 with U+FFFD for what is not, on one line."""
    cut = len(body) > SNIPPET_BYTES
    # Not final where it is cut: half a character at the cut is our doing, not the receiver's.
    text, _ = codecs.utf_8_decode(body[:SNIPPET_BYTES], "replace", not cut)
    return one_line(text)

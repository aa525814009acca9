"""For documents that are read again and again: an unchanged one is decoded once, and a corrupt one is logged
once.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final, Generic, TypeVar

import bson
from bson.codec_options import CodecOptions

from scheduler_app.store.mongo import Document
from scheduler_app.telemetry import get_logger

Decoded = TypeVar("Decoded")

#: As many as have an event each second where a worker's machine is busy with them: fewer would be pushed out
#: in turn before they come again.
CACHED_DOCUMENTS = 4_000
#: Larger documents are mostly a callback's body, and not worth the memory.
MAX_CACHED_BYTES = 4 * 1024


class DecodedCache(Generic[Decoded]):
    """What `read` makes of a document, which must depend on nothing but the document.

    Each batch reads the schedules of its events, the same ones time and again, and decoding one costs
    several times what fetching its bytes does. Thread-safe.
    """

    def __init__(self, read: Callable[[Document], Decoded], options: CodecOptions[Document]) -> None:
        def decoded(raw: bytes) -> Decoded:
            return read(bson.decode(raw, options))

        self._decoded = decoded
        self._kept = lru_cache(maxsize=CACHED_DOCUMENTS)(decoded)

    def of(self, raw: bytes) -> Decoded:
        """The reading of a document's BSON."""
        return self._kept(raw) if len(raw) <= MAX_CACHED_BYTES else self._decoded(raw)


log = get_logger(__name__)

#: With more of them it forgets all, and may repeat a report.
MOST_REMEMBERED: Final = 1_000


class CorruptReports:
    """One for each collection of a process. `event` is the log event, `message` what it means; `field` names
    the document in the line."""

    def __init__(self, event: str, message: str, field: str) -> None:
        self._event, self._message, self._field = event, message, field
        self._reported: set[tuple[str, str]] = set()

    def report(self, name: str, reason: str) -> None:
        """Logs it, unless it was logged for the same reason."""
        if (name, reason) in self._reported:
            return
        if len(self._reported) >= MOST_REMEMBERED:
            self._reported.clear()
        self._reported.add((name, reason))
        log.error(self._event, message=self._message, reason=reason, **{self._field: name[:200]})

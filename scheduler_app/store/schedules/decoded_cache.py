"""Caches decoded schedules by the bytes of their documents: an unchanged document is decoded once."""

from collections.abc import Callable
from functools import lru_cache
from typing import Generic, TypeVar

import bson
from bson.codec_options import CodecOptions

from scheduler_app.store.mongo import Document

Reading = TypeVar("Reading")

#: As many as have an event each second where a worker's machine is busy with them: fewer would be pushed out
#: in turn before they come again.
KEPT = 4_000
#: Larger documents are mostly a callback's body, and not worth the memory.
KEPT_BYTES = 4 * 1024


class DecodedCache(Generic[Reading]):
    """What `read` makes of a document, which must depend on nothing but the document.

    Each batch reads the schedules of its events, the same ones time and again, and decoding one costs
    several times what fetching its bytes does. Thread-safe.
    """

    def __init__(self, read: Callable[[Document], Reading], options: CodecOptions[Document]) -> None:
        def decoded(raw: bytes) -> Reading:
            return read(bson.decode(raw, options))

        self._decoded = decoded
        self._kept = lru_cache(maxsize=KEPT)(decoded)

    def of(self, raw: bytes) -> Reading:
        """The reading of a document's BSON."""
        return self._kept(raw) if len(raw) <= KEPT_BYTES else self._decoded(raw)

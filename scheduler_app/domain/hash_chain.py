"""Lines of which each has the hash of the line before: one that was changed, removed or moved afterwards no
longer fits the next."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from scheduler_app.domain.instants import shown_instant

#: The hash that the first line of a chain names.
BEGINNING: Final = "0" * 64


@dataclass(frozen=True, slots=True)
class Link:
    """What a line has of its chain."""

    number: int
    """Its place, from 1."""
    previous: str
    """The hash of the line before."""
    hash: str
    """As it was written with the line."""
    digest: str
    """As it follows from what the line says now."""
    of: str
    """What tells people which line it is."""


@dataclass(frozen=True, slots=True)
class Verification:
    """How far a chain is as it was written."""

    lines: int
    """How many lines were read, in order, up to the end or to the first that is wrong."""
    wrong: str | None = None
    """What is wrong with the next line; None where nothing is."""


def digest(said: Mapping[str, Any]) -> str:
    """SHA-256 of what a line says, the hash before it included, as 64 hexadecimal digits."""
    return hashlib.sha256(_as_json(said).encode()).hexdigest()


def _as_text(value: object) -> str:
    return shown_instant(value) if isinstance(value, datetime) else str(value)


_as_json: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=_as_text).encode


def verify(links: Iterable[Link], *, first: Link | None = None) -> Verification:
    """Reads lines in their order; `first` is the one before them. Where the retention removed some, the
    oldest that is left names a line that nobody has."""
    previous, number, read = (first.hash, first.number, 0) if first else (None, None, 0)
    for link in links:
        if link.digest != link.hash:
            return Verification(read, f"line {link.number} ({link.of}) was changed")
        if number is not None and link.number != number + 1:
            return Verification(read, f"line {number + 1} is missing: {link.number} follows {number}")
        if previous is not None and link.previous != previous:
            return Verification(read, f"line {link.number} does not follow the line before it")
        if previous is None and link.number == 1 and link.previous != BEGINNING:
            return Verification(read, "line 1 names a line before it")
        previous, number, read = link.hash, link.number, read + 1
    return Verification(read)

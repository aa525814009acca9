"""Replaces what differs from run to run by placeholders, numbered by order of appearance.

The clock of the product is held in 2040, so that its times are literal. What mongod's own clock gives lies
within days of the real time, and is replaced.
"""

import base64
import re
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from typing import Final

import bson
from bson.errors import BSONError
from cryptography.fernet import Fernet

#: How far from the real time a time may lie that mongod's clock or this host's has given.
NEAR: Final = timedelta(days=3)

_TIME: Final = re.compile(r"\b(20\d\d-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:?\d\d)?")
#: What a kind of value looks like; the first group is the value, where something stands around it.
_DRAWN: Final = (
    ("process", re.compile(r"\bgen\d+@[\w.-]+")),
    ("claim", re.compile(r'"(?:claim|dispatcher|redrive|token)": "([0-9a-f]{16})"')),
    # The key of a cause follows from its receiver, whose port is drawn.
    ("key", re.compile(r"(?<![0-9a-zA-Z])([0-9a-f]{16})(?![0-9a-zA-Z])")),
    ("backfill", re.compile(r'(?:-backfill|"number": ")([0-9a-f]{8})(?=[-"])')),
    ("uuid", re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")),
    ("signing secret", re.compile(r"\bwhsec_([A-Za-z0-9+/]{43}=)")),
    ("signature", re.compile(r"\bv1,([A-Za-z0-9+/]{43}=)")),
    ("key's secret", re.compile(r"\brrs_<id of [a-z ]*>_([0-9A-Za-z]{38})")),
    ("form token", re.compile(r'(?:value="|form_token=)([0-9a-f]{64})\b')),
    ("once", re.compile(r'name="once" value="([0-9a-f]{32})"')),
    ("page", re.compile(r'ETag: W/"([0-9a-f]{32})"')),
    ("session", re.compile(r'"_id": "([0-9a-f]{64})"')),
    ("digest", re.compile(r'(?:"(?:secret|previous)_sha256": |\n +)"([0-9a-f]{64})"')),
    # Of a schedule it depends on the id of its last event.
    ("ETag", re.compile(r'"\d+-([0-9a-f]{8})"')),
    ("hex", re.compile(r"(?<![0-9a-zA-Z])(?<!ETag: \")(?<!If-None-Match: \")[0-9a-f]{24}(?![0-9a-zA-Z])")),
    (
        "token",
        re.compile(
            r"(?i:completion-token: |scheduler_(?:visitor|session)=|<hex \d+>\.|/ping/[\w-]+\.)"
            r"([\w-]{32,43})(?![\w-])"
        ),
    ),
)
#: Werkzeug takes the methods of a path from a set.
_METHODS: Final = re.compile(r"\b(?:(?:GET|HEAD|OPTIONS|POST|PUT|PATCH|DELETE)(?:, |\b)){2,}")
#: When a cookie ends, and when Redis was told of an answer.
_BY_ANOTHER_CLOCK: Final = re.compile(r'(; Expires=|class="answer" title=")[^";]*')
#: Redis fills them up by its own clock.
_TOKENS: Final = re.compile(r'("tokens": )[0-9.]+')
#: Each request that may change something has an id, and each line of the audit follows from ids.
_REQUEST: Final = re.compile(r'(X-Request-Id: |"request_id": "|"request_id":")[0-9a-f]{16}')
_HASH: Final = re.compile(r'("(?:hash|previous|last_hash)": ?"|has the hash )[0-9a-f]{64}')
_SEALED: Final = re.compile(r"\bgAAAA[\w-]+=*")
#: Attempts at once, in a request, take their time.
_TAKEN: Final = re.compile(r'("duration_ms": |\bduration_ms +)(?!0\.0\b)[0-9.]+')
#: Two events of this schedule fail at one instant; the failure names the one that was written last.
_FAILED_TOGETHER: Final = re.compile(r'("event_id": "markup-manual-)[0-9a-f]{24}')
_CURSOR: Final = re.compile(r'("next_cursor": ")([\w-]+)"')


class Steady:
    """Makes texts of one run comparable with those of another."""

    def __init__(self, key: bytes, *, first: int = 1) -> None:
        """What is sealed with the Fernet `key` is opened. `first` is the number of the first placeholder."""
        self._fernet, self._first = Fernet(key), first
        self._began = datetime.now(UTC)
        self._literal: dict[str, str] = {}
        self._numbers: defaultdict[str, dict[str, str]] = defaultdict(dict)
        self.name(version("rrule-scheduler"), "<version>")
        self.name(version("tzdata"), "<tzdata version>")
        self.name(f'"holiday_data": "{version("holidays")}"', '"holiday_data": "<holidays version>"')

    def name(self, text: str, placeholder: str) -> None:
        """From now on `placeholder` stands for `text`, such as a server's port."""
        self._literal[text] = placeholder

    def filled(self, text: str) -> str:
        """The text with the values for which placeholders stand, as far as they have names."""
        for literal, placeholder in self._literal.items():
            text = text.replace(placeholder, literal)
        return text

    def __call__(self, text: str) -> str:
        text = _SEALED.sub(self._opened, text)
        for literal in sorted(self._literal, key=len, reverse=True):
            text = text.replace(literal, self._literal[literal])
        text = _CURSOR.sub(_cursor, text)
        text = _BY_ANOTHER_CLOCK.sub(r"\1<time>", text)
        text = _TOKENS.sub(r"\1<tokens left>", text)
        text = _TAKEN.sub(r"\1<time taken>", text)
        text = _TIME.sub(self._time, text)
        text = _REQUEST.sub(r"\1<request>", text)
        text = _FAILED_TOGETHER.sub(r"\1<one of two>", text)
        text = _HASH.sub(r"\1<hash>", text)
        for kind, pattern in _DRAWN:
            text = pattern.sub(self._numbered(kind), text)
        return _METHODS.sub(lambda found: ", ".join(sorted(found[0].split(", "))), text)

    def _opened(self, found: re.Match[str]) -> str:
        data = self._fernet.decrypt(found[0])
        try:
            return f"<sealed: {bson.decode(data)}>"
        except BSONError:  # a text that a release before 0.2 sealed by itself
            return f"<sealed alone: {data.decode()}>"

    def _time(self, found: re.Match[str]) -> str:
        at = datetime.fromisoformat(f"{found[1]}T{found[2]}+00:00")
        return "<real time>" if abs(at - self._began) < NEAR else found[0]

    def _numbered(self, kind: str) -> Callable[[re.Match[str]], str]:
        seen = self._numbers[kind]

        def replaced(found: re.Match[str]) -> str:
            group = 1 if found.lastindex else 0
            value = seen.setdefault(found[group], f"<{kind} {len(seen) + self._first}>")
            start, end = found.start(group) - found.start(), found.end(group) - found.start()
            return found[0][:start] + value + found[0][end:]

        return replaced


def _cursor(found: re.Match[str]) -> str:
    """What a cursor says, which may be an id that was drawn."""
    padded = found[2] + "=" * (-len(found[2]) % 4)
    return f'{found[1]}<cursor of {base64.urlsafe_b64decode(padded).decode()}>"'

"""Checks messages before Celery trusts them. One that breaks a rule is dropped, counted and logged.

Anybody who can write to Redis can put anything into the queue. MongoDB is the truth and a message only a
doorbell: dropping one costs an event that was meant a recovery of 10 s; an exception costs the worker, and
each that starts after it. Reasons are few and fixed, since they label a metric.
"""

import threading
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from scheduler_app.clock import clock, monotonic
from scheduler_app.config import VISIBILITY_TIMEOUT_SECONDS
from scheduler_app.telemetry import get_logger, metrics

log = get_logger(__name__)

MESSAGE_VERSION = 1
#: A full batch of ours has some 30 KB, the longest that is possible 200 KB.
MAX_MESSAGE_BYTES = 2**20
#: Ours have 100 at most; the rest is room for another release.
MAX_IDS = 1_000
MAX_ID_LENGTH = 1_024
MAX_TASK_ID_LENGTH = 255
HEAD_LENGTH = 200
#: Lines a minute for each reason; what comes beyond is counted only. The queue may be full of it.
LINES_A_MINUTE = 20

_MISSING = type(None)
_NUMBERS = frozenset((int, float, _MISSING))
#: What Celery takes for granted of headers, some of it in a pool's thread, where an exception is lost and the
#: message with it never acknowledged. Exact types: True is not a number of retries.
_HEADERS: tuple[tuple[str, tuple[type, ...]], ...] = (
    *((name, (str,)) for name in ("task", "id")),
    *((name, (int, _MISSING)) for name in ("retries", "replaced_task_nesting")),
    *((name, (list, _MISSING)) for name in ("timelimit", "stamped_headers")),
    ("stamps", (dict, _MISSING)),
    ("ignore_result", (bool, _MISSING)),
    *(
        (name, (str, _MISSING))
        for name in (
            *("eta", "expires", "group", "shadow", "root_id", "parent_id"),
            *("argsrepr", "kwargsrepr", "origin"),
        )
    ),
)


class Malformed(Exception):
    """A message that no release of ours has sent. `reason` labels a metric, so it is one of a few words;
    `detail` is a sentence."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def check_headers(headers: Mapping[str, Any]) -> None:
    """What Celery takes for granted of a task's headers. Raises Malformed."""
    for name, types in _HEADERS:
        found = type(headers.get(name))
        if found not in types:
            raise Malformed("headers", f"its header {name} is {found.__name__}")
    require(0 < len(headers["id"]) <= MAX_TASK_ID_LENGTH, "headers", "its id is empty or too long")
    limits = headers.get("timelimit")
    if limits and (len(limits) != 2 or not _NUMBERS.issuperset(map(type, limits))):
        raise Malformed("headers", "its time limits are not two numbers")


def check_eta(eta: str | None) -> None:
    """An eta beyond the visibility timeout would be delivered again and again, and held for ever.

    Raises Malformed.
    """
    if eta is None:
        return
    try:
        ahead = datetime.fromisoformat(eta) - clock.now()
    except (ValueError, TypeError):  # TypeError: without an offset
        raise Malformed("headers", "its eta is no instant") from None
    require(ahead < timedelta(seconds=VISIBILITY_TIMEOUT_SECONDS), "headers", "its eta is too far ahead")


def check_body(body: Any) -> tuple[Any, Any]:
    """The arguments, positional and by name, of a task's decoded body. Raises Malformed."""
    require(isinstance(body, (list, tuple)) and len(body) == 3, "arguments", "its body has not three parts")
    args, kwargs, embed = body
    require(isinstance(args, (list, tuple)), "arguments", "its positional arguments are no list")
    require(isinstance(kwargs, dict), "arguments", "its named arguments are no map")
    require(isinstance(embed, (dict, _MISSING)), "arguments", "the third part of its body is no map")
    return args, kwargs


def check_deliver(args: Any, kwargs: Mapping[str, Any]) -> None:
    """What the task `deliver` is called with. Raises Malformed."""
    version, ids = kwargs.get("v"), kwargs.get("ids")
    require(type(version) is int, "arguments", "it has no version")
    # A newer release published it; recovery brings its events back, and a newer worker takes them.
    require(version == MESSAGE_VERSION, "version", "it is of another version")
    require(not args and kwargs.keys() == {"v", "ids"}, "arguments", "it has other arguments than v and ids")
    if not isinstance(ids, list) or len(ids) > MAX_IDS:
        raise Malformed("arguments", f"its ids are no list of at most {MAX_IDS}")
    if ids and (set(map(type, ids)) != {str} or max(map(len, ids)) > MAX_ID_LENGTH):
        raise Malformed("arguments", f"its ids are not text of at most {MAX_ID_LENGTH} characters")


def require(holds: bool, reason: str, detail: str) -> None:
    """Raises Malformed unless `holds`."""
    if not holds:
        raise Malformed(reason, detail)


class _Lines:
    """Bounds the lines of a minute by reason. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._since = monotonic()
        self._written: Counter[str] = Counter()

    def room(self, reason: str) -> bool:
        with self._lock:
            if monotonic() - self._since > 60:
                self._since = monotonic()
                self._written.clear()
            self._written[reason] += 1
            return self._written[reason] <= LINES_A_MINUTE


_lines = _Lines()


def note_dropped(error: Malformed, head: object) -> None:
    """Counts a message that is dropped, and logs how it begins: `head` is it, or what is known of it."""
    metrics.dropped.labels(error.reason).inc()
    if _lines.room(error.reason):
        log.warning(
            "message.dropped",
            message="A message that is not ours was dropped from the queue",
            reason=error.reason,
            detail=error.detail,
            head=_head(head),
        )


def _head(found: object) -> str:
    """The first characters, escaped: control characters of a stranger's are not for a terminal."""
    if isinstance(found, bytes | str):
        return ascii(found[:HEAD_LENGTH])[:HEAD_LENGTH]
    return ascii(found)[:HEAD_LENGTH]

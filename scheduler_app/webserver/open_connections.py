"""The connections of a process: their number and memory are bounded, and the least active ones make room."""

import resource
from collections import Counter
from collections.abc import Iterator
from typing import Literal

from scheduler_app.telemetry import get_logger
from scheduler_app.webserver.connection import Connection, Phase
from scheduler_app.webserver.limits import MAX_BUFFERED_BYTES, SLOW_BYTES

log = get_logger(__name__)

_LOG_SECONDS = 10.0
#: Files that a process needs beside connections: MongoDB, Redis, logs, metrics.
_OTHER_FILES = 128
#: The phases in which a connection may be closed when the process is full: all that wait for the client.
_EXPENDABLE = (Phase.LINGER, Phase.IDLE, Phase.HEADER, Phase.BODY, Phase.ANSWER)

#: Why a connection was closed: its client was too slow, it made room for others, or there was no room.
Reason = Literal["too_slow", "evicted", "refused"]


class OpenConnections:
    """The set of open connections. It chooses which ones have to close; the worker closes them."""

    def __init__(self, wanted: int) -> None:
        """`wanted` is the largest number, unless the process may open fewer files."""
        self._most = _most_connections(wanted)
        self._connections: set[Connection] = set()
        self._held_bytes = 0
        self._closed: Counter[Reason] = Counter()
        self._next_log = 0.0

    def __contains__(self, connection: Connection) -> bool:
        return connection in self._connections

    def __len__(self) -> int:
        return len(self._connections)

    def __iter__(self) -> Iterator[Connection]:
        return iter(list(self._connections))

    @property
    def is_overfull(self) -> bool:
        return len(self._connections) > self._most

    def add(self, connection: Connection) -> None:
        self._connections.add(connection)

    def discard(self, connection: Connection) -> None:
        """Forgets a connection, and the bytes that are counted for it."""
        if connection in self._connections:
            self._connections.remove(connection)
            self._held_bytes -= connection.charged

    def in_phases(self, *phases: Phase) -> list[Connection]:
        return [connection for connection in self._connections if connection.phase in phases]

    def least_active(self, newest: Connection | None = None) -> Connection | None:
        """Returns the connection whose client has made no progress for the longest time; None when all
        requests are being answered. An honest client sends its request at once, so it is not the oldest."""
        waiting = [each for each in self.in_phases(*_EXPENDABLE) if each is not newest]
        return min(waiting, key=_last_progress, default=None)

    def charge(self, connection: Connection) -> None:
        """Counts the bytes that a connection holds now."""
        held = connection.held_bytes
        self._held_bytes += held - connection.charged
        connection.charged = held

    def slowest_holder(self, spared: Connection) -> Connection | None:
        """While all of them hold too much memory: the slowest other one that holds a good part of it."""
        if self._held_bytes <= MAX_BUFFERED_BYTES:
            return None
        holders = self.in_phases(Phase.BODY, Phase.ANSWER)
        slow = [each for each in holders if each is not spared and each.charged >= SLOW_BYTES]
        return min(slow, key=_last_progress, default=None)

    def count_closed(self, reason: Reason) -> None:
        self._closed[reason] += 1

    def log_closed(self, now: float) -> None:
        """Logs how many were closed and why, every 10 s at most."""
        if self._closed.total() and now >= self._next_log:
            self._next_log = now + _LOG_SECONDS
            log.warning(
                "api.slow_clients",
                message="Connections were closed: their clients were too slow, or there were too many",
                open=len(self._connections),
                **{str(reason): count for reason, count in self._closed.items()},
            )
            self._closed.clear()


def _last_progress(connection: Connection) -> float:
    return connection.since


def _most_connections(wanted: int) -> int:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(1, min(wanted, files - _OTHER_FILES) if files != resource.RLIM_INFINITY else wanted)

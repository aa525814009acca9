"""The only place that reads the time.

*Due* is judged by `now`: the local clock plus its measured offset to mongod, so that every process of a
fleet agrees on it. Leases are not judged here but by mongod itself (`$$NOW`).
"""

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

RESYNC_SECONDS = 10.0
WARN_OFFSET_SECONDS = 1.0
SERVER_RESOLUTION = timedelta(milliseconds=1)


class Clock:
    """Local time corrected by the offset to mongod. Thread-safe: the offset is one reference."""

    def __init__(self) -> None:
        self._offset = timedelta(0)
        self._measured_at: float | None = None
        self._lock = threading.Lock()

    def now(self) -> datetime:
        """The time in UTC by mongod's clock, in whole milliseconds (BSON keeps no more)."""
        moment = datetime.now(UTC) + self._offset
        return moment.replace(microsecond=moment.microsecond // 1000 * 1000)

    @property
    def offset_seconds(self) -> float:
        """mongod's clock minus ours, in seconds."""
        return self._offset.total_seconds()

    def synchronize(self, read_server_time: Callable[[], datetime]) -> float:
        """Measures the offset by `read_server_time` (aware, in whole milliseconds); returns seconds.

        The true offset lies between the answer minus the end, and the answer plus its resolution minus the
        start. Zero is kept while it is possible: two processes on one machine then agree exactly.
        """
        started = datetime.now(UTC)
        server = read_server_time()
        ended = datetime.now(UTC)
        low, high = server - ended, server + SERVER_RESOLUTION - started
        with self._lock:
            self._offset = timedelta(0) if low <= timedelta(0) <= high else low + (high - low) / 2
            self._measured_at = time.monotonic()
        return self.offset_seconds

    def stale(self) -> bool:
        """Whether it is time to measure again."""
        measured = self._measured_at
        return measured is None or time.monotonic() - measured > RESYNC_SECONDS


clock = Clock()


def monotonic() -> float:
    """Seconds for durations; it never jumps."""
    return time.monotonic()

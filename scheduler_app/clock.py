"""The only place that reads the time.

*Due* is judged by `now`: the local clock plus its measured offset to mongod, so that every process of a
fleet agrees on it. Leases are not judged here but by mongod itself (`$$NOW`).
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

RESYNC_SECONDS = 10.0
WARN_OFFSET_SECONDS = 1.0
SERVER_RESOLUTION = timedelta(milliseconds=1)
#: A quick answer tells more than a late one: the best of so many measurements counts.
KEPT_SAMPLES = 8


@dataclass(frozen=True, slots=True)
class Sample:
    """The bounds between which mongod's clock minus ours must lie."""

    low: timedelta
    high: timedelta

    @property
    def width(self) -> timedelta:
        return self.high - self.low

    def disagrees_with(self, other: "Sample") -> bool:
        """Whether no offset fits both: one of the clocks was set meanwhile."""
        return self.low > other.high or other.low > self.high


class Clock:
    """Local time corrected by the offset to mongod. Thread-safe: the offset is one reference."""

    def __init__(self) -> None:
        self._offset = timedelta(0)
        self._samples: deque[Sample] = deque(maxlen=KEPT_SAMPLES)
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
        start. Zero is kept while it is possible: two processes on one machine then agree exactly. Otherwise
        the lower bound of the narrowest measurement counts: a guess in the middle could be ahead of mongod's
        clock, and a callback early.
        """
        started = datetime.now(UTC)
        server = read_server_time()
        ended = datetime.now(UTC)
        sample = Sample(server - ended, server + SERVER_RESOLUTION - started)
        with self._lock:
            if any(sample.disagrees_with(other) for other in self._samples):
                self._samples.clear()
            self._samples.append(sample)
            best = min(self._samples, key=lambda each: each.width)
            self._offset = timedelta(0) if best.low <= timedelta(0) <= best.high else best.low
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

"""Measures how often something happened in the last seconds."""

WINDOW_SECONDS = 10


class Rate:
    """Counts by the second, over a window. Not thread-safe."""

    __slots__ = ("_counts", "_first", "_second", "_total")

    def __init__(self) -> None:
        self._counts = [0] * WINDOW_SECONDS
        self._second = 0
        self._first: float | None = None
        self._total = 0

    def count(self, now: float) -> None:
        """Counts one more at the monotonic time `now`."""
        if now >= self._second + 1:  # mostly it is the second of the last one
            self._advance(now)
        if self._first is None:
            self._first = now
        self._counts[self._second % WINDOW_SECONDS] += 1
        self._total += 1

    def per_second(self, now: float) -> float:
        """The mean over the window, or over the time since the first one when that is less."""
        self._advance(now)
        if not self._total or self._first is None:
            return 0.0
        return self._total / min(WINDOW_SECONDS, max(1.0, now - self._first))

    def _advance(self, now: float) -> None:
        second = int(now)
        if second <= self._second:
            return
        for each in range(max(self._second + 1, second - WINDOW_SECONDS + 1), second + 1):
            self._total -= self._counts[each % WINDOW_SECONDS]
            self._counts[each % WINDOW_SECONDS] = 0
        self._second = second
        if not self._total:
            self._first = None

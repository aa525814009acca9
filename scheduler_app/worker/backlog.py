"""Counts outcomes that are known and not yet written to MongoDB."""

import threading
from collections import deque

#: Beyond either limit a worker neither claims events nor starts attempts: an outcome that is lost with the
#: worker would repeat its attempt, so in overload attempts are late instead.
MAX_UNRECORDED = 4_000
MAX_AGE_SECONDS = 2.0


class Backlog:
    """Counts outcomes from `put` to `written`, first in, first out. Thread-safe."""

    def __init__(self) -> None:
        self._puts: deque[tuple[float, int]] = deque()
        self._count = 0
        self._lock = threading.Lock()

    @property
    def count(self) -> int:
        return self._count

    def put(self, count: int, now: float) -> None:
        """`now` is monotonic."""
        with self._lock:
            self._puts.append((now, count))
            self._count += count

    def written(self, count: int) -> None:
        """Marks the `count` oldest outcomes as written, or given up."""
        with self._lock:
            self._count -= count
            while count and self._puts:
                put_at, most = self._puts.popleft()
                if most > count:
                    self._puts.appendleft((put_at, most - count))
                count -= min(most, count)

    def age(self, now: float) -> float:
        """Returns for how many seconds the oldest outcome has waited, 0 if none does. `now` is monotonic."""
        with self._lock:
            return now - self._puts[0][0] if self._puts else 0.0

    def is_behind(self, now: float) -> bool:
        return self._count >= MAX_UNRECORDED or self.age(now) > MAX_AGE_SECONDS

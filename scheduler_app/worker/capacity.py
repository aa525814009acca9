"""Bounds how many events a worker holds: claimed, waiting, in flight, or not yet recorded; and how many
outcomes are known and not yet written to MongoDB.
"""

import threading
from collections import deque
from collections.abc import Callable

#: Beyond either limit a worker neither claims events nor starts attempts: an outcome that is lost with the
#: worker would repeat its attempt, so in overload attempts are late instead.
MAX_UNRECORDED = 4_000
MAX_UNRECORDED_SECONDS = 2.0


class RecordingBacklog:
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
        return self._count >= MAX_UNRECORDED or self.age(now) > MAX_UNRECORDED_SECONDS


#: How often `reserve` asks again whether outcomes are behind: nothing notifies it of that.
LOOK_SECONDS = 0.25


class WorkerStopping(Exception):
    """The worker is ending and claims nothing more."""


class Capacity:
    """A bounded number of events. Thread-safe."""

    def __init__(self, limit: int, *, is_behind: Callable[[], bool]) -> None:
        """`is_behind`: whether outcomes are written more slowly than they come; nothing is claimed then."""
        self.limit = limit
        self._is_behind = is_behind
        self._held = 0
        self._stopping = False
        self._changed = threading.Condition()

    @property
    def held(self) -> int:
        return self._held

    def reserve(self, count: int) -> None:
        """Waits until there is room for `count` more events, and takes it. Raises Stopping."""
        with self._changed:
            while self._held + min(count, self.limit) > self.limit or self._is_behind():
                if self._stopping:
                    raise WorkerStopping
                self._changed.wait(LOOK_SECONDS)
            if self._stopping:
                raise WorkerStopping
            self._held += count
            self._changed.notify_all()

    def wait_for_events(self) -> None:
        """Waits until there is an event that this worker may hold, or it stops."""
        with self._changed:
            self._changed.wait_for(lambda: self._held > 0 or self._stopping)

    def release(self, count: int = 1) -> None:
        with self._changed:
            self._held -= count
            self._changed.notify_all()

    def stop(self) -> None:
        """Lets every `reserve` raise Stopping, also those that wait."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def wait_until_empty(self, seconds: float | None = None) -> bool:
        """Waits until no event is held; returns False if some are after `seconds`. None waits for ever."""
        with self._changed:
            return self._changed.wait_for(lambda: self._held <= 0, seconds)

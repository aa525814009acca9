"""Bounds how many events a worker holds: claimed, waiting, in flight, or not yet recorded."""

import threading
from collections.abc import Callable

#: How often `reserve` asks again whether outcomes are behind: nothing notifies it of that.
LOOK_SECONDS = 0.25


class Stopping(Exception):
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
                    raise Stopping
                self._changed.wait(LOOK_SECONDS)
            if self._stopping:
                raise Stopping
            self._held += count

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

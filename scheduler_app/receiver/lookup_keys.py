"""Keys that the handler itself writes, in the transaction of its work."""

import threading
from collections.abc import Callable

from scheduler_app.receiver.keys import Seen


class LookupKeys:
    """Asks a function of yours whether the work of a key is done.

    The handler writes the key with its work, in one transaction and under a unique index: then a crash
    between the two leaves neither, and of two processes one is refused by the index. Within this process, two
    deliveries of a key never run at once.
    """

    def __init__(self, is_done: Callable[[str], bool], *, max_running: int = 10_000) -> None:
        """`max_running` bounds the keys that are being worked on at once."""
        self._is_done = is_done
        self._max_running = max_running
        self._lock = threading.Lock()
        self._running: dict[str, str] = {}

    def claim(self, key: str, token: str) -> Seen:
        with self._lock:
            if key in self._running:
                return Seen.RUNNING
            if len(self._running) >= self._max_running:
                return Seen.NO_ROOM
            self._running[key] = token
        # Asked only now: another delivery may have finished before the claim.
        try:
            done = self._is_done(key)
        except BaseException:
            self.forget(key, token)
            raise
        if done:
            self.forget(key, token)
        return Seen.DONE if done else Seen.NEW

    def finish(self, key: str, token: str) -> None:
        self.forget(key, token)

    def forget(self, key: str, token: str) -> None:
        with self._lock:
            if self._running.get(key) == token:
                del self._running[key]

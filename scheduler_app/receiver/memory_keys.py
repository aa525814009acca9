"""Keys in the memory of one process."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from scheduler_app.receiver.keys import DEFAULT_CLAIM_SECONDS, DEFAULT_TTL_SECONDS, Seen


class MemoryKeys:
    """Remembers keys until the process ends: for receivers of one process, with work that bears a repetition
    after a restart."""

    def __init__(
        self,
        *,
        max_keys: int = 100_000,
        ttl_seconds: float = DEFAULT_TTL_SECONDS,
        claim_seconds: float = DEFAULT_CLAIM_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`max_keys` bounds what is remembered, some 200 bytes each: the oldest finished key makes room.
        `ttl_seconds` is how long a finished key is known, `claim_seconds` how long one whose work neither
        ends nor fails. `clock` returns seconds that never go back."""
        if max_keys < 1:
            raise ValueError("max_keys: must be at least 1")
        self._max_keys = max_keys
        self._ttl_seconds = ttl_seconds
        self._claim_seconds = claim_seconds
        self._clock = clock
        self._lock = threading.Lock()
        # Both are ordered by the time at which they end, since each has one lifetime for all its keys.
        self._done: OrderedDict[str, float] = OrderedDict()
        self._running: OrderedDict[str, tuple[str, float]] = OrderedDict()

    def claim(self, key: str, token: str) -> Seen:
        with self._lock:
            now = self._clock()
            self._drop_expired(now)
            if key in self._done:
                return Seen.DONE
            if key in self._running:
                return Seen.RUNNING
            if len(self) >= self._max_keys and not self._drop_oldest_done():
                return Seen.NO_ROOM
            self._running[key] = (token, now + self._claim_seconds)
            return Seen.NEW

    def finish(self, key: str, token: str) -> None:
        with self._lock:
            # Also where the claim is over and another delivery works on the key: its work has been done.
            self._running.pop(key, None)
            self._done.pop(key, None)
            while len(self) >= self._max_keys and self._drop_oldest_done():
                pass
            self._done[key] = self._clock() + self._ttl_seconds

    def forget(self, key: str, token: str) -> None:
        with self._lock:
            if self._running.get(key, ("", 0.0))[0] == token:
                del self._running[key]

    def __len__(self) -> int:
        """How many keys are remembered."""
        return len(self._done) + len(self._running)

    def _drop_expired(self, now: float) -> None:
        while self._done and next(iter(self._done.values())) <= now:
            self._done.popitem(last=False)
        while self._running and next(iter(self._running.values()))[1] <= now:
            self._running.popitem(last=False)

    def _drop_oldest_done(self) -> bool:
        if not self._done:
            return False
        self._done.popitem(last=False)
        return True

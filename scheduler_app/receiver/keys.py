"""What remembers which keys were seen: the memory of one process, Redis, which several processes share, or
the handler itself, in the transaction of its work.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from enum import Enum
from typing import Any, Protocol

#: Longer than retries take, and than most outages: after that a key may come back as a new one.
DEFAULT_TTL_SECONDS = 3 * 86_400.0
#: Longer than any handler should take: after that, a handler that has not ended is taken for dead.
DEFAULT_CLAIM_SECONDS = 900.0


class Seen(Enum):
    """What is known about a key that is claimed."""

    #: It is claimed now, by the caller.
    NEW = "new"
    #: Another delivery has claimed it and is not finished.
    RUNNING = "running"
    #: Its work is done.
    DONE = "done"
    #: There is no room to remember it.
    NO_ROOM = "no room"


class Keys(Protocol):
    """Several threads call it at once. The receiver raises whatever a method raises."""

    def claim(self, key: str, token: str) -> Seen:
        """Claims `key` unless it is known, in one step. `token` is a new one for each call."""

    def finish(self, key: str, token: str) -> None:
        """The work of `key`, which was claimed with `token`, is done."""

    def forget(self, key: str, token: str) -> None:
        """The work of `key` has failed: the next delivery may claim it. Does nothing where it is no longer
        claimed with `token`."""


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


_DONE = "done"
#: A claim is "running:" and its token.
_RUNNING = "running:"
_CLAIM = (
    "local known = redis.call('GET', KEYS[1]) if known then return known end"
    " redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return false"
)
_FINISH = "return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])"
_FORGET = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"


class RedisClient(Protocol):
    """What is needed of `redis.Redis`: a script, the number of keys, keys and arguments."""

    def eval(self, _script: str, _numkeys: int, /, *_values: str) -> Any: ...


class RedisKeys:
    """Remembers keys in a Redis server of yours."""

    def __init__(
        self,
        client: RedisClient,
        *,
        prefix: str = "received:",
        ttl_seconds: float = DEFAULT_TTL_SECONDS,
        claim_seconds: float = DEFAULT_CLAIM_SECONDS,
    ) -> None:
        """`client` is a `redis.Redis`, which several threads may share. `prefix` stands before each key.
        `ttl_seconds` is how long a finished key is known; `claim_seconds` how long one whose work neither
        ends nor fails, because its process died: give more than the handler ever takes."""
        self._client = client
        self._prefix = prefix
        self._ttl_ms = round(ttl_seconds * 1000)
        self._claim_ms = round(claim_seconds * 1000)

    def claim(self, key: str, token: str) -> Seen:
        known = self._client.eval(_CLAIM, 1, self._prefix + key, _RUNNING + token, str(self._claim_ms))
        if known is None:
            return Seen.NEW
        text = known.decode() if isinstance(known, bytes) else str(known)
        return Seen.DONE if text == _DONE else Seen.RUNNING

    def finish(self, key: str, token: str) -> None:
        # Also where the claim is over and another delivery works on the key: its work has been done.
        self._client.eval(_FINISH, 1, self._prefix + key, _DONE, str(self._ttl_ms))

    def forget(self, key: str, token: str) -> None:
        self._client.eval(_FORGET, 1, self._prefix + key, _RUNNING + token)

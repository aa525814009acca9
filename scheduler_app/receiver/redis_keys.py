"""Keys in Redis, which several processes share."""

from typing import Any, Protocol

from scheduler_app.receiver.keys import DEFAULT_CLAIM_SECONDS, DEFAULT_TTL_SECONDS, Seen

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

"""Flow control in Redis: one script counts for all workers, by Redis's own clock.

For each destination there is a hash and a sorted set of slots. In the hash, `tat` is the theoretical arrival
time of GCRA (ATM Forum TM 4.0, 4.4.2), and `line` the same for events that are put off; `open_until`,
`failures` and `well_at`, the last success, belong to the breaker; `blocked` is until when the receiver asked
to wait. A slot is an event in flight with the instant at which it is given up, so that a worker that dies
frees its slots.

Lost state starts over: full tokens, which is one burst at most, and an empty line. After a loss nothing is
granted for `RESTART_SECONDS`, in which workers tell what they have in flight.
"""

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError
from redis.retry import Retry
from redis.sentinel import Sentinel

from scheduler_app.clock import monotonic
from scheduler_app.config.settings import PLAIN_TLS, BrokerTls
from scheduler_app.domain.flow_control import (
    FinishedRequest,
    FlowGrant,
    FlowRequest,
    FlowState,
    Limited,
    PastAnswer,
    ReceiverAnswer,
    WaitReason,
)

#: A receiver may ask for patience, but not for ever.
MAX_BLOCKED_SECONDS = 86_400.0
#: How long a receiver that asks for fewer requests without saying for how long is left alone at first; it
#: doubles up to the longest.
FIRST_SLOW_SECONDS, LONGEST_SLOW_SECONDS = 1.0, 60.0
RESTART_SECONDS = 1.5
#: A receiver with a breaker that has answered well within this time, or twice its usual time, is there: what
#: comes at once goes out at once. Otherwise no more requests do than its breaker allows failures.
TRUSTED_SECONDS = 1.0
#: What of a burst is kept back, in seconds of the rate: requests leave workers up to so much later than they
#: are granted, and some that were granted apart leave together.
JITTER_SECONDS = 0.1
KEPT_ANSWERS = 5
KEPT_SECONDS = 7 * 86_400
TIMEOUT_SECONDS = 2.0
#: For how long a Redis that did not answer is not asked again: many who ask at once wait for it once.
AWAY_SECONDS = 1.0

_SCRIPT = """
local t = redis.call('TIME')
local now = t[1] + t[2] / 1000000
local asks, set = cjson.decode(ARGV[1]), cjson.decode(ARGV[2])
local began = tonumber(redis.call('GET', KEYS[1]) or '')
if not began then
  began = now
  redis.call('SET', KEYS[1], string.format('%.6f', now))
end
local out = {}
for i, ask in ipairs(asks) do
  local h, z = KEYS[2 * i], KEYS[2 * i + 1]
  local v = redis.call('HMGET', h,
    'tat', 'line', 'blocked', 'open_until', 'failures', 'slow', 'took', 'answers', 'well_at')
  local tat, line = tonumber(v[1] or '') or 0, tonumber(v[2] or '') or 0
  local blocked, open_until = tonumber(v[3] or '') or 0, tonumber(v[4] or '') or 0
  local failures, slow = tonumber(v[5] or '') or 0, tonumber(v[6] or '') or 0
  local took, well_at = tonumber(v[7] or '') or 0, tonumber(v[9] or '') or 0
  local answers = v[8] and cjson.decode(v[8]) or {}
  for _, id in ipairs(ask.held) do redis.call('ZADD', z, now + ask.slot, id) end
  for _, e in ipairs(ask.ended) do
    redis.call('ZREM', z, e.id)
    if e.answer ~= 'nothing' then
      if e.took then took = took == 0 and e.took or took * 0.9 + e.took * 0.1 end
      table.insert(answers, 1, {now, e.status or 0, e.answer})
      if e.slow then
        slow = math.min(slow + 1, 20)
        local pause = e.retry_after or math.min(set.first_slow * 2 ^ (slow - 1), set.longest_slow)
        blocked = math.max(blocked, now + math.min(pause, set.longest))
      elseif e.answer == 'well' then
        slow = 0
      end
      if e.answer == 'well' then
        failures, open_until, well_at = 0, 0, now
      elseif ask.failures then
        failures = failures + 1
        if open_until > 0 or failures >= ask.failures then open_until = now + ask.open end
      end
    end
  end
  while #answers > set.answers do table.remove(answers) end
  redis.call('ZREMRANGEBYSCORE', z, '-inf', now)
  local flying, wanted = redis.call('ZCARD', z), #ask.wanted
  local n, wait, why = wanted, 0, ''
  local function bound(most, pause, reason)
    if most < n or (n == 0 and pause > wait) then
      n, wait, why = math.max(0, math.min(n, most)), pause, reason
    end
  end
  local is_open = ask.failures and open_until > 0
  if ask.rate then
    local step, depth = 1 / ask.rate, (ask.burst - 1) / ask.rate
    tat = math.max(tat, now)
    local ready = tat - depth
    local tokens = ready <= now and math.floor((now - ready) / step + 1.000001) or 0
    local following = tat + math.min(tokens, n) * step - depth
    bound(tokens, math.max(following - now, 0.001), 'rate')
  end
  if ask.concurrency then bound(ask.concurrency - flying, 0.02, 'concurrency') end
  if ask.failures then
    -- No more requests at once than there may be failures, unless the receiver has just answered one.
    local unknown = well_at < now - math.max(set.trusted, 2 * took)
    if not is_open and failures > 0 then bound(ask.failures - failures - flying, 0.05, 'concurrency')
    elseif not is_open and unknown then bound(ask.failures - flying, 0.02, 'concurrency') end
    if is_open and open_until > now then bound(0, open_until - now, 'breaker')
    elseif is_open then bound(1 - flying, 0.1, 'breaker') end
  end
  if blocked > now then bound(0, blocked - now, 'asked') end
  if began + set.restart > now then bound(0, began + set.restart - now, 'restart') end
  for j = 1, n do redis.call('ZADD', z, now + ask.slot, ask.wanted[j]) end
  if ask.rate then tat = tat + n / ask.rate end
  -- The line: where an event that is put off has its place.
  local step = ask.rate and 1 / ask.rate or 0
  if ask.concurrency then step = math.max(step, took / ask.concurrency) end
  local earliest = math.max(now - (ask.rate and (ask.burst - 1) * step or 0), blocked)
  if is_open then earliest = math.max(earliest, open_until) end
  local first = math.max(line, earliest)
  if ask.reserve > 0 then line = first + ask.reserve * step
  elseif ask.reserve < 0 then line = line + ask.reserve * step end
  if not ask.look then
    local f = '%.6f'
    redis.call('HSET', h, 'tat', f:format(tat), 'line', f:format(line), 'blocked', f:format(blocked),
      'open_until', f:format(open_until), 'failures', failures, 'slow', slow, 'took', f:format(took),
      'well_at', f:format(well_at),
      'answers', #answers > 0 and cjson.encode(answers) or '[]')
    redis.call('EXPIRE', h, set.kept)
    if redis.call('ZCARD', z) > 0 then redis.call('EXPIRE', z, set.kept) end
  end
  for _, a in ipairs(answers) do a[1] = now - a[1] end
  out[i] = {n, wait, why, first - now, step, is_open and open_until > 0 and 1 or 0,
    {failures = failures, flying = flying, tat = tat - now, open = math.max(0, open_until - now),
     opened = open_until > 0, blocked = math.max(0, blocked - now), line = math.max(0, line - now),
     answers = answers}}
end
return cjson.encode(out)
"""

_WHY = {
    "rate": WaitReason.RATE,
    "concurrency": WaitReason.CONCURRENCY,
    "breaker": WaitReason.BREAKER,
    "asked": WaitReason.ASKED,
    "restart": WaitReason.RESTART,
}
_SETTINGS = json.dumps(
    {
        "longest": MAX_BLOCKED_SECONDS,
        "first_slow": FIRST_SLOW_SECONDS,
        "longest_slow": LONGEST_SLOW_SECONDS,
        "restart": RESTART_SECONDS,
        "trusted": TRUSTED_SECONDS,
        "answers": KEPT_ANSWERS,
        "kept": KEPT_SECONDS,
    }
)


class RedisLimiter:
    """A `Limiter` over the broker's Redis. Threads may share it."""

    unavailable: tuple[type[Exception], ...] = (RedisError, OSError)

    def __init__(self, client: "redis.Redis", prefix: str) -> None:
        """`prefix`: what every key begins with."""
        self._client = client
        self._prefix = f"{prefix}flow:"
        self._away_until = float("-inf")
        self._script = client.register_script(_SCRIPT)

    @classmethod
    def of_url(
        cls, url: str, prefix: str, tls: BrokerTls = PLAIN_TLS, *, seconds: float = TIMEOUT_SECONDS
    ) -> "RedisLimiter":
        """Connects lazily; `tls` is for a `rediss://` URL. An answer that does not come within `seconds` is
        an error: the caller has events to postpone meanwhile."""
        return cls(redis.Redis.from_url(url, **(tls.options(url) or {}), **_impatient(seconds)), prefix)

    @classmethod
    def behind_sentinel(
        cls, url: str, master: str, prefix: str, *, seconds: float = TIMEOUT_SECONDS
    ) -> "RedisLimiter":
        """The same for `sentinel://host:26379;sentinel://…`: each connection asks who the master is."""
        parts = [urlsplit(each) for each in url.split(";")]
        sentinel = Sentinel(
            [(each.hostname or "localhost", each.port or 26379) for each in parts],
            sentinel_kwargs=_impatient(seconds),
        )
        password = next((unquote(each.password) for each in parts if each.password), None)
        client = sentinel.master_for(master, password=password, **_impatient(seconds))
        return cls(client, prefix)

    def decide(self, asks: Sequence[FlowRequest]) -> list[FlowGrant]:
        """Answers every ask, in one call for all of them. Raises `unavailable`."""
        rows = self._call([_asked(ask) for ask in asks], [ask.destination.id for ask in asks])
        return [
            FlowGrant(
                int(row[0]),
                row[1],
                _WHY.get(row[2]),
                max(0.0, row[3]),
                row[4],
                row[5] == 1,
                _tokens(ask, row[6]["tat"]),
            )
            for ask, row in zip(asks, rows, strict=True)
        ]

    def look(self, destination: Limited) -> FlowState:
        """Returns how a destination is, and changes nothing. Raises `unavailable`."""
        ask = FlowRequest(destination)
        ((*_, found),) = self._call([_asked(ask) | {"look": True}], [destination.id])
        opened = bool(found["opened"]) and destination.breaker is not None
        return FlowState(
            breaker=("open" if found["open"] else "half-open") if opened else "closed",
            failures=int(found["failures"]),
            in_flight=int(found["flying"]),
            tokens=_tokens(ask, found["tat"]),
            open_for=found["open"],
            asked_to_wait=found["blocked"],
            line=found["line"],
            answers=tuple(
                PastAnswer(ago, int(status) or None, ReceiverAnswer(answer))
                for ago, status, answer in found["answers"] or ()
            ),
        )

    def close(self) -> None:
        self._client.close()

    def _call(self, asks: Sequence[dict[str, Any]], ids: Sequence[str]) -> list[Any]:
        keys = [f"{self._prefix}began"]
        for each in ids:
            keys += [f"{self._prefix}{each}", f"{self._prefix}{each}:slots"]
        if monotonic() < self._away_until:
            raise RedisConnectionError("it did not answer a moment ago")
        try:
            answer = self._script(keys=keys, args=[json.dumps(list(asks)), _SETTINGS])
        except self.unavailable:
            self._away_until = monotonic() + AWAY_SECONDS
            raise
        found: list[Any] = json.loads(answer)
        return found


def _impatient(seconds: float) -> dict[str, Any]:
    return {
        "socket_timeout": seconds,
        "socket_connect_timeout": seconds,
        "retry": Retry(NoBackoff(), 0),
    }


def _asked(ask: FlowRequest) -> dict[str, Any]:
    made, breaker = ask.destination, ask.destination.breaker
    asked: dict[str, Any] = {
        "wanted": list(ask.wanted),
        "held": list(ask.held),
        "ended": [_ended(each) for each in ask.ended],
        "reserve": ask.reserve,
        "slot": ask.slot_seconds,
        "burst": _depth(ask),
    }
    if made.rate_per_second:
        asked["rate"] = made.rate_per_second
    if made.concurrency:
        asked["concurrency"] = made.concurrency
    if breaker:
        asked |= {"failures": breaker.failures, "open": breaker.open_seconds}
    return asked


def _ended(ended: FinishedRequest) -> dict[str, Any]:
    told: dict[str, Any] = {"id": ended.event_id, "answer": ended.answer.value, "slow": ended.slow_down}
    if ended.status_code is not None:
        told["status"] = ended.status_code
    if ended.took is not None:
        told["took"] = ended.took
    if ended.retry_after is not None:
        told["retry_after"] = ended.retry_after
    return told


def _tokens(ask: FlowRequest, tat: float) -> float | None:
    """How many requests may start at this instant; `tat` is from now."""
    rate = ask.destination.rate_per_second
    if not rate:
        return None
    depth = float(_depth(ask))
    return max(0.0, min(depth, depth - max(0.0, tat) * rate))


def _depth(ask: FlowRequest) -> int:
    """The tokens that there are at most: the burst, less what jitter may add to it on the way."""
    jitter = 0.0 if ask.has_begun else JITTER_SECONDS
    kept_back = int((ask.destination.rate_per_second or 0.0) * jitter + 0.999)
    return max(1, ask.destination.burst - kept_back)

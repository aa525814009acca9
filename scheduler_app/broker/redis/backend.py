"""Redis as a broker, by itself (`redis://`, `rediss://`) or behind Sentinel (`sentinel://`), and how `doctor`
judges one by its INFO: it must persist every message, evict none, and be a primary.
"""

from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import quote

from redis.backoff import NoBackoff
from redis.retry import Retry

from scheduler_app.broker.backend import ONE_MORE_TRY, Backend
from scheduler_app.broker.redis import transport
from scheduler_app.broker.redis.flow_control import TIMEOUT_SECONDS, RedisLimiter
from scheduler_app.broker.task import PRIORITIES, QUEUE
from scheduler_app.broker.worker_steps import ReturnUnstarted
from scheduler_app.config import VISIBILITY_TIMEOUT_SECONDS, Settings
from scheduler_app.domain.action import QueueLengths
from scheduler_app.domain.flow_control import Limiter
from scheduler_app.health.check import Check, fine, note, wrong

OLDEST = 6
MEMORY_SHARE = 0.8
_CONFIGURED = "deploy/redis.conf has it; at run time: redis-cli config set"


def check_redis(info: Mapping[str, Any], address: str) -> list[Check]:
    """`info` is redis-py's; `address` is the URL without a password."""
    return [_server(info, address), _eviction(info), _persistence(info), _memory(info)]


def _server(info: Mapping[str, Any], address: str) -> Check:
    version = str(info.get("redis_version", "?"))
    found = f"{version} at {address}"
    if info.get("role") == "slave":
        return wrong("redis", f"{found}, a replica", "name its primary")
    if info.get("redis_mode") == "cluster":
        return wrong(
            "redis",
            f"{found}, a node of a Redis Cluster",
            "name one Redis, or several behind Sentinel: a cluster keeps a queue's keys on several nodes",
        )
    if not version.partition(".")[0].isdigit() or int(version.partition(".")[0]) < OLDEST:
        return wrong(
            "redis", found, f"upgrade it: {OLDEST}.0 is the oldest supported release", version=version
        )
    return fine("redis", found, version=version)


def _eviction(info: Mapping[str, Any]) -> Check:
    policy = str(info.get("maxmemory_policy", "unknown"))
    if policy != "noeviction":
        return wrong(
            "redis eviction",
            f"maxmemory-policy is {policy}: a full Redis throws messages away",
            f"{_CONFIGURED} maxmemory-policy noeviction",
            policy=policy,
        )
    return fine("redis eviction", "maxmemory-policy is noeviction", policy=policy)


def _persistence(info: Mapping[str, Any]) -> Check:
    if not info.get("aof_enabled"):
        return wrong(
            "redis persistence",
            "appendonly is off: a restart loses the messages, and their callbacks come 10 s late",
            f"{_CONFIGURED} appendonly yes",
        )
    if info.get("aof_last_write_status", "ok") != "ok":
        return wrong("redis persistence", "its last write to the append-only file failed", "see its disk")
    return fine("redis persistence", "appendonly is on")


def _memory(info: Mapping[str, Any]) -> Check:
    used, limit = int(info.get("used_memory", 0)), int(info.get("maxmemory", 0))
    facts = {"used_bytes": used, "limit_bytes": limit}
    if not limit:
        return fine("redis memory", f"{_mib(used)} used, no limit", **facts)
    found = f"{_mib(used)} of {_mib(limit)} used"
    if used > MEMORY_SHARE * limit:
        return note("redis memory", found, "give it more: when it is full, nothing can be sent", **facts)
    return fine("redis memory", found, **facts)


def _mib(size: int) -> str:
    return f"{size / 2**20:.1f} MiB"


#: After how long without an answer a connection to Redis is made again.
SILENT_SECONDS = 30.0


def key_prefix(database: str) -> str:
    """Returns what every key and channel of a deployment begins with in Redis: each deployment has a MongoDB
    database of its own, and others may use the same Redis. Quoted, because the name of a channel is read as a
    pattern."""
    return f"{quote(database, safe='')}:"


class RedisBackend(Backend):
    """A Redis that persists its data and evicts nothing. Each lane is a list of its own."""

    title = "Redis"
    check_name = "redis"
    remedy = "start it, or see that REDIS_HOST and REDIS_PORT, or BROKER_URL, are right"
    transports: ClassVar[Mapping[str, type]] = {
        "redis": transport.ResilientTransport,
        "rediss": transport.ResilientTransport,
        "sentinel": transport.ResilientSentinelTransport,
    }
    worker_steps = frozenset({ReturnUnstarted})

    def transport_options(self, settings: Settings) -> dict[str, Any]:
        return _sentinel_options(settings) | {
            # Two deployments on one Redis would take each other's messages, and obey each other's commands.
            "global_keyprefix": key_prefix(settings.mongo_database),
            # Longer than the horizon and the longest callback together, so that what is held is not doubled.
            "visibility_timeout": VISIBILITY_TIMEOUT_SECONDS,
            # By default what a dead worker held is looked for about every 100 s, and a worker killed in the
            # middle of that stops all others from looking for 300 s.
            "unacked_restore_interval": 5,
            "unacked_restore_throttle": 1,
            "unacked_mutex_expire": 30,
            "health_check_interval": 10,
            "socket_timeout": SILENT_SECONDS,
            "socket_connect_timeout": 5,
            "socket_keepalive": True,
            "priority_steps": sorted(PRIORITIES.values()),
            **ONE_MORE_TRY,
        }

    def limiter(self, settings: Settings, *, seconds: float = TIMEOUT_SECONDS) -> Limiter | None:
        """In the same Redis, which workers need anyway; behind Sentinel it is the master of the moment."""
        prefix = key_prefix(settings.mongo_database)
        if not settings.broker.startswith("sentinel:"):
            return RedisLimiter.of_url(settings.broker, prefix, settings.broker_tls, seconds=seconds)
        master = settings.broker_sentinel_master
        return RedisLimiter.behind_sentinel(settings.broker, master, prefix, seconds=seconds)

    def impatient_options(self, seconds: float) -> dict[str, Any]:
        return {"socket_timeout": seconds, "socket_connect_timeout": seconds}

    def queue_lengths(self, channel: Any, queue: str = QUEUE) -> QueueLengths:
        sizes = channel.sizes(queue)
        return QueueLengths(**{lane.value: sizes[step] for lane, step in PRIORITIES.items()})

    def checks(self, channel: Any, address: str) -> list[Check]:
        return check_redis(channel.client.info(), address)


def _sentinel_options(settings: Settings) -> dict[str, Any]:
    if not settings.broker.startswith("sentinel:"):
        return {}
    return {
        "master_name": settings.broker_sentinel_master,
        # They are asked one after the other at each connection, and one that is gone must not be waited for:
        # by default redis-py asks it four times, over 7 s.
        "sentinel_kwargs": {
            "socket_timeout": 2,
            "socket_connect_timeout": 2,
            "retry": Retry(NoBackoff(), 0),
        },
    }

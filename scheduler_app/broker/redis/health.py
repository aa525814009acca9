"""Judges a Redis by its INFO: it must persist every message, evict none, and be a primary."""

from collections.abc import Mapping
from typing import Any

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

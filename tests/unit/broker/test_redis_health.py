"""What Redis says of itself, and what that means for a broker."""

from typing import Any

import pytest

from scheduler_app.broker.redis.health import check_redis
from scheduler_app.health import Status
from scheduler_app.health.queue import check_queue

GOOD = {
    "redis_version": "7.0.15",
    "role": "master",
    "maxmemory_policy": "noeviction",
    "aof_enabled": 1,
    "aof_last_write_status": "ok",
    "used_memory": 2**20,
    "maxmemory": 0,
}


def worst(**changes: Any) -> dict[str, Status]:
    """The checks that are not fine."""
    checks = check_redis(GOOD | changes, "redis://here")
    return {check.name: check.status for check in checks if check.status is not Status.OK}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, {}),
        ({"maxmemory_policy": "allkeys-lru"}, {"redis eviction": Status.WRONG}),
        ({"aof_enabled": 0}, {"redis persistence": Status.WRONG}),
        ({"aof_last_write_status": "err"}, {"redis persistence": Status.WRONG}),
        ({"role": "slave"}, {"redis": Status.WRONG}),
        ({"redis_mode": "cluster"}, {"redis": Status.WRONG}),
        ({"redis_version": "5.0.14"}, {"redis": Status.WRONG}),
        ({"maxmemory": 2**20}, {"redis memory": Status.NOTE}),
        ({"maxmemory": 2**30}, {}),
    ],
)
def test_what_would_lose_or_refuse_messages_is_found(
    changes: dict[str, Any], expected: dict[str, Status]
) -> None:
    assert worst(**changes) == expected


def test_a_full_queue_is_told() -> None:
    assert check_queue(1000, most=1000).status is Status.NOTE
    assert check_queue(999, most=1000).status is Status.OK

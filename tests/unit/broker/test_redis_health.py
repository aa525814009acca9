"""What Redis says of itself, and what that means for a broker."""

from typing import Any

import pytest

from scheduler_app.broker.redis.backend import MEMORY_SHARE, check_redis
from scheduler_app.health import Status
from scheduler_app.health.check import Check
from scheduler_app.health.work import check_queue

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


def found(name: str, **changes: Any) -> Check:
    (check,) = [each for each in check_redis(GOOD | changes, "redis://here") if each.name == name]
    return check


def test_a_check_says_what_was_found() -> None:
    assert "7.0.15 at redis://here" in found("redis").found
    assert found("redis").facts == {"version": "7.0.15"}
    assert "a replica" in found("redis", role="slave").found
    assert found("redis", redis_version="5.0.14").facts == {"version": "5.0.14"}
    assert found("redis eviction").facts == {"policy": "noeviction"}
    assert found("redis eviction", maxmemory_policy="allkeys-lru").facts == {"policy": "allkeys-lru"}
    memory = found("redis memory", used_memory=3 * 2**20, maxmemory=8 * 2**20)
    assert memory.found == "3.0 MiB of 8.0 MiB used"
    assert memory.facts == {"used_bytes": 3 * 2**20, "limit_bytes": 8 * 2**20}
    assert found("redis memory").found == "1.0 MiB used, no limit"
    assert found("redis memory").facts == {"used_bytes": 2**20, "limit_bytes": 0}
    (unknown,) = [each for each in check_redis({}, "redis://here") if each.name == "redis memory"]
    assert unknown.facts == {"used_bytes": 0, "limit_bytes": 0}
    assert found("redis memory", maxmemory=2**20).facts == {"used_bytes": 2**20, "limit_bytes": 2**20}


@pytest.mark.parametrize(
    ("used", "status"), [(MEMORY_SHARE * 1000, Status.OK), (MEMORY_SHARE * 1000 + 1, Status.NOTE)]
)
def test_a_redis_is_nearly_full_beyond_a_share_of_its_memory(used: float, status: Status) -> None:
    assert found("redis memory", used_memory=int(used), maxmemory=1000).status is status


@pytest.mark.parametrize(
    ("version", "status"),
    [("6.0.0", Status.OK), ("5.9.9", Status.WRONG), ("?", Status.WRONG), ("10.1", Status.OK)],
)
def test_a_redis_that_is_too_old_is_found_by_the_first_number(version: str, status: Status) -> None:
    assert found("redis", redis_version=version).status is status

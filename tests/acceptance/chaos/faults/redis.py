"""Redis as the broker: killed, emptied, full, and repeating itself."""

import json
import time
from typing import Any

from scheduler_app.broker.redis.backend import key_prefix
from scheduler_app.broker.task import QUEUE as NAME
from tests import broker_queue
from tests.acceptance.chaos.cluster import DATABASE, Cluster
from tests.acceptance.chaos.faults.registry import fault
from tests.acceptance.chaos.load import Load

_PREFIX = key_prefix(DATABASE)
QUEUE = _PREFIX + NAME
UNACKED = f"{_PREFIX}unacked"


@fault("redis-killed", broker="redis")
def redis_killed(cluster: Cluster, load: Load) -> None:
    """kill -9 of Redis, back after 5 s"""
    cluster.redis.kill()
    time.sleep(5)
    cluster.redis.start()


@fault("redis-flushed", broker="redis")
def redis_flushed(cluster: Cluster, load: Load) -> None:
    """FLUSHALL whenever a message is there that no worker has fetched, for 5 s"""
    until = time.monotonic() + 5
    with cluster.broker() as redis:
        while time.monotonic() < until:
            if broker_queue.waiting(redis):
                redis.flushall()


@fault("redis-full", broker="redis")
def redis_full(cluster: Cluster, load: Load) -> None:
    """Redis takes no more data for 8 s"""
    with cluster.broker() as redis:
        redis.config_set("maxmemory", 1)
        time.sleep(8)
        redis.config_set("maxmemory", 0)


@fault("messages-doubled", broker="redis")
def messages_doubled(cluster: Cluster, load: Load) -> None:
    """each message of 5 s is in the queue a second time, while a worker has the first"""
    copied: set[str] = set()
    with cluster.broker() as redis:
        for _ in range(20):
            fetched = [_message(value) for value in redis.hvals(UNACKED)]
            values = [value for key in broker_queue.lists(redis) for value in redis.lrange(key, 0, -1)]
            there = [*map(json.loads, values), *fetched]
            # Not the copies: they would double, too, each time.
            new = [message for message in there if message["headers"]["id"] not in copied]
            copied |= {message["headers"]["id"] for message in new}
            if new:
                redis.rpush(QUEUE, *map(json.dumps, new))
            time.sleep(0.25)


def _message(unacked: bytes | str) -> dict[str, Any]:
    """kombu keeps `[message, exchange, routing key]` of what is not acknowledged."""
    message: dict[str, Any] = json.loads(unacked)[0]
    return message

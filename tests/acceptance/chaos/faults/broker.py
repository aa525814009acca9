"""Redis killed, emptied, full, and repeating itself."""

import json
import time

from tests.acceptance.chaos.cluster import Cluster
from tests.acceptance.chaos.faults.registry import fault
from tests.acceptance.chaos.load import Load

QUEUE = "callbacks"


@fault("redis-killed")
def redis_killed(cluster: Cluster, load: Load) -> None:
    """kill -9 of Redis, back after 5 s"""
    cluster.redis.kill()
    time.sleep(5)
    cluster.redis.start()


@fault("redis-flushed")
def redis_flushed(cluster: Cluster, load: Load) -> None:
    """FLUSHALL whenever a message is there that no worker has fetched, for 5 s"""
    until = time.monotonic() + 5
    with cluster.broker() as redis:
        while time.monotonic() < until:
            if redis.llen(QUEUE):
                redis.flushall()


@fault("redis-full")
def redis_full(cluster: Cluster, load: Load) -> None:
    """Redis takes no more data for 8 s"""
    with cluster.broker() as redis:
        redis.config_set("maxmemory", 1)
        time.sleep(8)
        redis.config_set("maxmemory", 0)


@fault("messages-doubled")
def messages_doubled(cluster: Cluster, load: Load) -> None:
    """each message that Redis holds is in the queue twice, ten times over"""
    with cluster.broker() as redis:
        for _ in range(10):
            held = [_message(value) for value in redis.hvals("unacked")]
            copies = redis.lrange(QUEUE, 0, -1) + held
            if copies:
                redis.rpush(QUEUE, *copies)
            time.sleep(0.5)


def _message(unacked: bytes) -> bytes:
    """kombu keeps `[message, exchange, routing key]` of what is not acknowledged."""
    return json.dumps(json.loads(unacked)[0]).encode()

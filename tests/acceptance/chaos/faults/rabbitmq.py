"""RabbitMQ as the broker: killed, emptied, and without memory."""

import time

import amqp
from kombu.utils.url import url_to_parts

from tests.acceptance.chaos.cluster import DATABASE, RABBITMQ_START_SECONDS, Cluster
from tests.acceptance.chaos.faults.registry import fault
from tests.acceptance.chaos.load import Load
from tests.rabbitmq_control import NO_MEMORY, USUAL_MEMORY, control, lane_queues


@fault("rabbitmq-killed", broker="rabbitmq")
def rabbitmq_killed(cluster: Cluster, load: Load) -> None:
    """kill -9 of RabbitMQ, back after 5 s"""
    cluster.rabbitmq.kill()
    time.sleep(5)
    cluster.rabbitmq.start(timeout=RABBITMQ_START_SECONDS)


@fault("rabbitmq-emptied", broker="rabbitmq")
def rabbitmq_emptied(cluster: Cluster, load: Load) -> None:
    """while the workers are stopped (SIGSTOP) for 5 s, each message that none has fetched is taken away"""
    url = url_to_parts(cluster.rabbitmq.url)
    # Workers that run have fetched nearly every message before it can be taken from them.
    workers = [name for name in cluster.processes if name.startswith("worker")]
    taken = 0
    with amqp.Connection(f"{url.hostname}:{url.port}", url.username, url.password) as connection:
        channel = connection.channel()
        for name in workers:
            cluster.pause(name)
        until = time.monotonic() + 5
        while time.monotonic() < until:
            taken += sum(channel.queue_purge(queue) for queue in lane_queues(DATABASE))
        for name in workers:
            cluster.unpause(name)
    assert taken, "the workers had fetched everything: nothing was lost"


@fault("rabbitmq-full", broker="rabbitmq")
def rabbitmq_full(cluster: Cluster, load: Load) -> None:
    """RabbitMQ has its memory alarm, and takes no message, for 8 s"""
    control(cluster.rabbitmq, "set_vm_memory_high_watermark", NO_MEMORY)
    time.sleep(8)
    control(cluster.rabbitmq, "set_vm_memory_high_watermark", USUAL_MEMORY)

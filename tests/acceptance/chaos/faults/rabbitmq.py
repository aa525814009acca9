"""RabbitMQ as the broker: killed, emptied, and without memory."""

import time
from contextlib import suppress

import amqp
from kombu.utils.url import url_to_parts

from tests.acceptance.chaos.cluster import DATABASE, Cluster
from tests.acceptance.chaos.faults.registry import fault
from tests.acceptance.chaos.load import Load
from tests.rabbitmq_control import NO_MEMORY, USUAL_MEMORY, control, lane_queues


@fault("rabbitmq-killed", broker="rabbitmq")
def rabbitmq_killed(cluster: Cluster, load: Load) -> None:
    """kill -9 of RabbitMQ, back after 5 s"""
    cluster.rabbitmq.kill()
    time.sleep(5)
    cluster.rabbitmq.start()


@fault("rabbitmq-emptied", broker="rabbitmq")
def rabbitmq_emptied(cluster: Cluster, load: Load) -> None:
    """each message of 5 s goes to a consumer that is no worker, and is lost"""
    url = url_to_parts(cluster.rabbitmq.url)
    taken: list[amqp.Message] = []
    with amqp.Connection(f"{url.hostname}:{url.port}", url.username, url.password) as connection:
        channel = connection.channel()
        for queue in lane_queues(DATABASE):
            # Workers fetch a message the moment that it is there: they are served after higher priorities.
            channel.basic_consume(queue, no_ack=True, callback=taken.append, arguments={"x-priority": 10})
        until = time.monotonic() + 5
        while (left := until - time.monotonic()) > 0:
            with suppress(TimeoutError):
                connection.drain_events(timeout=left)
    assert taken, "the workers had fetched everything: nothing was lost"


@fault("rabbitmq-full", broker="rabbitmq")
def rabbitmq_full(cluster: Cluster, load: Load) -> None:
    """RabbitMQ has its memory alarm, and takes no message, for 8 s"""
    control(cluster.rabbitmq, "set_vm_memory_high_watermark", NO_MEMORY)
    time.sleep(8)
    control(cluster.rabbitmq, "set_vm_memory_high_watermark", USUAL_MEMORY)

"""RabbitMQ as a broker (`amqp://`, `amqps://`), and how `doctor` judges one: its release, and whether it
takes messages.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from amqp.basic_message import Message

from scheduler_app.broker.backend import ONE_MORE_TRY, Backend
from scheduler_app.broker.rabbitmq import transport
from scheduler_app.broker.rabbitmq.transport import AHEAD, name_prefix
from scheduler_app.broker.redis.flow_control import TIMEOUT_SECONDS, RedisLimiter
from scheduler_app.broker.task import QUEUE
from scheduler_app.broker.worker_steps import ReturnUnstarted
from scheduler_app.config import Settings
from scheduler_app.domain.action import QueueLengths
from scheduler_app.domain.flow_control import Limiter
from scheduler_app.health.check import Check, fine, wrong

#: The first release whose quorum queues forget what was acknowledged in bounded memory.
OLDEST = (3, 10)


def check_rabbitmq(channel: Any, address: str) -> list[Check]:
    """`channel` is one of ours; `address` is the URL without a password."""
    return [_server(channel.connection.server_properties, address), _alarms(channel)]


def _server(properties: dict[str, Any], address: str) -> Check:
    version = str(properties.get("version", "?"))
    found = f"{version} at {address}"
    if properties.get("product") != "RabbitMQ":
        return wrong("rabbitmq", f"{properties.get('product')} {found}", "BROKER_URL must be a RabbitMQ's")
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if numbers < OLDEST:
        return wrong("rabbitmq", found, "upgrade it: 3.10 is the oldest supported release", version=version)
    return fine("rabbitmq", found, version=version)


def check_alarms(channel: Any) -> None:
    """Raises TakesNoMessages for a server with an alarm, which answers all but those who publish: it takes
    the first message of a connection, and reads nothing after it. These two go nowhere."""
    for _ in range(2):
        channel.publish_confirmed(Message(""), "no queue has this name: a probe")


def _alarms(channel: Any) -> Check:
    try:
        check_alarms(channel)
    except TimeoutError:
        return wrong(
            "rabbitmq alarms",
            "it takes no messages: its memory or its disk is full",
            "see `rabbitmq-diagnostics alarms`, and give it more of either",
        )
    return fine("rabbitmq alarms", "none: it takes messages")


#: How long beat waits for RabbitMQ to have a message safe: after that, the next tick sends it again.
CONFIRM_SECONDS = 5.0


class RabbitmqBackend(Backend):
    """Each lane is a quorum queue of its own: see `names`."""

    title = "RabbitMQ"
    check_name = "rabbitmq"
    transports: ClassVar[Mapping[str, type]] = {
        "amqp": transport.LaneTransport,
        "amqps": transport.LaneSSLTransport,
    }
    worker_steps = frozenset({ReturnUnstarted})

    def transport_options(self, settings: Settings) -> dict[str, Any]:
        return {
            "name_prefix": name_prefix(settings.mongo_database),
            "confirm_seconds": CONFIRM_SECONDS,
            # A server with an alarm reads nothing, and a cut line takes nothing either.
            "read_timeout": 10,
            "write_timeout": CONFIRM_SECONDS,
            **ONE_MORE_TRY,
        }

    def impatient_options(self, seconds: float) -> dict[str, Any]:
        return super().impatient_options(seconds) | {"confirm_seconds": seconds}

    def limiter(self, settings: Settings, *, seconds: float = TIMEOUT_SECONDS) -> Limiter | None:
        """Only with FLOW_CONTROL_URL, since RabbitMQ cannot count."""
        if not settings.flow_control_url:
            return None
        prefix = name_prefix(settings.mongo_database)
        return RedisLimiter.of_url(settings.flow_control_url, prefix, settings.broker_tls, seconds=seconds)

    def queue_length(self, channel: Any, queue: str = QUEUE) -> int:
        return sum(channel.lengths(queue).values())

    def queue_lengths(self, channel: Any, queue: str = QUEUE) -> QueueLengths:
        found = channel.lengths(queue)
        found["fresh"] += found.pop(AHEAD)
        return QueueLengths(**found)

    def check_publishing(self, connection: Any) -> None:
        check_alarms(connection.default_channel)

    def checks(self, channel: Any, address: str) -> list[Check]:
        return check_rabbitmq(channel, address)

"""Judges a RabbitMQ: its release, and whether it takes messages."""

from typing import Any

from amqp.basic_message import Message

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

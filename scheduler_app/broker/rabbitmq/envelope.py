"""What kombu and Celery take for granted of a task's message in RabbitMQ."""

from typing import Any

from scheduler_app.broker.malformed import MAX_MESSAGE_BYTES, require


def check_envelope(message: Any) -> None:
    """`message` is py-amqp's. Raises Malformed for one that no client of ours has sent."""
    properties = message.properties
    require(len(message.body) <= MAX_MESSAGE_BYTES, "too_large", f"it has {len(message.body)} bytes")
    headers = properties.get("application_headers")
    require(isinstance(headers, dict) and bool(headers), "envelope", "it has no headers")
    # Ours are never compressed; a few KB of a stranger's could become gigabytes.
    require(not headers.get("compression"), "compressed", "it is compressed")
    require(properties.get("content_type") == "application/json", "content_type", "it is not JSON in UTF-8")

"""What kombu takes for granted of a message in Redis: a JSON object with headers, body, properties."""

from typing import Any

from scheduler_app.broker.malformed import require

_MISSING = type(None)


def check_envelope(payload: Any) -> None:
    """Raises Malformed for anything else: the channel would end with an error, and the worker with it."""
    require(isinstance(payload, dict), "envelope", "it is no map")
    properties = payload.get("properties")
    require(isinstance(properties, dict), "envelope", "its properties are no map")
    tag = properties.get("delivery_tag")
    require(isinstance(tag, str) and bool(tag), "envelope", "its delivery tag is no text")
    where = properties.get("delivery_info")
    require(isinstance(where, dict), "envelope", "its delivery info is no map")
    require(
        isinstance(where.get("exchange"), str) and isinstance(where.get("routing_key"), str),
        "envelope",
        "its delivery info names no exchange and routing key",
    )
    require(isinstance(payload.get("headers"), dict), "envelope", "its headers are no map")
    require(isinstance(payload.get("body"), (str, _MISSING)), "envelope", "its body is no text")
    require(
        properties.get("body_encoding") in (None, "base64"), "envelope", "its body is encoded in another way"
    )
    # Ours are never compressed; a few KB of a stranger's could become gigabytes.
    require(not payload["headers"].get("compression"), "compressed", "it is compressed")

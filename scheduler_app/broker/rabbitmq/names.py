"""The names that a deployment has in RabbitMQ, and the queues that make up one of ours.

A quorum queue has no priorities before RabbitMQ 4, and two that are no strict order since. Each lane is a
queue of its own, therefore. What is due later is in one more: a worker fetches many of these and holds them
until they are due, while of the others it fetches no more than it can start.
"""

from collections.abc import Mapping
from typing import Any

from scheduler_app.broker.queues import PRIORITIES
from scheduler_app.domain.lane import Lane

#: Ends the name of what is due later. No name of a queue has a colon (`domain.queues`).
AHEAD = "ahead"
#: In the order in which a worker asks for them.
LANES = (Lane.URGENT.value, Lane.FRESH.value, AHEAD, Lane.LATE.value)
#: Names that the server reserves for itself.
_RESERVED = "amq."


def name_prefix(database: str) -> str:
    """Returns what every queue and exchange of a deployment begins with: each has a MongoDB database of its
    own, and others may use the same virtual host. The colon ends it."""
    return database.replace("%", "%25").replace(":", "%3A") + ":"


def scoped(prefix: str, name: str) -> str:
    """The name in RabbitMQ of a queue or an exchange. The nameless ones, and the server's own, are shared."""
    return name if not name or name.startswith(_RESERVED) else prefix + name


def unscoped(prefix: str, name: str) -> str:
    """The name that `scoped` was given."""
    return name.removeprefix(prefix)


def lane_queue(prefix: str, queue: str, lane: str) -> str:
    """The queue in RabbitMQ that holds a lane of one of ours."""
    return f"{scoped(prefix, queue)}:{lane}"


def queue_of(prefix: str, lane_queue: str) -> str:
    """The queue of ours that a queue in RabbitMQ is a lane of."""
    name, _, lane = unscoped(prefix, lane_queue).rpartition(":")
    return name if lane in LANES else unscoped(prefix, lane_queue)


def lane_of(headers: Mapping[str, Any], priority: int | None) -> str:
    """The lane that a task's message goes to. Without a priority it is fresh."""
    if headers.get("eta") is not None:
        return AHEAD
    for lane, number in PRIORITIES.items():
        if number == priority:
            return lane.value
    return Lane.FRESH.value

"""What the suite breaks, in the order in which it does."""

from tests.acceptance.chaos.faults import (
    circumstances,
    links,
    messages,
    mongodb,
    processes,
    rabbitmq,
    redis,
    stopping,
)
from tests.acceptance.chaos.faults.registry import FAULTS, Fault, faults_over

__all__ = [
    "FAULTS",
    "Fault",
    "circumstances",
    "faults_over",
    "links",
    "messages",
    "mongodb",
    "processes",
    "rabbitmq",
    "redis",
    "stopping",
]

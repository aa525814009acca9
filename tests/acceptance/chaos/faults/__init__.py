"""What the suite breaks, in the order in which it does."""

from tests.acceptance.chaos.faults import broker, circumstances, links, messages, mongodb, processes, stopping
from tests.acceptance.chaos.faults.registry import FAULTS, Fault

__all__ = [
    "FAULTS",
    "Fault",
    "broker",
    "circumstances",
    "links",
    "messages",
    "mongodb",
    "processes",
    "stopping",
]

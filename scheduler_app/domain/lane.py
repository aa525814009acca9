"""Lanes: which messages of the queue are taken first."""

from datetime import timedelta
from enum import StrEnum
from typing import NamedTuple


class Lane(StrEnum):
    """No message is taken while one waits in a lane before its own, in the order of these lines. That starves
    nobody for long, because each lane is kept short: a backlog waits in MongoDB, where it is shared out and
    can still be cancelled."""

    URGENT = "urgent"
    """What a person has just asked for."""
    FRESH = "fresh"
    """What falls due now."""
    LATE = "late"
    """What was due before, and what may be what its workers died of."""


#: What is overdue for longer is late.
FRESH_FOR = timedelta(seconds=10)


class QueueLengths(NamedTuple):
    """Messages in the broker that no worker has fetched, by lane."""

    urgent: int = 0
    fresh: int = 0
    late: int = 0

    @property
    def total(self) -> int:
        return sum(self)

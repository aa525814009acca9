"""What an event does while an earlier one of its schedule is not finished.

The earlier one of two events is the one with the earlier run time; at the same run time it is the one whose
id sorts first. An event looks at earlier ones only, so that two workers that judge two events at the same
moment cannot both hold back the other's.
"""

from datetime import timedelta
from typing import Literal

RunOverlap = Literal["allow", "skip", "queue", "cancel_earlier"]
#: Which earlier events count: those that are not finished, or those with an attempt running.
OverlapScope = Literal["event", "attempt"]

DEFAULT_QUEUE_LIMIT = 100
#: What is looked up to judge one event is bounded by it.
MAX_QUEUE_LIMIT = 1_000

#: A waiting event is woken when the earlier one ends. Where that is lost with a worker, it looks by itself,
#: within a part of the time that it has waited.
WAITED_SHARE = 4
SHORTEST_WAIT, LONGEST_WAIT = timedelta(seconds=10), timedelta(seconds=60)
#: Only the first in the line can be the next; those behind it look up as much less often.
MOST_PLACES = 10


def next_look(waited: timedelta, place: int) -> timedelta:
    """After how long an event that has `waited` looks again whether it may run, where nobody wakes it.

    `place` counts those that wait, from 1.
    """
    return min(max(waited / WAITED_SHARE, SHORTEST_WAIT), LONGEST_WAIT) * min(place, MOST_PLACES)

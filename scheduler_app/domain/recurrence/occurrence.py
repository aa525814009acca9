"""An occurrence: one instant of a recurrence, with what the local clock shows then."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Occurrence:
    """`instant` in UTC, `local` in the recurrence's zone, and what a clock change did to it (None: nothing).

    `dst`: "gap_shifted" (its wall-clock time does not exist, so it fires later by the gap's length),
    "overlap_first" or "overlap_last" (its wall-clock time exists twice, and this is the first or the last).
    `rolled_from`: the local time from which a calendar's closed day moved it.
    """

    instant: datetime
    local: datetime
    dst: str | None
    rolled_from: datetime | None = None

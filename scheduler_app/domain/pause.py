"""A pause: why a schedule rests, and when it goes on by itself."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

#: A person or a program asked for it.
BY_REQUEST: Final = "by request"
#: So many events in a row ended in `error` as `pause_after_failures` says.
FAILURES: Final = "failures"
MAX_NOTE: Final = 500


@dataclass(frozen=True, slots=True)
class Pause:
    """What is kept of a pause while it lasts."""

    reason: str = BY_REQUEST
    """Why, in words that programs may compare."""
    note: str | None = None
    """What a person wrote beside it, or what led to it."""
    until: datetime | None = None
    """When it ends by itself; None: it lasts until somebody resumes the schedule."""

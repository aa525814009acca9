"""Beside the four duties, once a minute: schedules computed with older zone data than ours are checked."""

from collections.abc import Callable
from datetime import datetime

from scheduler_app.clock import monotonic
from scheduler_app.usecases.rezoning import SCHEDULES_A_PAGE, Rezoning

REZONE_SECONDS = 60.0


class Rezoner:
    def __init__(self, rezoning: Rezoning) -> None:
        self._rezoning = rezoning
        self._due = monotonic()

    def run(self, now: Callable[[], datetime]) -> bool:
        """Checks a page; True when there are more. Raises a STORE_FAULT."""
        if monotonic() < self._due:
            return False
        more = self._rezoning.rezone_page(now()) == SCHEDULES_A_PAGE
        if not more:
            self._due = monotonic() + REZONE_SECONDS
        return more

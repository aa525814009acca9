"""Beside the four duties: what edits left to beats is made up, a page a tick."""

from collections.abc import Callable
from datetime import datetime

from scheduler_app.clock import monotonic
from scheduler_app.usecases.owed_expansion import OwedExpansion

#: How often beats look for it, while there is none.
LOOK_SECONDS = 1.0


class OwedExpander:
    def __init__(self, expansion: OwedExpansion) -> None:
        self._expansion = expansion
        self._due = monotonic()

    def run(self, now: Callable[[], datetime]) -> bool:
        """Expands a page; True when there is more, after what is due now. Raises a STORE_FAULT."""
        if monotonic() < self._due:
            return False
        more = self._expansion.expand_page(now())
        if not more:
            self._due = monotonic() + LOOK_SECONDS
        return more

"""Beside the four duties, once a minute: documents that no duty would come across are looked for."""

from collections.abc import Callable
from datetime import datetime

from scheduler_app.clock import monotonic
from scheduler_app.usecases.inspection import Inspection

INSPECT_SECONDS = 60.0


class Inspector:
    def __init__(self, inspection: Inspection) -> None:
        self._inspection = inspection
        self._due = monotonic()

    def run(self, now: Callable[[], datetime]) -> bool:
        """A pass, once a minute. Raises a STORE_FAULT."""
        if monotonic() >= self._due:
            self._inspection.inspect(now())
            self._due = monotonic() + INSPECT_SECONDS
        return False

"""Beside the four duties: the schedules of calendars that changed are looked at, a page a tick."""

from collections.abc import Callable
from datetime import datetime

from scheduler_app.clock import monotonic
from scheduler_app.usecases.recalendaring import Recalendaring

#: How often beats look for changed calendars, while there are none.
LOOK_SECONDS = 2.0
#: And for calendars whose holidays come of older data than theirs.
RENEW_SECONDS = 60.0


class Recalendarer:
    def __init__(self, recalendaring: Recalendaring) -> None:
        self._recalendaring = recalendaring
        self._due = self._renewal_due = monotonic()

    def run(self, now: Callable[[], datetime]) -> bool:
        """Remakes a page; True when there is more, after what is due now. Raises a STORE_FAULT."""
        if monotonic() < self._due:
            return False
        if monotonic() >= self._renewal_due:
            self._recalendaring.renew_holidays(now())
            self._renewal_due = monotonic() + RENEW_SECONDS
        more = self._recalendaring.remake_page(now())
        if not more:
            self._due = monotonic() + LOOK_SECONDS
        return more

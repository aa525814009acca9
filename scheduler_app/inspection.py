"""Inspect: find what is stored in such a way that no duty would ever come across it."""

from datetime import datetime, timedelta
from typing import Any

from scheduler_app.domain.schedule import TENANT
from scheduler_app.store import Store

DOCUMENTS_A_PASS = 1_000
#: An event is looked at once, when its run time has passed by so much.
AGE = timedelta(minutes=2)
#: A beat that was away looks back no further.
LOOK_BACK = timedelta(hours=1)


class Inspection:
    """What it finds is set aside, and told. Any number of beats may do it at once."""

    def __init__(self, store: Store) -> None:
        self._inspections = store.inspections
        self._schedule_id: Any = None
        self._seen_until: datetime | None = None

    def inspect(self, now: datetime) -> int:
        """A pass: all that indexes tell, and a page of the schedules. Returns how many documents were found.
        Raises a STORE_FAULT."""
        found = self._inspections.misplaced_events(limit=DOCUMENTS_A_PASS)
        found += self._inspections.misplaced_schedules(limit=DOCUMENTS_A_PASS)
        self._schedule_id, corrupt = self._inspections.schedules_after(
            self._schedule_id, limit=DOCUMENTS_A_PASS
        )
        until = now - AGE
        since = max(self._seen_until or now - LOOK_BACK, now - LOOK_BACK)
        forgotten = self._inspections.forgotten_events(TENANT, since, until, limit=DOCUMENTS_A_PASS)
        if forgotten < DOCUMENTS_A_PASS:
            self._seen_until = until
        return found + corrupt + forgotten

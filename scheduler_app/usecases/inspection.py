"""Inspect: find documents that no duty's query would ever return."""

from datetime import datetime, timedelta
from typing import Any

from scheduler_app.store import Store
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

DOCUMENTS_A_PASS = 1_000
#: An event is looked at once, so long after its run time.
AGE = timedelta(minutes=2)
#: A beat that was away looks back no further.
LOOK_BACK = timedelta(hours=1)
#: The inspection reads all waiting events, once an hour.
PASSES_A_LOOK_FOR_ARRAYS = 60


class Inspection:
    """Sets aside and reports what it finds. Any number of beats may do it at once."""

    def __init__(self, store: Store) -> None:
        self._inspections = store.inspections
        self._schedule_id: Any = None
        self._seen_until: datetime | None = None
        self._passes = 0

    def inspect(self, now: datetime) -> int:
        """Makes one pass: everything that indexes can find, and one page of the schedules. Returns how many
        documents were found. Raises a STORE_FAULT."""
        found = self._arrays()
        found += self._inspections.misplaced_events(limit=DOCUMENTS_A_PASS)
        found += self._inspections.misplaced_schedules(limit=DOCUMENTS_A_PASS)
        self._schedule_id, corrupt = self._inspections.schedules_after(
            self._schedule_id, limit=DOCUMENTS_A_PASS
        )
        until = now - AGE
        since = max(self._seen_until or now - LOOK_BACK, now - LOOK_BACK)
        forgotten = self._inspections.forgotten_events(since, until, limit=DOCUMENTS_A_PASS)
        if forgotten < DOCUMENTS_A_PASS:
            self._seen_until = until
        return found + corrupt + forgotten

    def _arrays(self) -> int:
        """Finds events with an array where an index expects one value. The index goes on reporting arrays
        when the events are gone, so that only the first pass looks for them, and then one pass of many."""
        passes, self._passes = self._passes, self._passes + 1
        if passes % PASSES_A_LOOK_FOR_ARRAYS:
            return 0
        fields = self._inspections.array_fields()
        if not fields:
            self._passes = 0
            return 0
        log.error(
            "index.arrays",
            message="An event has, or had, an array in a field of the index due_v2, which is slower until it"
            " is rebuilt: stop the beats and workers, drop it, and start them again",
            fields=fields,
        )
        return self._inspections.events_with_arrays(fields, limit=DOCUMENTS_A_PASS)

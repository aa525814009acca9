"""The fourth duty of a tick: deleted schedules go once their last event is gone (the TTL takes those)."""

from collections.abc import Callable
from datetime import datetime, timedelta

from scheduler_app.clock import monotonic
from scheduler_app.store import Store
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

PRUNE_SECONDS = 60.0
SCHEDULES_A_PASS = 500


class Pruner:
    def __init__(self, store: Store, *, retention_days: int) -> None:
        self._store = store
        self._retention = timedelta(days=retention_days)
        self._last: float | None = None

    def run(self, now: Callable[[], datetime]) -> bool:
        """Removes a page of deleted schedules, once a minute. Raises a STORE_FAULT.

        A schedule that was deleted within the retention is not even looked at: its events may stay that long.
        """
        if self._last is not None and monotonic() - self._last < PRUNE_SECONDS:
            return False
        self._last = monotonic()
        for schedule_id in self._store.schedules.deleted_before(
            now() - self._retention, limit=SCHEDULES_A_PASS
        ):
            if not self._store.events.any_of_schedule(schedule_id):
                self._store.schedules.remove(schedule_id)
                log.info("schedule.pruned", message="A deleted schedule is gone", schedule_id=schedule_id)
        return False

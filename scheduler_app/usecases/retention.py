"""Prune: remove deleted schedules for good. MongoDB itself removes finished events, by a TTL index."""

from datetime import datetime, timedelta

from scheduler_app.store import Store
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

SCHEDULES_A_PAGE = 500


class Retention:
    """Removes deleted schedules once their last event is gone."""

    def __init__(self, store: Store, *, retention_days: int) -> None:
        """`retention_days`: how long finished events are kept, as in RETENTION_DAYS."""
        self._store = store
        self._retention = timedelta(days=retention_days)

    def prune_page(self, now: datetime) -> None:
        """Removes up to a page of deleted schedules. Raises a STORE_FAULT.

        Schedules that were deleted within the retention are not even looked at: their events may exist for
        that long.
        """
        for schedule_id in self._store.schedules.deleted_before(
            now - self._retention, limit=SCHEDULES_A_PAGE
        ):
            if not self._store.events.any_of_schedule(schedule_id):
                self._store.backfills.remove(schedule_id)
                self._store.schedules.remove(schedule_id)
                log.info("schedule.pruned", message="A deleted schedule was removed", schedule_id=schedule_id)

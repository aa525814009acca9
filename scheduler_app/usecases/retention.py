"""Prune: remove deleted schedules and calendars for good. MongoDB itself removes finished events, by a TTL
index."""

from datetime import datetime, timedelta

from scheduler_app.store import Store
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

SCHEDULES_A_PAGE = 500
CALENDARS_A_PAGE = 100
#: No request that has read a calendar just before its deletion writes its schedule later than this after it.
CALENDAR_GRACE = timedelta(minutes=10)


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

    def prune_calendars(self, now: datetime) -> None:
        """Removes deleted calendars. One that a schedule observes, which was written at the moment of the
        deletion, is there again. Raises a STORE_FAULT."""
        calendars = self._store.calendars
        for tenant, name in calendars.deleted_before(now - CALENDAR_GRACE, limit=CALENDARS_A_PAGE):
            if calendars.users(name, tenant=tenant):
                calendars.restore(name, tenant=tenant)
                log.warning(
                    "calendar.restored",
                    message="A calendar is back: a schedule began to observe it while it was deleted",
                    calendar=name,
                )
            else:
                calendars.remove(name, tenant=tenant)
                log.info("calendar.pruned", message="A deleted calendar was removed", calendar=name)

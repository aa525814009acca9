"""Rezone: when a time zone's rules change, futures that were computed with the old rules are computed
again."""

from datetime import datetime

from scheduler_app.domain.recurrence import zone_data_version
from scheduler_app.domain.schedule import Schedule
from scheduler_app.store import STORE_FAULTS, Store
from scheduler_app.telemetry import get_logger
from scheduler_app.usecases.remaking import Moved, Remaking, Unchanged

log = get_logger(__name__)

SCHEDULES_A_PAGE = 200


class Rezoning:
    """A beat checks the schedules that were computed with older zone data than its own. It leaves those
    with newer data alone: during a rolling upgrade the newest data win, and two beats never undo each
    other's work."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._remaking = Remaking(store)

    def rezone_page(self, now: datetime) -> int:
        """Checks a page of schedules; returns how many. Raises a STORE_FAULT."""
        version = zone_data_version()
        schedules = self._store.cursors.with_older_zone_data(version, limit=SCHEDULES_A_PAGE)
        for schedule in schedules:
            try:
                self._rezone(schedule, version, now)
            except STORE_FAULTS:
                raise
            except (
                Exception
            ) as error:  # its rule no longer evaluates: expansion sets it aside with its reason
                log.warning(
                    "schedule.not_rezoned",
                    message="A schedule cannot be checked against new zone data",
                    schedule_id=schedule.id,
                    error=str(error)[:300],
                )
                self._store.cursors.keep_with_zone_data(schedule, version)
        return len(schedules)

    def _rezone(self, schedule: Schedule, version: str, now: datetime) -> None:
        done = self._remaking.remake(schedule, now, "the zone's rules have changed")
        if isinstance(done, Unchanged):
            self._store.cursors.keep_with_zone_data(schedule, version)
        elif isinstance(done, Moved):
            log.warning(
                "schedule.rezoned",
                message="A zone's rules have changed; the schedule's future was made anew",
                schedule_id=schedule.id,
                zone_data=version,
                zone_data_before=schedule.zone_data,
                moved_from=done.moved_from,
                moved_to=done.moved_to,
            )

"""Rezone: when a time zone's rules change, futures that were computed with the old rules are computed
again."""

from collections.abc import Sequence
from datetime import datetime

from scheduler_app.config import EXPAND_LEASE_SECONDS
from scheduler_app.domain.recurrence import zone_data_version
from scheduler_app.domain.schedule import Schedule
from scheduler_app.store import Store
from scheduler_app.telemetry import get_logger
from scheduler_app.usecases.remaking import SCHEDULES_A_PAGE, Facts, Remaking

log = get_logger(__name__)


class Rezoning:
    """A beat checks the schedules that were computed with older zone data than its own. It leaves those
    with newer data alone: during a rolling upgrade the newest data win, and two beats never undo each
    other's work."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._remaking = Remaking(store)

    def rezone_page(self, now: datetime) -> int:
        """Checks a page of schedules; returns how many are done with. Raises a STORE_FAULT."""
        version, remakes = zone_data_version(), self._store.remakes
        ids = remakes.with_older_zone_data(version, now, limit=SCHEDULES_A_PAGE)
        if not ids:
            return 0

        def claim(part: Sequence[str]) -> tuple[str, list[Schedule]]:
            return remakes.claim_with_older_zone_data(part, version, now, lease_seconds=EXPAND_LEASE_SECONDS)

        def keep(part: Sequence[str], token: str) -> int:
            return remakes.keep_with_zone_data(part, token, version)

        done = self._remaking.remake(ids, Facts(claim, keep, "the zone's rules have changed"), now)
        for schedule, error in done.failed:
            log.warning(
                "schedule.not_rezoned",
                message="A schedule cannot be checked against new zone data",
                schedule_id=schedule.id,
                error=str(error)[:300],
            )
        for moved in done.moved:
            log.warning(
                "schedule.rezoned",
                message="A zone's rules have changed; the schedule's events were planned again",
                schedule_id=moved.schedule.id,
                zone_data=version,
                zone_data_before=moved.schedule.zone_data,
                moved_from=moved.moved_from,
                moved_to=moved.moved_to,
            )
        return len(done.moved) + done.unchanged

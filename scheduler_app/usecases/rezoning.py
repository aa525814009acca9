"""Rezone: when a zone's rules change, the future that was computed with the old ones is made anew."""

from datetime import datetime, timedelta

from scheduler_app.domain.event import LIVING, Kind
from scheduler_app.domain.recurrence import zone_data_version
from scheduler_app.domain.schedule import TICK, Schedule
from scheduler_app.store import STORE_FAULTS, Store
from scheduler_app.store.paging import Window
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

SCHEDULES_A_PAGE = 200
#: More events of one schedule than this are not compared one by one: the cut is taken.
EVENTS_COMPARED = 500


class Rezoning:
    """A beat with newer zone data than a schedule was computed with checks its future. One with older data
    leaves it alone: during a rolling upgrade the newest wins, and no two of them take turns."""

    def __init__(self, store: Store) -> None:
        self._store = store

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
        if schedule.cut_pending or (schedule.next_run_at and schedule.next_run_at <= now):
            return  # expansion is behind: what is owed up to now comes first
        planned, would_be = self._planned(schedule, now), self._would_be(schedule, now)
        if planned == would_be:
            self._store.cursors.keep_with_zone_data(schedule, version)
            return
        # A cut, as an edit: what was due up to now stays owed, the rest is withdrawn and made anew.
        revised = schedule.revise(now)
        if not self._store.schedules.revise(revised, version=schedule.version):
            return  # somebody edits it at this moment, and computes with the data of that process
        self._store.withdrawals.cancel_past_cut(
            schedule.id, revised.revision, revised.revised_at, now, "Withdrawn: the zone's rules have changed"
        )
        log.warning(
            "schedule.rezoned",
            message="A zone's rules have changed; the schedule's future was made anew",
            schedule_id=schedule.id,
            zone_data=version,
            zone_data_before=schedule.zone_data,
            moved_from=_shown(planned - would_be),
            moved_to=_shown(would_be - planned),
        )

    def _planned(self, schedule: Schedule, now: datetime) -> set[datetime]:
        """The future as it stands: the events, and the next occurrence that is none yet."""
        window = Window(limit=EVENTS_COMPARED, since=now + TICK)
        page = self._store.event_lists.page(
            window, tenant=schedule.tenant, schedule_id=schedule.id, states=LIVING
        )
        times = {
            row["run_time"]
            for row in page.rows
            if row["kind"] == Kind.SCHEDULED and row["revision"] == schedule.revision
        }
        return times | ({schedule.next_run_at} if schedule.next_run_at else set())

    def _would_be(self, schedule: Schedule, now: datetime) -> set[datetime]:
        """The same stretch of future as today's data compute it."""
        recurrence = schedule.recurrence()
        if schedule.next_run_at is None:
            last = schedule.finishes_at or now
            return set(recurrence.between(now + TICK, last + timedelta(days=1), limit=EVENTS_COMPARED))
        times = set(recurrence.between(now + TICK, schedule.next_run_at, limit=EVENTS_COMPARED))
        following = recurrence.after(max(now, schedule.next_run_at - TICK))
        return times | ({following} if following else set())


def _shown(times: set[datetime]) -> list[str]:
    return [moment.isoformat() for moment in sorted(times)[:5]]

"""Rezone: when a time zone's rules change, futures that were computed with the old rules are computed
again."""

from datetime import datetime, timedelta

from scheduler_app.domain.event import LIVING, Kind
from scheduler_app.domain.recurrence import zone_data_version
from scheduler_app.domain.schedule import TICK, Schedule
from scheduler_app.store import STORE_FAULTS, Store
from scheduler_app.store.paging import Window
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

SCHEDULES_A_PAGE = 200
#: With more events of one schedule than this, the cut is made without comparing them.
EVENTS_COMPARED = 500


class Rezoning:
    """A beat checks the schedules that were computed with older zone data than its own. It leaves those
    with newer data alone: during a rolling upgrade the newest data win, and two beats never undo each
    other's work."""

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
        planned, would_be = self.compared(schedule, now)
        if planned == would_be:
            self._store.cursors.keep_with_zone_data(schedule, version)
            return
        # A cut, as an edit makes it: events due up to now stay, later ones are cancelled and computed
        # again.
        revised = schedule.revise(now)
        if not self._store.schedules.revise(revised, version=schedule.version):
            return  # somebody edits it at this moment, and computes with the data of that process
        self._store.cancellations.cancel_past_cut(
            schedule.id,
            revised.revision,
            revised.revised_at,
            now,
            "Withdrawn: the zone's rules have changed",
            tenant=schedule.tenant,
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

    def compared(self, schedule: Schedule, now: datetime) -> tuple[set[datetime], set[datetime]]:
        """The occurrences after `now` as they are planned, and as the zone data of this process compute the
        same stretch of future. Raises InvalidRecurrence."""
        return self._planned(schedule, now), self._would_be(schedule, now)

    def _planned(self, schedule: Schedule, now: datetime) -> set[datetime]:
        """The future as it stands: the events, and the next occurrence that is none yet."""
        window = Window(limit=EVENTS_COMPARED, since=now + TICK)
        page = self._store.event_lists.page(
            window, tenant=schedule.tenant, schedule_id=schedule.id, states=LIVING
        )
        times = {
            each.run_time
            for each in page.rows
            if each.kind is Kind.SCHEDULED and each.revision == schedule.revision
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

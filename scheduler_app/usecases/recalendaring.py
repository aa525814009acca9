"""When a calendar's days change, the futures of the schedules that this moves are made anew, page by page."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from scheduler_app.domain.calendars import NamedCalendar, holiday_data_key
from scheduler_app.domain.schedule import Schedule
from scheduler_app.parallel import Parallel
from scheduler_app.store import STORE_FAULTS, Store
from scheduler_app.telemetry import get_logger
from scheduler_app.usecases.remaking import Moved, Remaking, Unchanged

log = get_logger(__name__)

#: Small pages: what is due now is expanded and dispatched between them.
SCHEDULES_A_PAGE: Final = 200
#: Each schedule waits for MongoDB's journal: some at once.
PARTS_AT_ONCE: Final = 4
#: Fewer schedules are not worth parts.
WORTH_PARTS: Final = 10
CALENDARS_A_PAGE: Final = 20
#: A request that has read a calendar just before a change may write its schedule after it: the look goes on
#: for as long.
GRACE: Final = timedelta(seconds=60)


class Recalendaring:
    """Any number of beats may do it at once: a schedule's cut is written once, by its version."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._remaking = Remaking(store)
        self._parallel = Parallel(PARTS_AT_ONCE, worth=WORTH_PARTS, name="recalendar")

    def renew_holidays(self, now: datetime) -> int:
        """Calendars whose holidays come of older data than this process has are looked at like edited ones;
        returns how many. One of newer data leaves them alone, as with zone data. Raises a STORE_FAULT."""
        key = holiday_data_key()
        found = self._store.calendars.with_older_holiday_data(key, limit=CALENDARS_A_PAGE)
        for named in found:
            if self._store.calendars.renew(named, key, now):
                log.info(
                    "calendar.renewed",
                    message="Newer holiday data are installed; the schedules that observe the calendar are"
                    " looked at",
                    calendar=named.name,
                    holiday_data=key,
                    holiday_data_before=named.holiday_data,
                )
        return len(found)

    def remake_page(self, now: datetime) -> bool:
        """Looks at a page of schedules of the calendars that changed; True when there may be more to do at
        once. Raises a STORE_FAULT."""
        key = holiday_data_key()
        for named in self._store.calendars.changed(limit=CALENDARS_A_PAGE):
            if named.holiday_data is not None and named.holiday_data > key:
                continue  # a beat with those data does it
            schedules = self._store.cursors.with_other_days(named, now, limit=SCHEDULES_A_PAGE)
            if schedules:
                return self._remake(named, schedules, now) > 0
            over = named.changed_at is not None and named.changed_at + GRACE <= now
            if over and not self._store.calendars.left(named) and self._store.calendars.settle(named):
                log.info(
                    "calendar.remade",
                    message="All schedules that observe a changed calendar were looked at",
                    calendar=named.name,
                    moved=named.remade.moved,
                    unchanged=named.remade.unchanged,
                )
        return False

    def _remake(self, named: NamedCalendar, schedules: list[Schedule], now: datetime) -> int:
        """Returns how many are done with."""
        counts = self._parallel.each(
            lambda part: self._compare(named, part, now), self._parallel.of(schedules)
        )
        moved, unchanged = sum(each[0] for each in counts), sum(each[1] for each in counts)
        if moved or unchanged:
            self._store.calendars.note(named, moved=moved, unchanged=unchanged)
            log.info(
                "calendar.remaking",
                message="Schedules were compared with their changed calendar",
                calendar=named.name,
                moved=moved,
                unchanged=unchanged,
            )
        return moved + unchanged

    def _compare(self, named: NamedCalendar, part: Sequence[Schedule], now: datetime) -> tuple[int, int]:
        """How many moved, and how many did not."""
        moved = unchanged = 0
        for schedule in part:
            try:
                done = self._remaking.remake(
                    schedule, now, f"the holidays of the calendar {named.name} have changed"
                )
            except STORE_FAULTS:
                raise
            except Exception as error:  # it no longer evaluates: expansion sets it aside with its reason
                log.warning(
                    "schedule.not_remade",
                    message="A schedule cannot be checked against its calendar",
                    schedule_id=schedule.id,
                    calendar=named.name,
                    error=str(error)[:300],
                )
                done = Unchanged()
            if isinstance(done, Unchanged):
                unchanged += self._store.cursors.keep_with_days(schedule, named)
            elif isinstance(done, Moved):
                moved += 1
        return moved, unchanged

"""When a calendar's days change, the events of the schedules that it moves are planned again, by pages."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from scheduler_app.config import EXPAND_LEASE_SECONDS
from scheduler_app.domain.calendars import NamedCalendar, holiday_data_key
from scheduler_app.domain.schedule import Schedule
from scheduler_app.store import Store
from scheduler_app.telemetry import get_logger
from scheduler_app.usecases.remaking import SCHEDULES_A_PAGE, Facts, Remaking

log = get_logger(__name__)

CALENDARS_A_PAGE: Final = 20
#: A request that has read a calendar just before a change may write its schedule after it: the look goes on
#: for as long.
GRACE: Final = timedelta(seconds=60)


class Recalendaring:
    """Any number of beats may do it at once: they claim the schedules that they look at."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._remaking = Remaking(store)

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
            ids = self._store.remakes.with_other_days(named, now, limit=SCHEDULES_A_PAGE)
            if ids:
                return self._remake(named, ids, now) > 0
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

    def _remake(self, named: NamedCalendar, ids: list[str], now: datetime) -> int:
        """Returns how many are done with."""
        remakes = self._store.remakes

        def claim(part: Sequence[str]) -> tuple[str, list[Schedule]]:
            return remakes.claim_with_other_days(part, named, now, lease_seconds=EXPAND_LEASE_SECONDS)

        def keep(part: Sequence[str], token: str) -> int:
            return remakes.keep_with_days(part, token, named)

        facts = Facts(claim, keep, f"the holidays of the calendar {named.name} have changed")
        done = self._remaking.remake(ids, facts, now)
        for schedule, error in done.failed:
            log.warning(
                "schedule.not_remade",
                message="A schedule cannot be checked against its calendar",
                schedule_id=schedule.id,
                calendar=named.name,
                error=str(error)[:300],
            )
        moved = len(done.moved)
        if moved or done.unchanged:
            self._store.calendars.note(named, moved=moved, unchanged=done.unchanged)
            log.info(
                "calendar.remaking",
                message="Schedules were compared with their changed calendar",
                calendar=named.name,
                moved=moved,
                unchanged=done.unchanged,
            )
        return moved + done.unchanged

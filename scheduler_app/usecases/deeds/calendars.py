"""What people do with calendars: make, edit, look up, delete."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from scheduler_app.domain.calendars import Calendar, NamedCalendar, RemakeCounts, holiday_data_key
from scheduler_app.domain.errors import Conflict, NotFound, StaleVersion, stale_version
from scheduler_app.domain.ids import WholeId, check_new_name, name_of, tenant_of
from scheduler_app.domain.schedule_draft import ScheduleDraft
from scheduler_app.store import Store
from scheduler_app.store.calendars import MOST_COUNTED, CorruptCalendar
from scheduler_app.store.paging import Page, PageRequest
from scheduler_app.telemetry import get_logger
from scheduler_app.usecases.deeds.named import with_calendar

log = get_logger(__name__)

#: How often an edit is tried again when another edit comes in between.
TRIES: Final = 20


@dataclass(frozen=True)
class CalendarService:
    """Edits take effect at once for new schedules; beats plan the events of the others again."""

    store: Store

    def page(self, tenant: str, window: PageRequest) -> Page[NamedCalendar | CorruptCalendar]:
        """The tenant's calendars, newest first."""
        return self.store.calendars.page(tenant, window)

    def users(self, calendar_id: WholeId) -> int:
        """How many schedules observe the calendar, `MOST_COUNTED` at most."""
        return self.store.calendars.users(calendar_id)

    def schedules_to_recompute(self, named: NamedCalendar) -> int:
        """How many schedules still have to be made anew after the last change, `MOST_COUNTED` at most."""
        return self.store.calendars.schedules_to_recompute(named)

    def find(self, calendar_id: WholeId) -> NamedCalendar | CorruptCalendar | None:
        """As it is stored."""
        return self.store.calendars.get(calendar_id)

    def get(self, calendar_id: WholeId) -> NamedCalendar:
        """Raises NotFound, and Conflict for one whose document can no longer be read."""
        found = self.find(calendar_id)
        if found is None:
            raise NotFound(f"there is no calendar {name_of(calendar_id)[:64]}")
        if isinstance(found, CorruptCalendar):
            raise Conflict(
                f"the stored calendar {found.name} is corrupt: {found.reason}. Mend that field in MongoDB, or"
                " delete the calendar and create it again"
            )
        return found

    def named_in(self, tenant: str, draft: ScheduleDraft) -> ScheduleDraft:
        """The draft with the tenant's calendar that it names. Raises InvalidField when there is none of that
        name."""
        return with_calendar(tenant, draft, self.store)

    def put(
        self,
        calendar_id: WholeId,
        calendar: Calendar,
        now: datetime,
        *,
        version: int | None = None,
        absent: bool = False,
    ) -> tuple[NamedCalendar, bool]:
        """The calendar as it is from now on, and whether it is new. `version`: only over that one; `absent`:
        only where there is none. Nothing is written where nothing changes. Raises StaleVersion, Conflict, and
        InvalidField for a name that nothing new may have."""
        tenant, name = tenant_of(calendar_id), name_of(calendar_id)
        for _ in range(TRIES):
            old = self.find(calendar_id)
            if old is None:
                if version is not None:
                    raise StaleVersion(f"If-Match asks for a calendar {name}, and there is none")
                check_new_name(name)
                data = holiday_data_key() if calendar.uses_holiday_data else None
                named = NamedCalendar(tenant, name, calendar, now, now, holiday_data=data)
                stored = self.store.calendars.insert(named)
                if stored is not None:
                    log.info("calendar.created", message="A calendar was created", calendar=calendar_id)
                    return stored, True
                continue
            if absent:
                raise StaleVersion(f"there is a calendar {name} already")
            existing = self.get(calendar_id)
            if version not in (None, existing.version):
                raise stale_version("calendar", existing.version, version)
            if existing.calendar == calendar:
                return existing, False
            changed = _edited_calendar(existing, calendar, now)
            if self.store.calendars.update(changed, now, version=existing.version):
                log.info(
                    "calendar.edited",
                    message="A calendar was edited; beats look at the schedules that observe it",
                    calendar=calendar_id,
                    version=changed.version,
                )
                return changed, False
        raise Conflict("the calendar is being changed by others at this moment; try again")

    def delete(self, calendar_id: WholeId, now: datetime, *, version: int | None = None) -> None:
        """From now on no request finds the calendar; `Retention` removes it when no request can be about to
        write a schedule that observes it, and none was written. Raises NotFound, StaleVersion, and Conflict
        while schedules observe it."""
        name = name_of(calendar_id)
        existing = self.find(calendar_id)
        if existing is None:
            raise NotFound(f"there is no calendar {name[:64]}")
        if isinstance(existing, NamedCalendar) and version not in (None, existing.version):
            raise StaleVersion(f"the calendar is at version {existing.version}, not {version}")
        users = self.users(calendar_id)
        if users:
            counted = f"{users} or more" if users == MOST_COUNTED else str(users)
            schedules = "1 schedule observes" if users == 1 else f"{counted} schedules observe"
            raise Conflict(
                f"{schedules} the calendar {name}: give them another by PUT, or calendar null, or delete them"
            )
        if names := self.store.heartbeats.observing(calendar_id):
            raise Conflict(
                f"the heartbeat {names[0]} observes the calendar {name}: give it another by PUT, or none"
            )
        if names := self.store.notification_rules.observing(calendar_id):
            raise Conflict(
                f"the hours of the notification {names[0]} observe the calendar {name}: set them without it"
            )
        if not self.store.calendars.delete(calendar_id, now, version=version):
            raise StaleVersion("the calendar was changed or deleted meanwhile; read it again")
        log.info("calendar.deleted", message="A calendar was deleted", calendar=calendar_id)


def _edited_calendar(existing: NamedCalendar, calendar: Calendar, now: datetime) -> NamedCalendar:
    return replace(
        existing,
        calendar=calendar,
        version=existing.version + 1,
        days_version=existing.days_version + 1,
        holiday_data=holiday_data_key() if calendar.uses_holiday_data else None,
        updated_at=now,
        changed_at=now,
        remade=RemakeCounts(),
    )

"""A calendar under its name, and how a schedule observes it."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Final

from scheduler_app.domain.errors import InvalidRecurrence
from scheduler_app.domain.recurrence import AnyRecurrence, Observance, OnHoliday, Recurrence
from scheduler_app.domain.tenants import whole_id

from .calendar import Calendar
from .calendar_days import CalendarDays, days_of

#: A warning is given when the holidays end within this number of years.
_SOON_YEARS: Final = 2


@dataclass(frozen=True, slots=True)
class Remade:
    """What became of the schedules that observe a calendar since its days changed last."""

    moved: int = 0
    """Schedules whose future was made anew."""
    unchanged: int = 0


@dataclass(frozen=True)
class NamedCalendar:
    """A calendar as it is stored."""

    tenant: str
    name: str
    calendar: Calendar
    created_at: datetime
    updated_at: datetime
    version: int = 1
    """Counts people's edits."""
    days_version: int = 1
    """Rises whenever its days may have changed: by an edit, or by newer holiday data."""
    holiday_data: str | None = None
    """The release of the `holidays` library that its days were computed with, as a key that sorts; None for
    a calendar that needs none."""
    changed_at: datetime | None = None
    """When its days changed, as long as beats still look for schedules that this moves."""
    remade: Remade = Remade()
    deleted_at: datetime | None = None
    """No new schedule may name it. Those that a request wrote at that moment go on with it."""

    @cached_property
    def days(self) -> CalendarDays:
        """Its days. Kept, because each occurrence of each schedule asks, and to find them by two thousand
        dates takes a millisecond."""
        return days_of(self.calendar)

    def warnings(self, now: datetime, last: datetime | None = None) -> tuple[str, ...]:
        """Says from which year on its holidays are not known, where that comes soon, or before `last`."""
        soon = now.year + _SOON_YEARS
        return self.calendar.unknown_years(now.year, max(soon, last.year if last is not None else soon))

    @property
    def id(self) -> str:
        """Its id among the calendars of all tenants."""
        return whole_id(self.tenant, self.name)


@dataclass(frozen=True, slots=True)
class CalendarUse:
    """How a schedule observes a calendar. Made by people with its first two fields."""

    name: str
    on_holiday: OnHoliday
    days_version: int = 0
    """That of the calendar with which `next_run_at` and the events were computed."""
    known: NamedCalendar | None = field(default=None, compare=False, repr=False)
    """The calendar itself, as it was when the schedule was read; None if it could not be."""
    problem: str = field(default="", compare=False)
    """Why not."""

    def up_to_date(self) -> "CalendarUse":
        """The same for a future that is made anew with the calendar as it is known."""
        return self if self.known is None else replace(self, days_version=self.known.days_version)

    def warnings(
        self, recurrence: AnyRecurrence, timezone: str, now: datetime, last: datetime | None = None
    ) -> tuple[str, ...]:
        """What may surprise of a schedule in `timezone`: that its recurrence is in another zone, and that
        holidays end before `last` (an occurrence that is looked at), or soon."""
        if not isinstance(recurrence, Recurrence):
            return ()
        found = []
        if timezone not in ("UTC", recurrence.timezone):
            where = f"{recurrence.timezone}, the zone of DTSTART, and not of {timezone}"
            found.append(
                f"The calendar {self.name} is read on the days of {where}; give a local start for those."
            )
        if self.known is not None:
            said = self.known.warnings(now, last)
            found += [f"The calendar {self.name}: {warning}" for warning in said]
        return tuple(found)

    def observed_by(self, recurrence: AnyRecurrence) -> AnyRecurrence:
        """A schedule's recurrence without the calendar's closed days. Raises InvalidRecurrence when the
        calendar could not be read."""
        if not isinstance(recurrence, Recurrence):
            return recurrence
        if self.known is None:
            raise InvalidRecurrence("calendar", self.problem or f"there is no calendar {self.name}")
        return recurrence.observing(Observance(self.name, self.known.days, self.on_holiday))

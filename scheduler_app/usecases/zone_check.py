"""Zone check: which schedules would newer zone data or holiday data move, and by how much, before beats make
it so."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import zip_longest
from typing import Final

from scheduler_app.domain.calendars import holiday_data_key, holiday_data_version
from scheduler_app.domain.errors import InvalidRecurrence
from scheduler_app.domain.recurrence import zone_data_version
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.store import Store
from scheduler_app.store.paging import Position, Window
from scheduler_app.usecases.remaking import Remaking

#: Moves of one schedule that are told one by one.
MOVES_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Move:
    """An occurrence as older data computed it, and as this process's data do; one of the two may be
    missing."""

    before: datetime | None
    after: datetime | None

    @property
    def by(self) -> timedelta | None:
        """How much later it would be; negative where it would be earlier."""
        return None if self.before is None or self.after is None else self.after - self.before


@dataclass(frozen=True, slots=True)
class MovedSchedule:
    """A schedule that would move: the first of its moves."""

    schedule: Schedule
    moves: tuple[Move, ...]
    error: str | None = None
    """Why it cannot be told: its rule no longer evaluates."""


@dataclass(frozen=True, slots=True)
class ZoneCheck:
    """The result of one page of the check."""

    version: str
    """The version of this process's zone data."""
    holiday_data: str
    """The release of the holiday data of this process."""
    checked: int
    """Active schedules of the page that were computed with older data."""
    moved: tuple[MovedSchedule, ...]
    next: Position | None
    """Where the next page begins; None at the end."""


def check_zones(store: Store, window: Window, now: datetime, *, tenant: str) -> ZoneCheck:
    """Looks at a page of a tenant's active schedules, and changes nothing: what `Rezoning` and
    `Recalendaring` of a beat with the data of this process would move after `now`. Raises a STORE_FAULT."""
    version, holidays, remaking = zone_data_version(), holiday_data_key(), Remaking(store)
    page = store.schedules.page(window, tenant=tenant, state=ScheduleState.ACTIVE.value)
    older = [
        each
        for each in page.rows
        if isinstance(each, Schedule)
        and ((each.zone_data or version) < version or (holiday_data_of(each) or holidays) < holidays)
    ]
    found = (_check(remaking, schedule, now) for schedule in older)
    moved = tuple(each for each in found if each is not None)
    return ZoneCheck(version, holiday_data_version(), len(older), moved, page.next)


def holiday_data_of(schedule: Schedule) -> str | None:
    """The holiday data, as a key that sorts, with which the days of its calendar were computed last; None
    where it depends on none."""
    known = schedule.calendar.known if schedule.calendar else None
    return known.holiday_data if known else None


def _check(remaking: Remaking, schedule: Schedule, now: datetime) -> MovedSchedule | None:
    try:
        planned, would_be = remaking.compared(schedule, now)
    except InvalidRecurrence as error:
        return MovedSchedule(schedule, (), str(error))
    if planned == would_be:
        return None
    return MovedSchedule(schedule, tuple(_moves(planned, would_be)))


def _moves(planned: set[datetime], would_be: set[datetime]) -> list[Move]:
    """The first moves, paired in the order of time. Where occurrences come earlier, the stretch as it would
    be ends with one more: that one is not told."""
    end = max(planned, default=None)
    found = []
    for before, after in zip_longest(sorted(planned - would_be), sorted(would_be - planned)):
        if before is None and after is not None and end is not None and after > end:
            break
        found.append(Move(before, after))
    return found[:MOVES_SHOWN]

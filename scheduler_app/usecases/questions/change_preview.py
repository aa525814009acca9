"""What a change would move in the future of schedules, before it is made: an edit, or newer zone or holiday
data.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from typing import Final

from scheduler_app.domain.calendars import holiday_data_key, holiday_data_version
from scheduler_app.domain.errors import InvalidRecurrence
from scheduler_app.domain.recurrence import zone_data_version
from scheduler_app.domain.schedule import MOST_NAMED, TICK, EditedTimes, Schedule, ScheduleState
from scheduler_app.domain.states import LIVING, Kind
from scheduler_app.store import Store
from scheduler_app.store.paging import PageRequest, Position
from scheduler_app.usecases.duties.remaking import Remaking

#: Later occurrences are not looked for: Python's calendar ends with this year.
LAST_INSTANT = datetime(9999, 12, 31, tzinfo=UTC)
#: How many occurrences of each side are compared.
MOST_COMPARED = 100
#: How many of the waiting events are read.
MOST_EVENTS = 500


@dataclass(frozen=True, slots=True)
class EditEffect:
    """The occurrences after the cut, up to `until`, that an edit adds, removes and keeps."""

    added: tuple[datetime, ...]
    removed: tuple[datetime, ...]
    kept: tuple[datetime, ...]
    until: datetime | None
    """How far both sides were compared; None: to the end of both."""
    cancelled: tuple[str, ...]
    """The events that wait and will be cancelled, by their ids, the soonest first."""
    made_anew: int
    """How many of those come again at the same instants."""
    more_events: bool
    """Whether more wait than were looked at."""

    @property
    def moves(self) -> bool:
        """Whether the schedule fires at other instants than before."""
        return bool(self.added or self.removed)


def edit_effect(store: Store, before: Schedule, after: Schedule, now: datetime) -> EditEffect:
    """Compares a schedule with what an edit at `now` makes of it. Raises InvalidRecurrence where a rule takes
    too long to evaluate."""
    if after.revision == before.revision:
        return EditEffect((), (), (), None, (), 0, False)
    cut = after.revised_at
    was, will, until = _compared(before, after)
    page = store.event_lists.page(
        before.tenant,
        PageRequest(limit=MOST_EVENTS, since=cut + TICK),
        schedule_id=before.id,
        states=LIVING,
        soonest_first=True,
    )
    waiting = [row for row in page.rows if row.kind is Kind.SCHEDULED]
    return EditEffect(
        added=tuple(sorted(will - was)),
        removed=tuple(sorted(was - will)),
        kept=tuple(sorted(was & will)),
        until=until,
        cancelled=tuple(row.id for row in waiting),
        made_anew=sum(row.run_time in will for row in waiting),
        more_events=page.next is not None,
    )


def edited_times(before: Schedule, after: Schedule) -> EditedTimes | None:
    """For the record of an edit that was made: the occurrences that it moved. None where it moved none, or
    its rules take too long to compare: the record says less then, and the edit stands."""
    if after.revision == before.revision:
        return None
    try:
        was, will, until = _compared(before, after)
    except InvalidRecurrence:
        return None
    if was == will:
        return None
    added, removed = sorted(will - was), sorted(was - will)
    return EditedTimes(
        tuple(added[:MOST_NAMED]), tuple(removed[:MOST_NAMED]), len(added), len(removed), until
    )


def _compared(before: Schedule, after: Schedule) -> tuple[set[datetime], set[datetime], datetime | None]:
    """The occurrences before and after an edit, from its cut up to where both are known; None: to the end of
    both. Raises InvalidRecurrence."""
    cut = after.revised_at
    old, new = _occurrences(before, cut), _occurrences(after, cut)
    ends = [times[-1] for times in (old, new) if len(times) == MOST_COMPARED]
    until = min(ends) if ends else None
    was, will = ({each for each in times if until is None or each <= until} for times in (old, new))
    return was, will, until


def _occurrences(schedule: Schedule, cut: datetime) -> list[datetime]:
    if schedule.state is not ScheduleState.ACTIVE:
        return []
    return schedule.recurrence().between(cut + TICK, LAST_INSTANT, limit=MOST_COMPARED)


#: Moves of one schedule that are told one by one.
MOVES_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class MovedOccurrence:
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
    moves: tuple[MovedOccurrence, ...]
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


def check_zones(store: Store, tenant: str, window: PageRequest, now: datetime) -> ZoneCheck:
    """Looks at a page of a tenant's active schedules, and changes nothing: what `Rezoning` and
    `Recalendaring` of a beat with the data of this process would move after `now`. Raises a STORE_FAULT."""
    version, holidays, remaking = zone_data_version(), holiday_data_key(), Remaking(store)
    page = store.schedules.page(tenant, window, state=ScheduleState.ACTIVE.value)
    older = [
        each
        for each in page.rows
        if isinstance(each, Schedule)
        and ((each.zone_data or version) < version or (holiday_data_of(each) or holidays) < holidays)
    ]
    found = (_moved_schedule(remaking, schedule, now) for schedule in older)
    moved = tuple(each for each in found if each is not None)
    return ZoneCheck(version, holiday_data_version(), len(older), moved, page.next)


def holiday_data_of(schedule: Schedule) -> str | None:
    """The holiday data, as a key that sorts, with which the days of its calendar were computed last; None
    where it depends on none."""
    known = schedule.calendar.known if schedule.calendar else None
    return known.holiday_data if known else None


def _moved_schedule(remaking: Remaking, schedule: Schedule, now: datetime) -> MovedSchedule | None:
    try:
        planned, would_be = remaking.compared(schedule, now)
    except InvalidRecurrence as error:
        return MovedSchedule(schedule, (), str(error))
    if planned == would_be:
        return None
    return MovedSchedule(schedule, tuple(_moves(planned, would_be)))


def _moves(planned: set[datetime], would_be: set[datetime]) -> list[MovedOccurrence]:
    """The first moves, paired in the order of time. Where occurrences come earlier, the stretch as it would
    be ends with one more: that one is not told."""
    end = max(planned, default=None)
    found = []
    for before, after in zip_longest(sorted(planned - would_be), sorted(would_be - planned)):
        if before is None and after is not None and end is not None and after > end:
            break
        found.append(MovedOccurrence(before, after))
    return found[:MOVES_SHOWN]

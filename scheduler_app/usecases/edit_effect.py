"""Computes what an edit would change in the future of a schedule, before it is made."""

from dataclasses import dataclass
from datetime import UTC, datetime

from scheduler_app.domain.event import LIVING, Kind
from scheduler_app.domain.schedule import TICK, Schedule, ScheduleState
from scheduler_app.store import Store
from scheduler_app.store.paging import Window

#: Later occurrences are not looked for: Python's calendar ends with this year.
END = datetime(9999, 12, 31, tzinfo=UTC)
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
    old, new = _occurrences(before, cut), _occurrences(after, cut)
    ends = [times[-1] for times in (old, new) if len(times) == MOST_COMPARED]
    until = min(ends) if ends else None
    was = {each for each in old if until is None or each <= until}
    will = {each for each in new if until is None or each <= until}
    page = store.event_lists.page(
        Window(limit=MOST_EVENTS, since=cut + TICK),
        tenant=before.tenant,
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


def _occurrences(schedule: Schedule, cut: datetime) -> list[datetime]:
    if schedule.state is not ScheduleState.ACTIVE:
        return []
    return schedule.recurrence().between(cut + TICK, END, limit=MOST_COMPARED)

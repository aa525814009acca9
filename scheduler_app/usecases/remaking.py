"""Remake: a schedule's future was computed with facts that have changed since, zone data or holidays."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from scheduler_app.domain.event import Kind
from scheduler_app.domain.schedule import TICK, Schedule
from scheduler_app.store import Store
from scheduler_app.store.paging import Window

#: More events of one schedule than this are not compared one by one: the cut is taken.
EVENTS_COMPARED: Final = 500
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Moved:
    """What was planned and is not to be any more, and what is to be instead: some instants of each."""

    moved_from: list[str]
    moved_to: list[str]


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The new facts compute the same future: nothing was written."""


@dataclass(frozen=True, slots=True)
class Waits:
    """Expansion is behind with it, or somebody edits it at this moment: it is to be looked at again."""


class Remaking:
    """Compares a future as it stands with the one that today's facts compute, and cuts where they differ."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def remake(self, schedule: Schedule, now: datetime, why: str) -> Moved | Unchanged | Waits:
        """`why` is said of the events that are withdrawn. Raises a STORE_FAULT, and InvalidRecurrence for a
        rule that no longer evaluates."""
        if schedule.next_run_at and schedule.next_run_at <= now:
            return Waits()  # what is owed up to now comes first
        made = self._made(schedule, now)
        planned, would_be = _planned(schedule, made), _would_be(schedule, now)
        if planned == would_be:
            return Unchanged()
        # A cut, as an edit makes it: events due up to now stay, later ones are cancelled and computed again.
        revised = schedule.revise(now)
        if not self._store.schedules.revise(revised, version=schedule.version):
            return Waits()
        # Where there was no event, the first expansion of the new revision withdraws what came since.
        if made:
            self._store.cancellations.cancel_past_cut(
                schedule.id,
                revised.revision,
                revised.revised_at,
                now,
                f"Withdrawn: {why}",
                tenant=schedule.tenant,
            )
        return Moved(_shown(planned - would_be), _shown(would_be - planned))

    def compared(self, schedule: Schedule, now: datetime) -> tuple[set[datetime], set[datetime]]:
        """The occurrences after `now` as they are planned, and as today's facts compute the same stretch of
        future. Raises as `remake` does, and changes nothing."""
        return _planned(schedule, self._made(schedule, now)), _would_be(schedule, now)

    def _made(self, schedule: Schedule, now: datetime) -> set[datetime]:
        """The occurrences to come that are events already, whatever became of them: one may be sent while
        its page is compared, and one that a person has withdrawn must not come back."""
        window = Window(limit=EVENTS_COMPARED, since=now + TICK)
        page = self._store.event_lists.page(
            window, tenant=schedule.tenant, schedule_id=schedule.id, states=None
        )
        return {
            row.run_time
            for row in page.rows
            if row.kind == Kind.SCHEDULED
            and row.revision == schedule.revision
            # What a beat is making at this moment is looked at when it has moved the cursor on.
            and (schedule.next_run_at is None or row.run_time < schedule.next_run_at)
        }


def _planned(schedule: Schedule, made: set[datetime]) -> set[datetime]:
    """The future as it stands: the events, and the next occurrence that is none yet."""
    return made | ({schedule.next_run_at} if schedule.next_run_at else set())


def _would_be(schedule: Schedule, now: datetime) -> set[datetime]:
    """The same stretch of future as today's facts compute it."""
    recurrence = schedule.recurrence()
    if schedule.next_run_at is None:
        last = schedule.finishes_at or now
        return set(recurrence.between(now + TICK, last + timedelta(days=1), limit=EVENTS_COMPARED))
    times = set(recurrence.between(now + TICK, schedule.next_run_at, limit=EVENTS_COMPARED))
    following = recurrence.after(max(now, schedule.next_run_at - TICK))
    return times | ({following} if following else set())


def _shown(times: Iterable[datetime]) -> list[str]:
    return [moment.isoformat() for moment in sorted(times)[:_SHOWN]]

"""Remake: schedules' futures were computed with facts that have changed since, zone data or holidays.

A page of schedules costs a handful of commands, however many of them move. The order of the writes is that of
an edit: the cuts first, the events that they withdraw after them. What a crash leaves between the two, the
first expansion of the new revision withdraws (`cut_pending`).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from scheduler_app.domain.schedule import TICK, Schedule
from scheduler_app.parallel import Parallel
from scheduler_app.store import STORE_FAULTS, Store
from scheduler_app.store.events.lists import MadeOccurrence, MadeOccurrences

#: Small pages: what is due now is expanded and dispatched between them.
SCHEDULES_A_PAGE: Final = 400
#: One part is computed while others wait for MongoDB.
PARTS_AT_ONCE: Final = 3
#: Fewer schedules are one part.
WORTH_PARTS: Final = 50
#: Occurrences of one schedule that are compared; of one that has more, the cut is taken.
OCCURRENCES_COMPARED: Final = 500
#: Events that are read for one part; the schedules of others have to wait for the next page.
EVENTS_A_PART: Final = 10_000
_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Facts:
    """A change of zone data or of a calendar: how its schedules are claimed, and how those that it does not
    move are released."""

    claim: Callable[[Sequence[str]], tuple[str, list[Schedule]]]
    keep: Callable[[Sequence[str], str], int]
    """Given ids and the claim's token; returns how many were still held."""
    why: str
    """The line in the history of events that are withdrawn."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A schedule whose future was made anew: some instants of what was planned and is not to be any more, and
    of what is to be instead."""

    schedule: Schedule
    moved_from: list[str]
    moved_to: list[str]


@dataclass(slots=True)
class Remade:
    """What became of a page. Schedules that expansion is behind with, or that are being edited,
    are in neither: they are to be looked at again."""

    moved: list[Moved] = field(default_factory=list)
    unchanged: int = 0
    failed: list[tuple[Schedule, Exception]] = field(default_factory=list)
    """Schedules among the unchanged that can no longer be evaluated: expansion sets them aside."""


class Remaking:
    """Compares futures as they stand with those that today's facts compute, and cuts where they differ."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._parallel = Parallel(PARTS_AT_ONCE, worth=WORTH_PARTS, name="remake")

    def remake(self, ids: Sequence[str], facts: Facts, now: datetime) -> Remade:
        """Any number of beats may do it at once. Raises a STORE_FAULT, after which the claims run out."""
        parts = self._parallel.each(lambda part: self._remake(part, facts, now), self._parallel.of(ids))
        whole = Remade()
        for part in parts:
            whole.moved += part.moved
            whole.unchanged += part.unchanged
            whole.failed += part.failed
        return whole

    def compared(self, schedule: Schedule, now: datetime) -> tuple[set[datetime], set[datetime]]:
        """The occurrences after `now` as they are planned, and as today's facts compute the same stretch of
        future. Raises InvalidRecurrence where it no longer evaluates, and changes nothing."""
        found = self._store.event_lists.made_after(now, [schedule.id], limit=OCCURRENCES_COMPARED)
        return _planned(schedule, found.rows), _would_be(schedule, now)

    def _remake(self, ids: Sequence[str], facts: Facts, now: datetime) -> Remade:
        token, claimed = facts.claim(ids)
        made = self._store.event_lists.made_after(now, [each.id for each in claimed], limit=EVENTS_A_PART)
        of_each: dict[str, list[MadeOccurrence]] = {each.id: [] for each in claimed}
        for row in made.rows:
            of_each[row.schedule_id].append(row)
        done, kept, waiting = Remade(), [], []
        revised: dict[str, Schedule] = {}
        for schedule in claimed:
            if _is_incomplete(schedule.id, made):
                waiting.append(schedule.id)
                continue
            try:
                moved = _moved(schedule, of_each[schedule.id], now)
                if moved is not None:
                    revised[schedule.id] = schedule.revise(now)
                    done.moved.append(moved)
                    continue
            except STORE_FAULTS:
                raise
            except Exception as error:  # one schedule's fault must not stop the others
                done.failed.append((schedule, error))
            kept.append(schedule.id)
        if waiting:
            self._store.cursors.release(waiting, token)
        done.unchanged = facts.keep(kept, token)
        cut = self._cut(revised, of_each, token, facts, now)
        done.moved = [each for each in done.moved if each.schedule.id in cut]
        return done

    def _cut(
        self,
        revised: dict[str, Schedule],
        of_each: dict[str, list[MadeOccurrence]],
        token: str,
        facts: Facts,
        now: datetime,
    ) -> set[str]:
        """Cuts as edits make them: events due up to now stay, later ones are cancelled and computed again."""
        cut = self._store.remakes.cut(list(revised.values()), token)
        # The first expansion of the new revision withdraws events that came since they were read.
        withdrawn = [
            row.event_id
            for schedule_id in cut
            for row in of_each[schedule_id]
            if row.run_time > revised[schedule_id].revised_at
        ]
        self._store.cancellations.cancel_these_past_cut(withdrawn, now, f"Withdrawn: {facts.why}")
        return cut


def _is_incomplete(schedule_id: str, made: MadeOccurrences) -> bool:
    """Whether too little of a schedule was read. The first one is never left for later: it would be for
    ever, and it has more occurrences than are compared."""
    beyond = made.incomplete_from
    return beyond is not None and schedule_id >= beyond and schedule_id != made.rows[0].schedule_id


def _moved(schedule: Schedule, made: Sequence[MadeOccurrence], now: datetime) -> Moved | None:
    planned, would_be = _planned(schedule, made), _would_be(schedule, now)
    if planned == would_be:
        return None
    return Moved(schedule, _shown(planned - would_be), _shown(would_be - planned))


def _planned(schedule: Schedule, made: Sequence[MadeOccurrence]) -> set[datetime]:
    """The future as it stands: the occurrences that are events, whatever became of them, and the next one
    that is none yet. An event may be sent while its page is compared, and one that a person has withdrawn
    must not come back."""
    following = schedule.next_run_at
    times = {
        row.run_time
        for row in made
        # Schedules that a dead beat was expanding are remade after another beat has moved their cursors on.
        if row.revision == schedule.revision and (following is None or row.run_time < following)
    }
    return times | ({following} if following else set())


def _would_be(schedule: Schedule, now: datetime) -> set[datetime]:
    """The same stretch of future as today's facts compute it."""
    recurrence = schedule.recurrence()
    if schedule.next_run_at is None:
        last = schedule.finishes_at or now
        return set(recurrence.between(now + TICK, last + timedelta(days=1), limit=OCCURRENCES_COMPARED))
    times, following = recurrence.between_and_next(now + TICK, schedule.next_run_at, OCCURRENCES_COMPARED)
    return {*times, following} if following else set(times)


def _shown(times: Iterable[datetime]) -> list[str]:
    return [moment.isoformat() for moment in sorted(times)[:_SHOWN]]

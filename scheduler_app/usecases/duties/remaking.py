"""Remake: schedules' futures are computed again when zone data or the days of their calendar change.

A page of schedules costs a handful of commands, however many of them move. The order of the writes is that of
an edit: the cuts first, the events that they withdraw after them. What a crash leaves between the two, the
first expansion of the new revision withdraws (`cut_pending`).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from scheduler_app.config import EXPAND_LEASE_SECONDS
from scheduler_app.domain.calendars import NamedCalendar, holiday_data_key
from scheduler_app.domain.recurrence import zone_data_version
from scheduler_app.domain.schedule import TICK, Schedule
from scheduler_app.parallel import Parallel
from scheduler_app.store import STORE_FAULTS, Store
from scheduler_app.store.events.lists import ExpandedOccurrence, ExpandedOccurrences
from scheduler_app.telemetry import get_logger

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
class ChangedFacts:
    """A change of zone data or of a calendar: how its schedules are claimed, and how those that it does not
    move are released."""

    claim: Callable[[Sequence[str]], tuple[str, list[Schedule]]]
    keep: Callable[[Sequence[str], str], int]
    """Given ids and the claim's token; returns how many were still held."""
    why: str
    """The line in the history of events that are withdrawn."""


@dataclass(frozen=True, slots=True)
class MovedFuture:
    """A schedule whose future was made anew: some instants of what was planned and is not to be any more, and
    of what is to be instead."""

    schedule: Schedule
    moved_from: list[str]
    moved_to: list[str]


@dataclass(slots=True)
class RemakeResult:
    """What became of a page. Schedules that expansion is behind with, or that are being edited,
    are in neither: they are to be looked at again."""

    moved: list[MovedFuture] = field(default_factory=list)
    unchanged: int = 0
    failed: list[tuple[Schedule, Exception]] = field(default_factory=list)
    """Schedules among the unchanged that can no longer be evaluated: expansion sets them aside."""


class Remaking:
    """Compares futures as they stand with those that today's facts compute, and cuts where they differ."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._parallel = Parallel(PARTS_AT_ONCE, worth=WORTH_PARTS, name="remake")

    def remake(self, ids: Sequence[str], facts: ChangedFacts, now: datetime) -> RemakeResult:
        """Any number of beats may do it at once. Raises a STORE_FAULT, after which the claims run out."""
        parts = self._parallel.each(lambda part: self._remake(part, facts, now), self._parallel.of(ids))
        whole = RemakeResult()
        for part in parts:
            whole.moved += part.moved
            whole.unchanged += part.unchanged
            whole.failed += part.failed
        return whole

    def compared(self, schedule: Schedule, now: datetime) -> tuple[set[datetime], set[datetime]]:
        """The occurrences after `now` as they are planned, and as today's facts compute the same stretch of
        future. Raises InvalidRecurrence where it no longer evaluates, and changes nothing."""
        found = self._store.event_lists.made_after(now, [schedule.id], limit=OCCURRENCES_COMPARED)
        return _planned(schedule, found.rows), _recomputed(schedule, now)

    def _remake(self, ids: Sequence[str], facts: ChangedFacts, now: datetime) -> RemakeResult:
        token, claimed = facts.claim(ids)
        expanded = self._store.event_lists.made_after(now, [each.id for each in claimed], limit=EVENTS_A_PART)
        of_each: dict[str, list[ExpandedOccurrence]] = {each.id: [] for each in claimed}
        for row in expanded.rows:
            of_each[row.schedule_id].append(row)
        done, kept, waiting = RemakeResult(), [], []
        revised: dict[str, Schedule] = {}
        for schedule in claimed:
            if _is_incomplete(schedule.id, expanded):
                waiting.append(schedule.id)
                continue
            try:
                moved = _moved_future(schedule, of_each[schedule.id], now)
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
        of_each: dict[str, list[ExpandedOccurrence]],
        token: str,
        facts: ChangedFacts,
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


def _is_incomplete(schedule_id: str, expanded: ExpandedOccurrences) -> bool:
    """Whether too little of a schedule was read. The first one is never left for later: it would be for
    ever, and it has more occurrences than are compared."""
    beyond = expanded.incomplete_from
    return beyond is not None and schedule_id >= beyond and schedule_id != expanded.rows[0].schedule_id


def _moved_future(
    schedule: Schedule, expanded: Sequence[ExpandedOccurrence], now: datetime
) -> MovedFuture | None:
    planned, would_be = _planned(schedule, expanded), _recomputed(schedule, now)
    if planned == would_be:
        return None
    return MovedFuture(schedule, _shown_times(planned - would_be), _shown_times(would_be - planned))


def _planned(schedule: Schedule, expanded: Sequence[ExpandedOccurrence]) -> set[datetime]:
    """The future as it stands: the occurrences that are events, whatever became of them, and the next one
    that is none yet. An event may be sent while its page is compared, and one that a person has withdrawn
    must not come back."""
    following = schedule.next_run_at
    times = {
        row.run_time
        for row in expanded
        # Schedules that a dead beat was expanding are remade after another beat has moved their cursors on.
        if row.revision == schedule.revision and (following is None or row.run_time < following)
    }
    return times | ({following} if following else set())


def _recomputed(schedule: Schedule, now: datetime) -> set[datetime]:
    """The same stretch of future as today's facts compute it."""
    recurrence = schedule.recurrence()
    if schedule.next_run_at is None:
        last = schedule.finishes_at or now
        return set(recurrence.between(now + TICK, last + timedelta(days=1), limit=OCCURRENCES_COMPARED))
    times, following = recurrence.between_and_next(now + TICK, schedule.next_run_at, OCCURRENCES_COMPARED)
    return {*times, following} if following else set(times)


def _shown_times(times: Iterable[datetime]) -> list[str]:
    return [moment.isoformat() for moment in sorted(times)[:_SHOWN]]


log = get_logger(__name__)


class Rezoning:
    """A beat checks the schedules that were computed with older zone data than its own. It leaves those
    with newer data alone: during a rolling upgrade the newest data win, and two beats never undo each
    other's work."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._remaking = Remaking(store)

    def rezone_page(self, now: datetime) -> int:
        """Checks a page of schedules; returns how many are done with. Raises a STORE_FAULT."""
        version, remakes = zone_data_version(), self._store.remakes
        ids = remakes.with_older_zone_data(version, now, limit=SCHEDULES_A_PAGE)
        if not ids:
            return 0

        def claim(part: Sequence[str]) -> tuple[str, list[Schedule]]:
            return remakes.claim_with_older_zone_data(part, version, now, lease_seconds=EXPAND_LEASE_SECONDS)

        def keep(part: Sequence[str], token: str) -> int:
            return remakes.keep_with_zone_data(part, token, version)

        done = self._remaking.remake(ids, ChangedFacts(claim, keep, "the zone's rules have changed"), now)
        for schedule, error in done.failed:
            log.warning(
                "schedule.not_rezoned",
                message="A schedule cannot be checked against new zone data",
                schedule_id=schedule.id,
                error=str(error)[:300],
            )
        for moved in done.moved:
            log.warning(
                "schedule.rezoned",
                message="A zone's rules have changed; the schedule's events were planned again",
                schedule_id=moved.schedule.id,
                zone_data=version,
                zone_data_before=moved.schedule.zone_data,
                moved_from=moved.moved_from,
                moved_to=moved.moved_to,
            )
        return len(done.moved) + done.unchanged


CALENDARS_A_PAGE: Final = 20
#: A request that has read a calendar just before a change may write its schedule after it: the look goes on
#: for as long.
RECALENDAR_GRACE: Final = timedelta(seconds=60)


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
            over = named.changed_at is not None and named.changed_at + RECALENDAR_GRACE <= now
            if (
                over
                and not self._store.calendars.schedules_to_recompute(named)
                and self._store.calendars.settle(named)
            ):
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

        facts = ChangedFacts(claim, keep, f"the holidays of the calendar {named.name} have changed")
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

"""Expand: occurrences become events, or are recorded as missed where they are too late.

An edit ends a revision and begins the next: the events of the old one after the cut are cancelled here before
the new one makes its own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final, TypeVar

from scheduler_app.clock import monotonic
from scheduler_app.config import EXPAND_LEASE_SECONDS
from scheduler_app.domain import event
from scheduler_app.domain.action import FRESH_FOR, in_turn
from scheduler_app.domain.errors import Conflict
from scheduler_app.domain.event import Event, jittered
from scheduler_app.domain.missed import MissedRange, MissedStep, missed_step
from scheduler_app.domain.partitions import OwnedPartitions, all_partitions
from scheduler_app.domain.schedule import TICK, BeforeCut, OwedRange, Schedule, ScheduleState
from scheduler_app.parallel import Parallel
from scheduler_app.store import REJECTED, STORE_FAULTS, Store
from scheduler_app.store.bulk_writes import write_isolated
from scheduler_app.store.events.cancellations import WITHDRAWN_BY_CHANGE, WITHDRAWN_BY_DELETION
from scheduler_app.store.faults import of_one_document
from scheduler_app.store.missed import MoveCursor
from scheduler_app.store.schedules.cursors import CursorAdvance, ReadySchedule
from scheduler_app.store.schedules.documents import CorruptSchedule, report_set_aside
from scheduler_app.telemetry import get_logger, metrics
from scheduler_app.usecases.duties.cause_inspection import note_missed
from scheduler_app.usecases.duties.fair_reads import TenantTurns, tenant_of_row
from scheduler_app.usecases.duties.stop_inspection import note_finishing

log = get_logger(__name__)

PRE_QUEUED = "Event pre-queued for ready queue"

#: How long a page counts, in seconds, before it leaves the rest to the next one. Three days of a rule that
#: fires each second are less than half a second in all; rules that cost milliseconds for an occurrence have
#: few.
MISSED_SECONDS: Final = 0.2


def deadline_after(seconds: float) -> Callable[[], bool]:
    """Returns a function that tells whether that many seconds have passed since now."""
    until = monotonic() + seconds
    return lambda: monotonic() > until


def advance_past(store: Store, step: MissedStep, token: str) -> MoveCursor:
    """Moves a schedule's cursor past a step, and releases it."""
    advance = CursorAdvance(
        schedule_id=step.schedule_id,
        next_run_at=step.following,
        finishes_at=step.last if step.following is None else None,
        checkpoint=step.checkpoint,
    )
    return lambda session: store.cursors.advance_within(session, advance, token)


def settle_missed(store: Store, step: MissedStep, move: MoveCursor, now: datetime) -> bool:
    """Writes a step; False when another beat was quicker. Raises what MongoDB rejects."""
    fresh = store.missed.settle(step, move, now)
    if fresh is None:
        return False
    if step.record is None:
        for _, expiry in step.expired:
            metrics.expired.labels(expiry.policy).inc()
    elif step.expiry is not None:
        metrics.expired.labels(step.expiry.policy).inc(fresh)
        log.warning(
            "schedule.missed",
            message="A schedule has missed occurrences that are too late to be sent; a record tells of them",
            schedule_id=step.schedule_id,
            count=fresh,
            first=step.record.first.isoformat(),
            last=step.record.last.isoformat(),
        )
    if count := len(step.expired) + (fresh if step.record is not None else 0):
        note_missed(store, step.schedule_id, count, now)
    return True


def events_of(schedule: Schedule, instants: Sequence[datetime]) -> list[Event]:
    """The events of a schedule's occurrences at these instants."""
    origin, queue = schedule.action.isolation_key, schedule.queue
    events = [event.scheduled(schedule.id, schedule.revision, instant, origin, queue) for instant in instants]
    return jittered(events, schedule.jitter_seconds)


def insert_occurrences(store: Store, events: Sequence[Event], now: datetime) -> None:
    """Stores occurrences as events. Those that are events already stay as they are."""
    metrics.expanded.inc(store.events.insert(events, now, PRE_QUEUED))


def cancel_late_inserts(store: Store, ids: Sequence[str], now: datetime) -> None:
    """Cancels events of schedules that were edited or deleted between a beat's claim and its insert.

    A worker would cancel such an event when it is due. Here it is cancelled at once, so that no list shows
    what will not happen.
    """
    for schedule_id, schedule in store.schedules.for_delivery(ids).items():
        if isinstance(schedule, CorruptSchedule):
            continue
        if schedule.state is ScheduleState.DELETED:
            store.cancellations.cancel_all(
                schedule_id,
                schedule.revision,
                now,
                WITHDRAWN_BY_DELETION,
            )
        else:
            store.cancellations.cancel_past_cut(
                schedule_id,
                schedule.revision,
                schedule.revised_at,
                now,
                WITHDRAWN_BY_CHANGE,
            )


def begin_revision(store: Store, schedule: Schedule, now: datetime) -> datetime | None:
    """Cancels the events of older revisions past the cut. Returns the instant after which the new
    revision begins, None while it has to wait.

    This side cancels and then looks; a worker claims and then reads the schedule. One of the two always
    sees the other: an event claimed before the cut is `running` here, and one claimed after it is
    cancelled by its worker.
    """
    cancellations = store.cancellations
    cancellations.cancel_past_cut(
        schedule.id, schedule.revision, schedule.revised_at, now, WITHDRAWN_BY_CHANGE
    )
    past = cancellations.look_past_cut(schedule.id, schedule.revision, schedule.revised_at)
    if past.running:
        return None
    return max(schedule.revised_at, past.last_sent) if past.last_sent else schedule.revised_at


SCHEDULES_A_PAGE = 1_000
PARTS_AT_ONCE = 4
#: Fewer schedules are one part.
WORTH_PARTS = 50
OCCURRENCES_A_SCHEDULE = 200
OCCURRENCES_A_PAGE = 5_000
#: An edit expands up to this many occurrences itself; where more are owed, all of them are left to beats.
OCCURRENCES_AN_EDIT = 200
#: While many schedules wait, each is expanded so far first: the next tick comes well before that time.
NEXT_NEEDED = timedelta(seconds=60)
#: Schedules with overdue occurrences get one in this many places of such a page.
OWING_SHARE = 4

#: `Cursors.ready_for_expansion` of one page.
ReadReady = Callable[..., list[ReadySchedule]]
Wanted = TypeVar("Wanted", str, Schedule)
#: A claim's token, and the schedules it won.
Claimed = tuple[str, Sequence[Schedule | CorruptSchedule]]


@dataclass(frozen=True, slots=True)
class ExpandResult:
    """The result of expanding one page of schedules."""

    claimed: int
    """Schedules that were claimed."""
    unfit: int
    """How many of them were released again, because the page had enough events already."""
    events: tuple[Event, ...]
    full: bool
    """There may be more schedules to claim at once."""


class Expansion:
    """Turns occurrences of schedules into events, up to the timeframe ahead."""

    def __init__(
        self, store: Store, *, timeframe_seconds: float, partitions: OwnedPartitions = all_partitions
    ) -> None:
        """`partitions` says which ones to expand page by page."""
        self._store = store
        self._partitions = partitions
        self._timeframe = timedelta(seconds=timeframe_seconds)
        self._parallel = Parallel(PARTS_AT_ONCE, worth=WORTH_PARTS, name="expand")
        self._schedules_a_page = SCHEDULES_A_PAGE
        self._turns = TenantTurns(store.tenants)

    def needed_before(self, now: datetime) -> datetime:
        """Schedules with an occurrence before it that is no event yet are to be expanded."""
        return now + self._timeframe / 2

    def expand_page(self, now: datetime) -> ExpandResult:
        """Claims the schedules whose events reach less than half of the timeframe ahead, and expands them up
        to the whole timeframe.

        While more schedules wait than fit into a page, tenants take turns, and each schedule gets the events
        that it needs next before any is expanded far ahead. Any number of beats may call it at once. Raises a
        STORE_FAULT, after which the claims run out.
        """
        cursors, before = self._store.cursors, self.needed_before(now)
        read = partial(
            cursors.ready_for_expansion, limit=self._schedules_a_page, partitions=self._partitions()
        )
        ready = read(before)
        crowded = len(ready) == self._schedules_a_page
        until = now + self._timeframe
        if crowded:
            urgent = ready[0].next_run_at < now + NEXT_NEEDED / 2
            ready = self._turns.of(
                ready, lambda hogs: read(before, but_tenants=hogs), full=self._schedules_a_page
            )
            if urgent:
                until = min(until, now + NEXT_NEEDED)
                ready = self._needed_next(ready, now, read)
            ready = ready[: self._schedules_a_page]

        def claim(part: Sequence[str]) -> Claimed:
            return cursors.claim_for_expansion(part, before, lease_seconds=EXPAND_LEASE_SECONDS)

        page = self._fill_in_parts([each.id for each in ready], claim, now, until)
        # "Full" counts candidates and not claims: another beat may have claimed half of the page, and both
        # beats would wait for their next tick.
        page = replace(page, full=page.full or crowded)
        # A page holds a tenth as many schedules that fire each second as others. Each one claimed beyond that
        # would cost two writes for nothing.
        if page.unfit:
            self._schedules_a_page = max(WORTH_PARTS, page.claimed - page.unfit)
        else:
            self._schedules_a_page = min(SCHEDULES_A_PAGE, self._schedules_a_page * 5 // 4)
        return page

    def expand_these(self, written: Sequence[Schedule], now: datetime, until: datetime) -> ExpandResult:
        """Expands schedules that were just made or edited, and that have a next occurrence, up to `until`.
        Leaves later occurrences to beats, and schedules that others have claimed or edited since."""

        def claim(part: Sequence[Schedule]) -> Claimed:
            return self._store.cursors.claim_written(part, lease_seconds=EXPAND_LEASE_SECONDS)

        return self._fill_in_parts(written, claim, now, until)

    def _needed_next(
        self, ready: Sequence[ReadySchedule], now: datetime, read: ReadReady
    ) -> list[ReadySchedule]:
        """Chooses from a full page the schedules whose next occurrences fall due within moments, and a share
        of those that are overdue: neither kind waits until all of the other is expanded."""
        soon, stale = now + NEXT_NEEDED / 2, now - FRESH_FOR
        owing = [each for each in ready if each.next_run_at < stale]
        if not owing:
            return [each for each in ready if each.next_run_at < soon]
        limit, near = self._schedules_a_page, {each.id: each for each in read(soon, since=stale)}
        near |= {each.id: each for each in ready if stale <= each.next_run_at < soon}
        share = min(len(owing), max(limit // OWING_SHARE, limit - len(near)))
        return list(in_turn(near.values(), tenant_of_row))[: limit - share] + owing[:share]

    def expand_up_to(self, schedule: Schedule, until: datetime) -> BeforeCut:
        """Makes what the rule still owes up to and including `until`, before an edit replaces it.

        Up to `OCCURRENCES_AN_EDIT` are made at once. More are left to beats, and the edit has to store the
        range with its cut. No claim is needed: a beat that does the same inserts the same ids. Raises
        Conflict while the edit before this one still waits for a callback in flight.
        """
        if schedule.state is not ScheduleState.ACTIVE:
            return BeforeCut()
        recurrence, start = schedule.recurrence(), schedule.next_run_at
        if schedule.cut_pending:
            cut = begin_revision(self._store, schedule, until)
            if cut is None:
                raise Conflict(
                    "the change before this one waits for a callback in flight; try again in a few seconds"
                )
            start = recurrence.after(cut)
        if start is None or start > until:
            return BeforeCut()
        instants = recurrence.between(start, until + TICK, limit=OCCURRENCES_AN_EDIT + 1)
        if len(instants) > OCCURRENCES_AN_EDIT:
            left_to_beats = OwedRange(
                schedule.revision,
                schedule.trigger,
                start,
                until,
                schedule.checkpoint,
                schedule.calendar,
                schedule.jitter_seconds,
            )
            return BeforeCut(left_to_beats=left_to_beats)
        events = events_of(schedule, instants)
        insert_occurrences(self._store, events, until)
        return BeforeCut(tuple(events))

    def finish_ended(self, now: datetime) -> int:
        """Finishes the schedules whose last occurrence has passed. Who is told of that is noted before: a
        beat that dies in between leaves schedules that are found again."""
        note_finishing(self._store, now)
        return self._store.cursors.finish_ended(now)

    def _fill_in_parts(
        self,
        wanted: Sequence[Wanted],
        claim: Callable[[Sequence[Wanted]], Claimed],
        now: datetime,
        until: datetime,
    ) -> ExpandResult:
        parts = self._parallel.of(wanted)

        def fill(part: Sequence[Wanted]) -> ExpandResult:
            token, claimed = claim(part)
            return self._fill(claimed, token, now, until, limit=OCCURRENCES_A_PAGE // len(parts))

        pages = self._parallel.each(fill, parts)
        return ExpandResult(
            claimed=sum(page.claimed for page in pages),
            unfit=sum(page.unfit for page in pages),
            events=tuple(event for page in pages for event in page.events),
            full=any(page.full for page in pages),
        )

    def _fill(
        self,
        claimed: Sequence[Schedule | CorruptSchedule],
        token: str,
        now: datetime,
        until: datetime,
        *,
        limit: int = OCCURRENCES_A_PAGE,
    ) -> ExpandResult:
        events: list[Event] = []
        advances: list[CursorAdvance] = []
        left_for_later: list[str] = []
        unfit, missed, settled = 0, 0, False
        had_time = deadline_after(MISSED_SECONDS)
        for schedule in claimed:
            if isinstance(schedule, CorruptSchedule) and schedule.readable_elsewhere:
                left_for_later.append(schedule.schedule_id)  # to a beat of another release
            elif isinstance(schedule, CorruptSchedule):
                self._set_aside(schedule.schedule_id, token, schedule.reason, now)
            elif len(events) + missed >= limit:
                left_for_later.append(schedule.id)
                unfit += 1
            else:
                try:
                    filled = self._occurrences(schedule, now, until, had_time)
                except STORE_FAULTS:
                    raise
                except Exception as error:  # one schedule's fault must not stop the others
                    self._set_aside(schedule.id, token, f"{type(error).__name__}: {error}", now)
                    continue
                if filled is None:
                    left_for_later.append(schedule.id)
                    continue
                if isinstance(filled, MissedStep):
                    missed += filled.documents
                    settled = self._settle(filled, token, now) or settled
                    continue
                instants, advance = filled
                events += events_of(schedule, instants)
                advances.append(advance)
        # Events first, cursor second: a crash in between expands once more, onto the same ids.
        refused = self._insert_sound(events, token, now)
        advances = [advance for advance in advances if advance.schedule_id not in refused]
        if self._store.cursors.advance(advances, token) < len(advances):
            cancel_late_inserts(self._store, [advance.schedule_id for advance in advances], now)
        if left_for_later:
            self._store.cursors.release(left_for_later, token)
        half = now + self._timeframe / 2
        full = (
            settled
            or unfit > 0
            or any(advance.next_run_at and advance.next_run_at < half for advance in advances)
        )
        return ExpandResult(claimed=len(claimed), unfit=unfit, events=tuple(events), full=full)

    def _occurrences(
        self, schedule: Schedule, now: datetime, until: datetime, spent: Callable[[], bool]
    ) -> tuple[list[datetime], CursorAdvance] | MissedStep | None:
        """The occurrences to make up to `until` and the cursor after them, or a step for what was missed
        before; None when the cut has to wait."""
        recurrence = schedule.recurrence()
        start = schedule.next_run_at
        if schedule.cut_pending:
            cut = begin_revision(self._store, schedule, now)
            if cut is None:
                return None
            start = recurrence.after(cut)
        if start is not None and schedule.lateness.judges:
            origin, queue = schedule.action.isolation_key, schedule.queue
            of = MissedRange(
                *(schedule.id, schedule.revision, recurrence, start, schedule.lateness, origin, queue),
                jitter_seconds=schedule.jitter_seconds,
            )
            if step := missed_step(of, now, spent):
                return step
        instants, following = (
            recurrence.between_and_next(start, until, OCCURRENCES_A_SCHEDULE) if start else ([], None)
        )
        last = instants[-1] if instants else now
        return instants, CursorAdvance(
            schedule_id=schedule.id,
            next_run_at=following,
            finishes_at=last if following is None else None,
            checkpoint=recurrence.checkpoint(last) if following is not None else None,
        )

    def _settle(self, step: MissedStep, token: str, now: datetime) -> bool:
        """Whether what was missed is written, and the schedule released: the next page goes on with it."""
        try:
            if settle_missed(self._store, step, advance_past(self._store, step, token), now):
                return True
            self._store.cursors.release([step.schedule_id], token)
        except REJECTED as error:
            self._set_aside(step.schedule_id, token, f"what it missed cannot be stored: {error}", now)
        return False

    def _insert_sound(self, events: Sequence[Event], token: str, now: datetime) -> set[str]:
        """Makes the events; sets schedules aside whose events MongoDB rejects, and returns their ids."""
        try:
            insert_occurrences(self._store, events, now)
            return set()
        except REJECTED:
            return self._insert_apart(events, token, now)

    def _insert_apart(self, events: Sequence[Event], token: str, now: datetime) -> set[str]:
        of_each: dict[str, list[Event]] = {}
        for made in events:
            of_each.setdefault(made.schedule_id, []).append(made)
        refused: set[str] = set()

        def condemn(schedule_id: str, error: Exception) -> bool:
            if of_one_document(error):
                self._set_aside(schedule_id, token, f"its events cannot be stored: {error}", now)
                refused.add(schedule_id)
            return schedule_id in refused

        def insert(ids: Sequence[str]) -> None:
            insert_occurrences(self._store, [made for each in ids for made in of_each[each]], now)

        write_isolated(list(of_each), insert, condemn)
        return refused

    def _set_aside(self, schedule_id: str, token: str, reason: str, now: datetime) -> None:
        if self._store.cursors.set_aside(schedule_id, token, reason, now):
            report_set_aside(schedule_id, reason)

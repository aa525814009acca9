"""Expand what edits left to beats: occurrences of revisions that are over, up to the cuts that ended them."""

from collections import deque
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import islice

from scheduler_app.config import EXPAND_LEASE_SECONDS
from scheduler_app.domain import event
from scheduler_app.domain.action import UNKNOWN_ORIGIN, in_turn
from scheduler_app.domain.event import jittered
from scheduler_app.domain.missed import MissedRange, MissedStep, missed_step
from scheduler_app.domain.schedule import TICK, OwedRange
from scheduler_app.store import Store
from scheduler_app.store.missed import MoveCursor
from scheduler_app.store.schedules.cursors import ClaimedOwedRange
from scheduler_app.telemetry import get_logger, metrics
from scheduler_app.usecases.duties.expansion import (
    MISSED_SECONDS,
    cancel_late_inserts,
    deadline_after,
    insert_occurrences,
    settle_missed,
)
from scheduler_app.usecases.duties.fair_reads import HOG_SHARE, TenantTurns, tenant_of_row

log = get_logger(__name__)

#: Small pages: what is due now is expanded and dispatched between them.
OWING_SCHEDULES_A_PAGE = 5
#: A page is chosen from among so many.
OWING_SCHEDULES_READ = OWING_SCHEDULES_A_PAGE * HOG_SHARE
#: The last so many places of pages, for the turns of tenants.
TURNS_REMEMBERED = 1_000
OWED_OCCURRENCES_A_PAGE = 1_000


class OwedExpansion:
    """Expands the ranges that edits left, whatever the schedule's state is by now. A deletion removes
    them."""

    def __init__(self, store: Store, *, occurrences_a_page: int = OWED_OCCURRENCES_A_PAGE) -> None:
        self._store = store
        self._occurrences_a_page = occurrences_a_page
        self._turns = TenantTurns(store.tenants)
        self._served: deque[str] = deque(maxlen=TURNS_REMEMBERED)

    def expand_page(self, now: datetime) -> bool:
        """Claims the schedules that are furthest behind, in turn among tenants, and expands a page of what
        they owe; True when there is more.

        Any number of beats may do it at once. Raises a STORE_FAULT, after which the claims run out.
        """
        ids = self._next_in_turn()
        if not ids:
            return False
        token, claimed = self._store.owed.claim(ids, lease_seconds=EXPAND_LEASE_SECONDS)
        limit = self._occurrences_a_page // max(1, len(claimed))
        for each in claimed:
            self._expand(each, token, now, limit)
        # Ranges that this beat did not win belong to other beats, which go on with them.
        return bool(claimed)

    def _next_in_turn(self) -> list[str]:
        """The schedules of a page. There may be more tenants than it has places: those come first whose last
        turn is the longest ago."""
        waiting = partial(self._store.owed.waiting, limit=OWING_SCHEDULES_READ)
        if len(found := waiting()) == OWING_SCHEDULES_READ:
            found = self._turns.of(found, lambda hogs: waiting(but_tenants=hogs), full=len(found))
        served = {tenant: place for place, tenant in enumerate(self._served)}
        found.sort(key=lambda each: served.get(tenant_of_row(each), -1))
        page = list(islice(in_turn(found, tenant_of_row), OWING_SCHEDULES_A_PAGE))
        self._served.extend(map(tenant_of_row, page))
        return [each.id for each in page]

    def _expand(self, claimed: ClaimedOwedRange, token: str, now: datetime, limit: int) -> None:
        if claimed.range is None or claimed.created_at is None:
            self._drop(claimed, token, claimed.reason, now)
            return
        try:
            if step := self._missed(claimed, claimed.range, claimed.created_at, now):
                settle_missed(self._store, step, self._past(claimed, claimed.range, step, token), now)
                return
            instants, remainder = _owed_occurrences(claimed.range, claimed.created_at, limit)
        except Exception as error:  # one schedule's fault must not stop the others
            self._drop(claimed, token, f"{type(error).__name__}: {error}", now)
            return
        schedule_id, revision = claimed.schedule_id, claimed.range.revision
        # Events first, cursor second: a crash in between expands once more, onto the same ids.
        events = [
            event.scheduled(schedule_id, revision, instant, queue=claimed.queue) for instant in instants
        ]
        insert_occurrences(self._store, jittered(events, claimed.range.jitter_seconds), now)
        if not self._store.owed.advance(schedule_id, token, remainder):
            cancel_late_inserts(self._store, [schedule_id], now)
        elif remainder is None:
            log.info(
                "schedule.made_up",
                message="What a change had left to beats is made up",
                schedule_id=schedule_id,
                revision=revision,
                until=claimed.range.until.isoformat(),
            )

    def _missed(
        self, claimed: ClaimedOwedRange, owed: OwedRange, created_at: datetime, now: datetime
    ) -> MissedStep | None:
        if not claimed.lateness.judges:
            return None
        of = MissedRange(
            claimed.schedule_id,
            owed.revision,
            owed.recurrence(created_at),
            owed.next_run_at,
            claimed.lateness,
            UNKNOWN_ORIGIN,
            claimed.queue,
            owed.until + TICK,
            owed.jitter_seconds,
        )
        return missed_step(of, now, deadline_after(MISSED_SECONDS))

    def _past(self, claimed: ClaimedOwedRange, owed: OwedRange, step: MissedStep, token: str) -> MoveCursor:
        left_to_beats = None
        if step.following is not None:
            left_to_beats = replace(owed, next_run_at=step.following, checkpoint=step.checkpoint)
        return lambda session: self._store.owed.advance(claimed.schedule_id, token, left_to_beats, session)

    def _drop(self, claimed: ClaimedOwedRange, token: str, why: str, now: datetime) -> None:
        lost = "occurrences that an earlier change had left to beats"
        if claimed.range is not None:
            lost = (
                f"occurrences of revision {claimed.range.revision} from"
                f" {claimed.range.next_run_at} to {claimed.range.until}"
            )
        reason = f"Not made: {lost}; {why}"
        if self._store.owed.drop(claimed.schedule_id, token, reason, now):
            metrics.set_aside.inc()
            log.error(
                "schedule.owed_dropped",
                message="What a schedule owed from before a change cannot be expanded and is dropped",
                schedule_id=claimed.schedule_id,
                reason=reason,
            )


def _owed_occurrences(
    owed: OwedRange, created_at: datetime, limit: int
) -> tuple[list[datetime], OwedRange | None]:
    """The next occurrences to make, and what is owed after them."""
    recurrence = owed.recurrence(created_at)
    instants, following = recurrence.between_and_next(owed.next_run_at, owed.until + TICK, limit)
    if following is None or following > owed.until:
        return instants, None
    checkpoint = recurrence.checkpoint(instants[-1])
    return instants, replace(owed, next_run_at=following, checkpoint=checkpoint)

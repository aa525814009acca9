"""Backfill: people ask for past occurrences, and beats make their events page by page."""

import hashlib
import secrets
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from scheduler_app.config import EXPAND_LEASE_SECONDS
from scheduler_app.domain.backfill import (
    MAX_OCCURRENCES,
    MAX_RUNNING,
    MAX_WAITING,
    Backfill,
    BackfillOverlap,
    BackfillState,
)
from scheduler_app.domain.errors import Conflict, InvalidField, NotFound
from scheduler_app.domain.ids import name_of, tenant_of
from scheduler_app.domain.schedule import TICK, OwedRange, Schedule, ScheduleState
from scheduler_app.domain.states import State
from scheduler_app.domain.stored_fields import Corrupt
from scheduler_app.store import STORE_FAULTS, Store
from scheduler_app.store.acting import current_act
from scheduler_app.telemetry import get_logger, metrics
from scheduler_app.usecases.owed_events import backfill_peak
from scheduler_app.usecases.quotas import event_room

log = get_logger(__name__)

BACKFILLS_A_PAGE = 5
OCCURRENCES_A_PAGE = 1_000
MADE = "Backfilled: a person asked for this past occurrence"
CANCELLED = "Withdrawn: the backfill was cancelled"


@dataclass(frozen=True, slots=True)
class BackfillRequest:
    """A request for a backfill."""

    since: datetime
    until: datetime
    rate_per_second: float
    overlap: BackfillOverlap
    only_missing: bool


@dataclass(frozen=True, slots=True)
class BackfillProgress:
    """A backfill and what became of its events."""

    backfill: Backfill
    waiting: int = 0
    completed: int = 0
    failed: int = 0
    there: int = 0
    """The occurrences that a plan leaves out."""


@dataclass(frozen=True)
class BackfillService:
    store: Store

    def plan(self, schedule: Schedule, asked: BackfillRequest, now: datetime) -> BackfillProgress:
        """What a backfill would do. Raises InvalidField, InvalidRecurrence or Conflict."""
        if asked.until < asked.since:
            raise InvalidField("to", "must not be before from")
        if asked.until > now:
            raise InvalidField("to", "must not lie in the future: the schedule itself makes what is to come")
        self._check_caught_up(schedule, asked)
        found = schedule.recurrence().between(asked.since, asked.until + TICK, limit=MAX_OCCURRENCES + 1)
        if len(found) > MAX_OCCURRENCES:
            raise InvalidField(
                "from",
                f"is before more than {MAX_OCCURRENCES} occurrences; ask for a part of them at a time, the"
                f" first up to {found[MAX_OCCURRENCES - 1].isoformat()}",
            )
        rest = None
        if found:
            rest = OwedRange(
                schedule.revision,
                schedule.trigger,
                found[0],
                asked.until,
                calendar=schedule.calendar,
            )
        made = Backfill(
            schedule_id=schedule.id,
            number=secrets.token_hex(4),
            since=asked.since,
            until=asked.until,
            rest=rest,
            schedule_created_at=schedule.created_at,
            rate_per_second=asked.rate_per_second,
            overlap=asked.overlap,
            only_missing=asked.only_missing,
            occurrences=len(found),
            origin=schedule.action.isolation_key,
            queue=schedule.queue,
            state=BackfillState.RUNNING if found else BackfillState.MADE,
            next_due_at=now,
            started_at=now,
            ended_at=None if found else now,
        )
        there: set[datetime] = set()
        if asked.only_missing and found:
            limit = 2 * MAX_OCCURRENCES
            there = self.store.backfills.there(
                schedule.id, found[0], found[-1], made.number, limit=limit
            ).intersection(found)
        return BackfillProgress(made, there=len(there))

    def start(
        self, schedule: Schedule, asked: BackfillRequest, now: datetime, *, request_seed: str | None = None
    ) -> BackfillProgress:
        """Stores what beats then do; once for a `request_seed`, as in `Creation.create`. Raises as `plan`,
        Conflict while the schedule has another one at work, or the tenant as many as it may have, and
        QuotaExceeded."""
        number = None if request_seed is None else _backfill_number(request_seed)
        if number is not None and self._has_started(schedule, number):
            return self.progress(schedule.id)
        planned = self.plan(schedule, asked, now)
        if number is not None:
            planned = replace(planned, backfill=replace(planned.backfill, number=number))
        backfills = self.store.backfills
        if backfills.running(schedule.tenant, most=MAX_RUNNING) >= MAX_RUNNING:
            raise Conflict(f"{MAX_RUNNING} backfills are at work; wait for one to end, or cancel one")
        limit = current_act().limits.events_per_hour
        if limit is None:
            started = backfills.start(planned.backfill)
        else:
            started = self._start_within(limit, planned.backfill, now)
        if not started:
            raise Conflict(
                "the schedule has a backfill at work; wait for its end, or cancel it (a cancelled one is"
                " looked after for another minute)"
            )
        log.info(
            "backfill.started",
            message="A person asked for a backfill",
            schedule_id=schedule.id,
            since=asked.since.isoformat(),
            until=asked.until.isoformat(),
            occurrences=planned.backfill.occurrences,
        )
        return planned

    def _start_within(self, limit: int, backfill: Backfill, now: datetime) -> bool:
        """Stores it, if there is room for what it makes in an hour. Raises QuotaExceeded."""
        wanted = backfill_peak(backfill)
        tenant = tenant_of(backfill.schedule_id)
        with event_room(self.store, tenant, limit, wanted, now) as room:
            started = room.refusal is None and self.store.backfills.start(backfill)
            room.made = wanted if started else 0
        if room.refusal is not None:
            raise room.refusal
        return started

    def progress(self, schedule_id: str) -> BackfillProgress:
        """Raises NotFound, and Conflict for a document that cannot be read."""
        try:
            found = self.store.backfills.get(schedule_id)
        except Corrupt as error:
            raise Conflict(f"the stored backfill of {name_of(schedule_id)} cannot be read: {error}") from None
        if found is None:
            raise NotFound(f"the schedule {name_of(schedule_id)} has had no backfill")
        backfills, most = self.store.backfills, MAX_OCCURRENCES
        return BackfillProgress(
            found,
            waiting=backfills.waiting(found, most=most),
            completed=backfills.ended(found, State.COMPLETED, most=most),
            failed=backfills.ended(found, State.ERROR, most=most),
        )

    def cancel(self, schedule_id: str, now: datetime) -> BackfillProgress:
        """Ends it and withdraws what waits of it; what a worker is about to send is withdrawn by beats if it
        is to be tried again. Raises NotFound."""
        found = self.progress(schedule_id).backfill
        if self.store.backfills.cancel(schedule_id, now):
            count = self.store.backfills.sweep(found, now, CANCELLED)
            log.info(
                "backfill.cancelled",
                message="A person cancelled a backfill",
                schedule_id=schedule_id,
                withdrawn=count,
            )
        return self.progress(schedule_id)

    def _has_started(self, schedule: Schedule, number: str) -> bool:
        try:
            found = self.store.backfills.get(schedule.id)
        except Corrupt:
            return False
        return found is not None and found.number == number

    def _check_caught_up(self, schedule: Schedule, asked: BackfillRequest) -> None:
        """Beats may be about to make what a backfill would find missing. Raises Conflict."""
        behind = (
            schedule.state is ScheduleState.ACTIVE
            and schedule.next_run_at is not None
            and schedule.next_run_at <= asked.until
        )
        owing = any(each.next_run_at <= asked.until for each in schedule.owed)
        if schedule.state is ScheduleState.DELETED:
            raise NotFound(f"there is no schedule {name_of(schedule.id)}")
        if behind or owing:
            raise Conflict("beats are still making occurrences of that time; try again in a moment")


def _backfill_number(request_seed: str) -> str:
    """The number of the backfill that the request of this seed starts."""
    return hashlib.sha256(request_seed.encode()).hexdigest()[:8]


class BackfillDuty:
    """Makes the events of backfills; any number of beats may do it at once."""

    def __init__(self, store: Store, *, ahead_seconds: float) -> None:
        """Events are made so long before they fall due, the rest waits in the rule: at least the time between
        two calls of `work_page`."""
        self._store = store
        self._ahead = timedelta(seconds=ahead_seconds)

    def work_page(self, now: datetime) -> bool:
        """Makes the next events of each backfill, or withdraws what waits of a cancelled one; True when there
        is more to do at once. Raises a STORE_FAULT, after which the claims run out."""
        token, claimed = self._store.backfills.claim(
            limit=BACKFILLS_A_PAGE, lease_seconds=EXPAND_LEASE_SECONDS
        )
        for each in claimed:
            if isinstance(each, Backfill):
                self._work(each, token, now)
            else:
                self._set_aside(each[0], token, each[1], now)
        # Backfills that go on wait for their time: the next tick is soon enough.
        return False

    def _work(self, backfill: Backfill, token: str, now: datetime) -> None:
        if backfill.sweeping:
            self._sweep(backfill, token, now)
            return
        try:
            moved = self._make(backfill, now)
        except STORE_FAULTS:
            raise
        except Exception as error:  # one backfill's fault must not stop the others
            self._set_aside(backfill.schedule_id, token, f"{type(error).__name__}: {error}", now)
            return
        if not self._store.backfills.advance(moved, token):
            # The backfill was cancelled between this beat's claim and its insert.
            self._withdraw_cancelled(backfill, now)
        elif moved.state is BackfillState.MADE:
            log.info(
                "backfill.made",
                message="All events of a backfill are made",
                schedule_id=backfill.schedule_id,
                made=moved.made,
                left_out=moved.left_out,
            )

    def _make(self, backfill: Backfill, now: datetime) -> Backfill:
        backfills, rest = self._store.backfills, backfill.rest
        if rest is None:
            raise Corrupt("nothing says what is left to make")
        if self._store.schedules.get(backfill.schedule_id) is None:
            ended = replace(backfill, state=BackfillState.CANCELLED, ended_at=now, sweeping=True)
            return replace(ended, reason="The schedule was deleted.")
        waiting = backfills.waiting(backfill, most=MAX_WAITING)
        overdue = backfills.overdue(backfill, now, most=MAX_WAITING)
        room = backfill.room(now, ahead=self._ahead, waiting=waiting, overdue=overdue)
        room = min(OCCURRENCES_A_PAGE, room)
        if room <= 0:
            return backfill
        recurrence = rest.recurrence(backfill.schedule_created_at)
        looked_at = OCCURRENCES_A_PAGE if backfill.only_missing else room
        instants, following = recurrence.between_and_next(rest.next_run_at, rest.until + TICK, looked_at)
        missing = instants
        if backfill.only_missing and instants:
            there = backfills.there(
                backfill.schedule_id,
                instants[0],
                instants[-1],
                backfill.number,
                limit=10 * OCCURRENCES_A_PAGE,
            )
            missing = [each for each in instants if each not in there]
        if len(missing) > room:
            following = missing[room]
            instants, missing = [each for each in instants if each < following], missing[:room]
        events, next_due_at = backfill.events(missing, now)
        # Events first, cursor second: a crash in between makes them once more, under the same ids.
        metrics.backfilled.inc(self._store.events.insert(events, now, MADE))
        left = None
        if following is not None and following <= rest.until:
            left = replace(rest, next_run_at=following)
        return backfill.went_on(left, len(missing), len(instants) - len(missing), next_due_at, now)

    def _sweep(self, backfill: Backfill, token: str, now: datetime) -> None:
        self._store.backfills.sweep(backfill, now, CANCELLED)
        # Events that a worker holds may come back for a retry: cancel once more after the backfill's end.
        left = self._store.backfills.waiting(backfill, most=1)
        late = now < (backfill.ended_at or now) + timedelta(seconds=2 * EXPAND_LEASE_SECONDS)
        self._store.backfills.advance(replace(backfill, sweeping=bool(left) or late), token)

    def _withdraw_cancelled(self, backfill: Backfill, now: datetime) -> None:
        found = self._store.backfills.get(backfill.schedule_id)
        if found is None or found.number != backfill.number or found.state is BackfillState.CANCELLED:
            self._store.backfills.sweep(backfill, now, CANCELLED)

    def _set_aside(self, schedule_id: str, token: str, reason: str, now: datetime) -> None:
        if self._store.backfills.set_aside(schedule_id, token, reason, now):
            metrics.set_aside.inc()
            log.error(
                "backfill.set_aside",
                message="A backfill cannot continue and was ended",
                schedule_id=schedule_id,
                reason=reason,
            )

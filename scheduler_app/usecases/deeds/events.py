"""What people and receivers do with events: cancel one, redrive one or many, say how the work went.

An event that a worker has claimed is cancelled if its request has not begun. What receivers do not
complete in time has failed.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from scheduler_app.clock import monotonic
from scheduler_app.domain.cause import failing_key
from scheduler_app.domain.errors import Conflict, NotAuthorized, NotFound
from scheduler_app.domain.event import (
    AwaitedEvent,
    CompletionReport,
    Event,
    is_known_token,
    why_report_is_too_late,
)
from scheduler_app.domain.ids import name_of
from scheduler_app.domain.instants import shown_instant, whole_milliseconds
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.domain.states import FINAL, Kind, State
from scheduler_app.store import Store
from scheduler_app.store.events.completions import CompletionOutcome
from scheduler_app.store.events.events import EventRecord
from scheduler_app.store.events.lists import NO_FILTER, EventListFilter
from scheduler_app.store.paging import PageRequest, Position
from scheduler_app.store.schedules.documents import CorruptSchedule
from scheduler_app.store.schedules.last_runs import RunResult
from scheduler_app.telemetry import get_logger, metrics
from scheduler_app.usecases.cause_counts import CauseCounts

#: A worker looks for such requests every second, and writes what it cancels some milliseconds later.
ANSWER_SECONDS = 3.0
LOOK_SECONDS = 0.05
#: Threads of one process that wait for workers at the same time; other requests are told to ask again.
WAITING_AT_ONCE = 8

#: Why an event that a worker holds was not cancelled.
IN_FLIGHT = "its request is in flight, or about to be, and it cannot be cancelled"
FINISHED = "its history is final, and it cannot be cancelled"
#: The worker may have read the request to cancel at the last moment.
NOT_ANSWERED = "its worker has not answered in time, and may still cancel it: look at it before you ask again"
TOO_MANY_WAIT = "too many cancellations wait for the answers of workers: ask again in a few seconds"

cancellation_slots = threading.BoundedSemaphore(WAITING_AT_ONCE)


def cancel_claimed(store: Store, event_id: str, message: str) -> str:
    """Asks the worker that holds the event to cancel it, and waits for its answer: what the event is then
    says whether it did. `message` is for its history. Returns why the event is not cancelled, if it is not.
    Raises a STORE_FAULT."""
    if store.mongo.is_dry_run:
        return IN_FLIGHT
    if not cancellation_slots.acquire(blocking=False):
        return TOO_MANY_WAIT
    try:
        store.cancel_requests.put(event_id, message)
        until = monotonic() + ANSWER_SECONDS
        while (is_open := _is_open(store, event_id)) and monotonic() < until:
            time.sleep(LOOK_SECONDS)
        store.cancel_requests.remove([event_id])
    finally:
        cancellation_slots.release()
    return NOT_ANSWERED if is_open else IN_FLIGHT


def _is_open(store: Store, event_id: str) -> bool:
    """Whether no worker has cancelled the event or refused to."""
    found = store.events.get(event_id)
    if found is None or found.state is not State.RUNNING:
        return False
    return store.cancel_requests.stands(event_id)


log = get_logger(__name__)

WITHDRAWN = "Withdrawn by a person"
NO_CALLBACK = "its schedule was deleted: there is no callback to send it to"
DISMISSED = "Dismissed by a person: it is not sent again"
REDRIVEN = "Redriven by a person; its attempts are counted from 1 again"


@dataclass(frozen=True, slots=True)
class RedriveResult:
    """The result of a page of redrives: how many events were redriven, the ids of the others with the
    reasons, and where the next page begins."""

    count: int
    skipped: list[tuple[str, str]]
    next: Position | None
    last_due: datetime | None = None
    """When the last one falls due, where a rate was given."""


@dataclass(frozen=True)
class EventService:
    """What people do with single events, and with pages of dead letters.

    `dispatch` dispatches events at once. Its failures are ignored: the next tick does the same work.
    """

    store: Store
    dispatch: Callable[[Sequence[Event], datetime], None]

    def get(self, event_id: str) -> EventRecord:
        """Raises NotFound."""
        event = self.store.events.get(event_id)
        if event is None:
            raise NotFound(f"there is no event {name_of(event_id)}; it may be beyond the retention")
        return event

    def cancel(self, event_id: str, now: datetime) -> EventRecord:
        """Cancels an event whose request has not begun. Raises NotFound; Conflict when it is in flight or
        final, and when its worker does not say in time."""
        event = self.get(event_id)
        if not self.store.cancellations.cancel(event_id, now, WITHDRAWN):
            why, before, event = IN_FLIGHT, event, self.get(event_id)
            if event.state is State.RUNNING:
                why = cancel_claimed(self.store, event_id, WITHDRAWN)
                event = self.get(event_id)
            if event.state is not State.CANCELLED or before.state is State.CANCELLED:
                raise Conflict(f"the event is {event.state}: {FINISHED if event.state in FINAL else why}")
        log.info("event.cancelled", message="A person cancelled an event", event_id=event_id)
        return self.get(event_id)

    def redrive(self, event_id: str, now: datetime) -> EventRecord:
        """Sends a dead letter again, at once. Raises NotFound, and Conflict when it is not one."""
        event = self.get(event_id)
        schedule_id = event.schedule_id
        if event.state is State.ERROR and event.kind is not Kind.MESSAGE:
            schedule = self.store.schedules.for_delivery([schedule_id]).get(schedule_id)
            if reason := hopeless_reason(event, schedule):
                raise Conflict(reason)
        redriven = self.store.events.redrive([event_id], now, REDRIVEN)
        if not redriven:
            state = self.get(event_id).state
            raise Conflict(f"the event is {state}; only one in error can be redriven")
        log.info("event.redriven", message="A person redrove an event", event_id=event_id)
        self.dispatch(redriven, now)
        return self.get(event_id)

    def redrive_page(
        self,
        tenant: str,
        window: PageRequest,
        now: datetime,
        *,
        schedule_id: str | None = None,
        narrowing: EventListFilter = NO_FILTER,
        a_second: float | None = None,
        start: datetime | None = None,
    ) -> RedriveResult:
        """Redrives the dead letters of a page, except those that no request could be made for: at once, or
        `a_second` of them in a second. The first is due at once, or so long after `start`, which is when the
        last one of the page before is due."""
        found = self.store.event_lists.page(
            tenant, window, schedule_id=schedule_id, states={State.ERROR}, narrowing=narrowing
        )
        schedules = self.store.schedules.for_delivery(
            list({event.schedule_id for event in found.rows} - {""})
        )
        skipped, ids = list[tuple[str, str]](), list[str]()
        for event in found.rows:
            # A message needs no schedule.
            is_message = event.kind is Kind.MESSAGE
            reason = None if is_message else hopeless_reason(event, schedules.get(event.schedule_id))
            if reason is None:
                ids.append(event.id)
            else:
                skipped.append((event.id, reason))
        due = None if a_second is None else _due_times(len(ids), a_second, start, now)
        redriven = self.store.events.redrive(ids, now, REDRIVEN, due=due) if ids else []
        won = {event.id for event in redriven}
        skipped += [(each, "it is no longer in error") for each in ids if each not in won]
        if redriven:
            log.info(
                "events.redriven",
                message="A person redrove events",
                count=len(redriven),
                skipped=len(skipped),
                schedule_id=schedule_id,
            )
            # Events that are due later are left to the ticks of beats.
            self.dispatch([event for event in redriven if event.due_at <= now], now)
        return RedriveResult(len(redriven), skipped, found.next, max(due, default=None) if due else None)

    def dismiss_page(
        self, tenant: str, window: PageRequest, now: datetime, *, narrowing: EventListFilter = NO_FILTER
    ) -> RedriveResult:
        """Ends the dead letters of a page for good: they are `expired`, and nothing is sent."""
        page = self.store.event_lists.page(tenant, window, states={State.ERROR}, narrowing=narrowing)
        ids = [event.id for event in page.rows]
        count = self.store.events.dismiss(ids, now, DISMISSED) if ids else 0
        if count:
            log.info("events.dismissed", message="A person dismissed dead letters", count=count)
        return RedriveResult(count, [], page.next)


def _due_times(count: int, a_second: float, start: datetime | None, now: datetime) -> list[datetime]:
    """When as many events are due, one after the other; `start` is when the one before them is due."""
    first = now if start is None else max(now, start + timedelta(seconds=1 / a_second))
    return [first + timedelta(seconds=i / a_second) for i in range(count)]


def hopeless_reason(event: EventRecord, schedule: Schedule | CorruptSchedule | None) -> str | None:
    """Why a redrive of a dead letter would end in error again without a request; None if it would not."""
    if schedule is None:
        return NO_CALLBACK
    if isinstance(schedule, CorruptSchedule):
        return None if schedule.readable_elsewhere else f"its schedule cannot be read: {schedule.reason}"
    if schedule.state is ScheduleState.DELETED:
        return NO_CALLBACK
    if event.revision < schedule.first_revision:
        return "it belongs to an earlier schedule of this id, which was deleted: a worker would withdraw it"
    if event.kind is Kind.SCHEDULED and schedule.is_cancelled_by_edit(event.revision, event.run_time):
        return "its schedule was changed before it was due: a worker would withdraw it"
    return None


RECEIVER = "its receiver"
#: A worker, a beat and another request may move the event meanwhile.
COMPLETION_TRIES = 5
COMPLETIONS_A_PAGE = 200
STRANGER = (
    "this X-Scheduler-Completion-Token is not one of this event; send the one that the callback of the event"
    " carried"
)


@dataclass(frozen=True)
class CompletionService:
    """Takes what receivers say about events of schedules whose `completion` is `callback`.

    `dispatch` dispatches an event that waited for this one at once. Its failures are ignored: the next tick
    does the same work. `judge_failures` pauses the schedule if its last events all failed.
    """

    store: Store
    dispatch: Callable[[Sequence[Event], datetime], None]
    judge_failures: Callable[[str, datetime], bool]
    cause_counts: CauseCounts

    def complete(self, event_id: str, token: str, now: datetime) -> EventRecord:
        """Ends the event as completed. Raises Refused for a wrong token, Conflict where it is too late."""
        return self._tell(event_id, token, "completed", "", now)

    def fail(self, event_id: str, token: str, reason: str, now: datetime) -> EventRecord:
        """Ends the event's attempt as failed, so that the next one follows if there is one left. Raises as
        `complete`."""
        return self._tell(event_id, token, "failed", reason, now)

    def _tell(
        self,
        event_id: str,
        token: str,
        how: Literal["completed", "failed"],
        reason: str,
        now: datetime,
    ) -> EventRecord:
        for _ in range(COMPLETION_TRIES):
            awaited = self.store.completions.find(event_id)
            # A caller without a token must not learn which events exist.
            if not is_known_token(token, awaited.digests if awaited else ()) or awaited is None:
                raise NotAuthorized(STRANGER)
            late = why_report_is_too_late(awaited, how)
            if late:
                raise Conflict(late)
            if late is not None or self._written(awaited, how, reason, now):
                found = self.store.events.get(event_id)
                if found is None:
                    raise NotAuthorized(STRANGER)
                return found
        raise Conflict("the event is being moved by others; tell again")

    def _written(
        self, awaited: AwaitedEvent, how: Literal["completed", "failed"], reason: str, now: datetime
    ) -> bool:
        ended = _completed_end(awaited, now) if how == "completed" else _failed_end(awaited, how, reason, now)
        return _settle_completion(
            self.store, awaited, ended, self.dispatch, self.judge_failures, self.cause_counts
        )


class CompletionTimeouts:
    """Ends what was not completed in time."""

    def __init__(
        self, store: Store, judge_failures: Callable[[str, datetime], bool], cause_counts: CauseCounts
    ) -> None:
        """`judge_failures` pauses a schedule if its last events all failed."""
        self._store = store
        self._judge_failures = judge_failures
        self._cause_counts = cause_counts

    def end_overdue(self, now: datetime) -> int:
        """Ends a page of attempts that were not completed in time; returns how many. Raises a STORE_FAULT."""
        ended = 0
        for awaited in self._store.completions.overdue(now, limit=COMPLETIONS_A_PAGE):
            reason = f"it was not completed within {awaited.seconds:g} s"
            failed = _failed_end(awaited, "timed_out", reason, now)
            ended += _settle_completion(
                self._store, awaited, failed, _leave_to_beat, self._judge_failures, self._cause_counts
            )
        if ended:
            log.warning(
                "completions.timed_out",
                message="Receivers have not completed events in time; their attempts have failed",
                count=ended,
            )
        return ended


def _settle_completion(
    store: Store,
    awaited: AwaitedEvent,
    ended: CompletionOutcome,
    dispatch: Callable[[Sequence[Event], datetime], None],
    judge_failures: Callable[[str, datetime], bool],
    cause_counts: CauseCounts,
) -> bool:
    """Writes what was said of an event, and what follows from it for its schedule; False where the event has
    moved meanwhile."""
    if not store.completions.tell(awaited, ended):
        return False
    now = ended.report.at
    metrics.completions.labels(ended.report.how).inc()
    store.last_runs.write(
        [RunResult(awaited.schedule_id, awaited.run_time, ended.state, awaited.event_id, now)]
    )
    if ended.cause is not None:
        cause_counts.count(
            ended.cause,
            awaited.event_id,
            awaited.schedule_id,
            now,
            ended.message,
            is_first=_attempt_number(awaited) == awaited.attempts_before + 1,
            state=ended.state,
        )
        cause_counts.write_now_and_then()
    if ended.due_at is None:
        woken = store.overlaps.wake_next(awaited.schedule_id, now)
        if woken is not None:
            dispatch([woken], now)
    if ended.state is State.ERROR:
        judge_failures(awaited.schedule_id, now)
    return True


def _completed_end(awaited: AwaitedEvent, now: datetime) -> CompletionOutcome:
    report = CompletionReport("completed", _attempt_number(awaited), now)
    return CompletionOutcome(report, State.COMPLETED, "Its receiver has completed it", worker=RECEIVER)


def _failed_end(
    awaited: AwaitedEvent, how: Literal["failed", "timed_out"], reason: str, now: datetime
) -> CompletionOutcome:
    number = _attempt_number(awaited)
    cause = failing_key(awaited.event_id, awaited.receiver, None, _FAILURES[how])
    said = f"its receiver says: {reason}" if how == "failed" and reason else reason or "its receiver says so"
    report = CompletionReport(how, number, now)
    if awaited.retry_in is None:
        message = f"Attempt {number} failed, and it was the last one: {said}"
        return CompletionOutcome(report, State.ERROR, message, None, cause, RECEIVER)
    due_at = whole_milliseconds(now + awaited.retry_in)
    message = f"Attempt {number} failed: {said}; the next follows at {shown_instant(due_at)}"
    return CompletionOutcome(report, State.RETRYING, message, due_at, cause, RECEIVER)


#: What events have in common whose receivers say so, or say nothing.
_FAILURES: Final = {"failed": "reported as failed by its receiver", "timed_out": "not completed in time"}


def _attempt_number(awaited: AwaitedEvent) -> int:
    """The attempt that is spoken of."""
    return awaited.attempt if awaited.awaiting else awaited.attempt + 1


def _leave_to_beat(events: Sequence[Event], now: datetime) -> None:
    """Stands for dispatching at once where the next duty of the tick does it."""

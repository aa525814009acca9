"""Receivers say how the work of an event went; what they do not say in time has failed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from scheduler_app.domain.completion import Awaited, Told, is_known, objection
from scheduler_app.domain.errors import Conflict, Refused
from scheduler_app.domain.event import Event, State
from scheduler_app.domain.instants import shown_instant, whole_milliseconds
from scheduler_app.store import Store
from scheduler_app.store.events.completions import Ended
from scheduler_app.store.events.record import EventRecord
from scheduler_app.store.schedules.last_runs import Run
from scheduler_app.telemetry import get_logger, metrics

log = get_logger(__name__)

RECEIVER = "its receiver"
#: A worker, a beat and another request may move the event meanwhile.
TRIES = 5
EVENTS_A_PAGE = 200
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

    def complete(self, event_id: str, token: str, now: datetime, *, tenant: str) -> EventRecord:
        """Ends the event as completed. Raises Refused for a wrong token, Conflict where it is too late."""
        return self._tell(event_id, token, "completed", "", now, tenant)

    def fail(self, event_id: str, token: str, reason: str, now: datetime, *, tenant: str) -> EventRecord:
        """Ends the event's attempt as failed, so that the next one follows if there is one left. Raises as
        `complete`."""
        return self._tell(event_id, token, "failed", reason, now, tenant)

    def _tell(
        self,
        event_id: str,
        token: str,
        how: Literal["completed", "failed"],
        reason: str,
        now: datetime,
        tenant: str,
    ) -> EventRecord:
        for _ in range(TRIES):
            awaited = self.store.completions.find(event_id, tenant=tenant)
            # A caller without a token must not learn which events exist.
            if not is_known(token, awaited.digests if awaited else ()) or awaited is None:
                raise Refused(STRANGER)
            late = objection(awaited, how)
            if late:
                raise Conflict(late)
            if late is not None or self._written(awaited, how, reason, now):
                found = self.store.events.get(event_id, tenant=tenant)
                if found is None:
                    raise Refused(STRANGER)
                return found
        raise Conflict("the event is being moved by others; tell again")

    def _written(
        self, awaited: Awaited, how: Literal["completed", "failed"], reason: str, now: datetime
    ) -> bool:
        ended = _completed(awaited, now) if how == "completed" else _failed(awaited, how, reason, now)
        return _settle(self.store, awaited, ended, self.dispatch, self.judge_failures)


class CompletionTimeouts:
    """Ends what was not completed in time."""

    def __init__(self, store: Store, judge_failures: Callable[[str, datetime], bool]) -> None:
        """`judge_failures` pauses a schedule if its last events all failed."""
        self._store = store
        self._judge_failures = judge_failures

    def end_overdue(self, now: datetime) -> int:
        """Ends a page of attempts that were not completed in time; returns how many. Raises a STORE_FAULT."""
        ended = 0
        for awaited in self._store.completions.overdue(now, limit=EVENTS_A_PAGE):
            reason = f"it was not completed within {awaited.seconds:g} s"
            failed = _failed(awaited, "timed_out", reason, now)
            ended += _settle(self._store, awaited, failed, _leave_to_beat, self._judge_failures)
        if ended:
            log.warning(
                "completions.timed_out",
                message="Receivers have not completed events in time; their attempts have failed",
                count=ended,
            )
        return ended


def _settle(
    store: Store,
    awaited: Awaited,
    ended: Ended,
    dispatch: Callable[[Sequence[Event], datetime], None],
    judge_failures: Callable[[str, datetime], bool],
) -> bool:
    """Writes what was said of an event, and what follows from it for its schedule; False where the event has
    moved meanwhile."""
    if not store.completions.tell(awaited, ended):
        return False
    now = ended.told.at
    metrics.completions.labels(ended.told.how).inc()
    store.last_runs.write([Run(awaited.schedule_id, awaited.run_time, ended.state, awaited.event_id, now)])
    if ended.due_at is None:
        woken = store.overlaps.wake_next(awaited.schedule_id, now)
        if woken is not None:
            dispatch([woken], now)
    if ended.state is State.ERROR:
        judge_failures(awaited.schedule_id, now)
    return True


def _completed(awaited: Awaited, now: datetime) -> Ended:
    told = Told("completed", _number(awaited), now)
    return Ended(told, State.COMPLETED, "Its receiver has completed it", worker=RECEIVER)


def _failed(awaited: Awaited, how: Literal["failed", "timed_out"], reason: str, now: datetime) -> Ended:
    number = _number(awaited)
    said = f"its receiver says: {reason}" if how == "failed" and reason else reason or "its receiver says so"
    told = Told(how, number, now)
    if awaited.retry_in is None:
        message = f"Attempt {number} failed, and it was the last one: {said}"
        return Ended(told, State.ERROR, message, worker=RECEIVER)
    due_at = whole_milliseconds(now + awaited.retry_in)
    message = f"Attempt {number} failed: {said}; the next follows at {shown_instant(due_at)}"
    return Ended(told, State.RETRYING, message, due_at, RECEIVER)


def _number(awaited: Awaited) -> int:
    """The attempt that is spoken of."""
    return awaited.attempt if awaited.awaiting else awaited.attempt + 1


def _leave_to_beat(events: Sequence[Event], now: datetime) -> None:
    """Stands for dispatching at once where the next duty of the tick does it."""

"""Does at once, for a person's request, what would otherwise wait for the next tick of a beat.

The request has been written by then, and beats do the same work within a tick or two: a failure here is
logged, and is not an error for the request.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from scheduler_app.domain.event import Event
from scheduler_app.domain.owed import OwedRange
from scheduler_app.domain.schedule import Schedule
from scheduler_app.telemetry import get_logger
from scheduler_app.usecases.dispatch import Dispatch
from scheduler_app.usecases.expansion import Expansion

log = get_logger(__name__)

IDS_IN_A_LINE = 10
#: Threads of one process that wait for the broker at the same time, and how long others wait for their turn:
#: while it does not answer, the other threads serve requests that do not need it.
AT_ONCE = 8
TURN_SECONDS = 0.2


@dataclass(frozen=True)
class Prompt:
    """Expands and dispatches for one request. `faults` are the exceptions by which MongoDB and the broker
    show that they are away; timeframe and horizon are seconds. Threads may share it."""

    expansion: Expansion
    dispatch: Dispatch
    faults: tuple[type[Exception], ...]
    timeframe_seconds: float
    horizon_seconds: float
    is_away: Callable[[], bool] = lambda: False
    """Whether the broker is known not to answer: then everything is left to beats at once."""
    turns: threading.BoundedSemaphore = field(default_factory=lambda: threading.BoundedSemaphore(AT_ONCE))

    def expand_and_dispatch(self, schedules: Sequence[Schedule], now: datetime) -> None:
        """Makes the first events of new and edited schedules, and dispatches those within the horizon.

        Of a single schedule the whole timeframe is expanded, and the cut that an edit left; of many only
        what cannot wait for a tick: events within the horizon.
        """
        ahead = self.timeframe_seconds if len(schedules) == 1 else self.horizon_seconds
        end = now + timedelta(seconds=ahead)
        near = [
            schedule.id
            for schedule in schedules
            if schedule.cut_pending or (schedule.next_run_at and schedule.next_run_at <= end)
        ]
        try:
            events = self.expansion.expand_these(near, now, end).events if near else []
            self._in_turn(events, now, urgent=False)
        except self.faults as error:
            log.warning(
                "schedule.left_to_beat",
                message="Schedules were written; their first events are left to beat",
                schedule_ids=near[:IDS_IN_A_LINE],
                count=len(near),
                error=str(error)[:300],
            )

    def expand_until(self, schedule: Schedule, until: datetime) -> OwedRange | None:
        """Makes the events that an edit at `until` must not lose, and dispatches them; returns the range that
        is too long for one request. Raises a STORE_FAULT: without these events the edit must not happen."""
        expanded = self.expansion.expand_up_to(schedule, until)
        # All of these are due by now: left to a beat, they would be late by up to a tick.
        self._dispatch(expanded.events, until, urgent=False)
        return expanded.left

    def dispatch_soon(self, events: Sequence[Event], now: datetime) -> None:
        """Dispatches those events that are due within the horizon, in their turn."""
        self._dispatch(events, now, urgent=False)

    def dispatch_urgently(self, events: Sequence[Event], now: datetime) -> None:
        """Dispatches events that a person asked for, ahead of all others."""
        self._dispatch(events, now, urgent=True)

    def _dispatch(self, events: Sequence[Event], now: datetime, *, urgent: bool) -> None:
        try:
            self._in_turn(events, now, urgent=urgent)
        except self.faults as error:
            log.warning(
                "event.left_to_beat",
                message="Events were written; sending them is left to beat",
                event_ids=[event.id for event in events[:IDS_IN_A_LINE]],
                count=len(events),
                error=str(error)[:300],
            )

    def _in_turn(self, events: Sequence[Event], now: datetime, *, urgent: bool) -> None:
        """Dispatches if the broker answers; beats do it otherwise. Raises one of `faults`."""
        if not events or self.is_away() or not self.turns.acquire(timeout=TURN_SECONDS):
            return
        try:
            if not self.is_away():  # it may have shown that to the thread before
                self.dispatch.dispatch_these(events, now, urgent=urgent)
        finally:
            self.turns.release()

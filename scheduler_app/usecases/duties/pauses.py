"""Pauses that no person begins or ends: schedules are paused after failures, and resumed when a pause has
ended.

A schedule whose last events all ended in `error` is paused, and that is notified.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from scheduler_app.domain.errors import Conflict, NotFound
from scheduler_app.domain.schedule import PAUSED_BY_FAILURES, Schedule, ScheduleState
from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.telemetry import get_logger, metrics
from scheduler_app.usecases.deeds.schedules import ScheduleService

log = get_logger(__name__)


@dataclass(frozen=True)
class FailurePausing:
    """Judges schedules with `pause_after_failures` after one of their events has ended in `error`.

    The count is not kept anywhere: it is read from the events themselves, in the order of their run times.
    So several workers that record at once, a write that is repeated and a worker that dies in between cannot
    make it wrong, and the next failure finds what an earlier one has missed.
    """

    store: Store
    manager: ScheduleService
    tell: Callable[[Schedule, str, datetime], None]
    """Tells the schedule's `on_failure`, once for a revision however often it is called."""

    def judge(self, schedule_id: str, now: datetime) -> bool:
        """Pauses the schedule if its last events all failed; returns whether this call did it. Raises a
        STORE_FAULT."""
        try:
            schedule = self.manager.get(schedule_id)
        except (NotFound, Conflict):
            return False  # it was deleted meanwhile, or cannot be read
        reason = self._reason(schedule, now)
        if reason is None:
            return False
        try:
            paused = self.manager.pause_for_failures(schedule, now, note=reason)
        except (NotFound, Conflict) as error:
            log.warning(
                "schedule.not_paused",
                message="A schedule that fails could not be paused; its next failure tries again",
                schedule_id=schedule_id,
                error=str(error)[:300],
            )
            return False
        if paused is None:
            return False
        metrics.paused_after_failures.inc()
        log.warning(
            "schedule.paused_after_failures",
            message="A schedule was paused, because its last events all ended in error",
            schedule_id=schedule_id,
            failures=schedule.pause_after_failures,
        )
        self.tell(paused, PAUSED_BY_FAILURES, now)
        return True

    def _reason(self, schedule: Schedule, now: datetime) -> str | None:
        """Why it is to be paused; None if it is not."""
        most = schedule.pause_after_failures
        if most is None or schedule.state is not ScheduleState.ACTIVE:
            return None
        ended = self.store.events.last_ended(
            schedule.id, after=schedule.failures_since, until=now, limit=most
        )
        if len(ended) < most or any(state is not State.ERROR for _, state in ended):
            return None
        rows = "1 event" if most == 1 else f"{most} events in a row"
        return f"{rows} ended in error, the last of them {ended[0][0]}"


SCHEDULES_A_PAGE = 500
_IDS_LOGGED = 20


class Resumption:
    """Ends the pauses that have an end. Any number of beats may do it at once: each pause is ended by one
    write, which only one of them wins, and expansion goes on from there."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def resume_page(self, now: datetime) -> bool:
        """Whether there may be more to resume at once. Raises a STORE_FAULT."""
        over = self._store.pauses.over(now, limit=SCHEDULES_A_PAGE)
        resumed = [schedule for each in over if (schedule := self._resumed(each, now)) is not None]
        ended = self._store.pauses.end(resumed)
        if ended:
            log.info(
                "schedules.resumed",
                message="The pauses of schedules are over; the schedules are active again",
                count=ended,
                schedule_ids=[schedule.id for schedule in resumed[:_IDS_LOGGED]],
            )
        return len(over) == SCHEDULES_A_PAGE

    def _resumed(self, schedule: Schedule, now: datetime) -> Schedule | None:
        try:
            return schedule.resumed_by_itself()
        except Exception as error:  # one schedule's fault must not stop the others
            self._store.pauses.set_aside(schedule, f"{type(error).__name__}: {error}", now)
            return None

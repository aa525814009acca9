"""Resume: a schedule whose pause has ended becomes active again by itself."""

from datetime import datetime

from scheduler_app.domain.schedule import Schedule
from scheduler_app.store import Store
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

SCHEDULES_A_PAGE = 500
_SHOWN = 20


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
                schedule_ids=[schedule.id for schedule in resumed[:_SHOWN]],
            )
        return len(over) == SCHEDULES_A_PAGE

    def _resumed(self, schedule: Schedule, now: datetime) -> Schedule | None:
        try:
            return schedule.resumed_by_itself()
        except Exception as error:  # one schedule's fault must not stop the others
            self._store.pauses.set_aside(schedule, f"{type(error).__name__}: {error}", now)
            return None

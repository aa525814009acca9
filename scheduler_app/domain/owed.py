"""What an edit leaves to beats: the occurrences that a revision still owes up to the cut that ended it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from scheduler_app.domain.calendars import CalendarUse
from scheduler_app.domain.event import Event
from scheduler_app.domain.recurrence import AnyRecurrence
from scheduler_app.domain.triggers import Trigger

#: A schedule keeps no more of them; an edit that would add another is refused until beats have made up some.
MAX_OWED = 20


@dataclass(frozen=True, slots=True)
class OwedRange:
    """A stretch of time that belongs to a revision which an edit has ended, and that is not expanded yet."""

    revision: int
    trigger: Trigger
    """The rule of that revision: the schedule may have another one by now."""
    next_run_at: datetime
    """The first occurrence that is not an event yet."""
    until: datetime
    """The cut, inclusive."""
    checkpoint: Mapping[str, Any] | None = None
    calendar: CalendarUse | None = None
    """What that revision observed; its days are those that the calendar has by now."""
    jitter_seconds: float = 0.0

    def recurrence(self, created_at: datetime) -> AnyRecurrence:
        """As `Schedule.recurrence`; `created_at` is the schedule's. Raises InvalidRecurrence."""
        found = self.trigger.recurrence(created_at, self.checkpoint)
        return found if self.calendar is None else self.calendar.observed_by(found)


@dataclass(frozen=True, slots=True)
class BeforeCut:
    """What an old rule still owed before an edit: the events that were made of it, and what is left to beats
    because it is too much for a request."""

    events: tuple[Event, ...] = ()
    left: OwedRange | None = None

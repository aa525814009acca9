"""The calendar of runs: what became of each run that was due, and what is to come, in parts of a time."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum

from scheduler_app.domain.blackout import Blackout


class RunOutcome(StrEnum):
    """What became of a run."""

    DONE = "done"
    FAILED = "failed"
    """It was given up: a dead letter."""
    DID_NOT_RUN = "did_not_run"
    """It was cancelled, skipped or too late. What was withdrawn before it was due counts as nothing."""
    HELD = "held"
    """It was due, and a kill switch holds it."""
    WAITING = "waiting"
    """It was due, and has not ended: it waits, is under way, or is about to be tried again."""
    TO_COME = "to_come"


#: A schedule with more runs in the time that is looked at is told by numbers, and not by name.
MOST_RARE = 10


@dataclass(frozen=True, slots=True)
class NamedRun:
    """A run of a schedule that runs rarely."""

    at: datetime
    outcome: RunOutcome
    event_id: str | None = None
    """None for what is no event yet."""


@dataclass(frozen=True, slots=True)
class RareSchedule:
    """A schedule with few runs in all of the time, and these."""

    id: str
    name: str
    runs: tuple[NamedRun, ...]


@dataclass(slots=True)
class CalendarPart:
    """How many runs one part of the time has, by what became of them."""

    start: datetime
    end: datetime
    counts: Counter[RunOutcome] = field(default_factory=Counter)
    tried_again: int = 0
    """Those of the runs that are done which took more than one attempt."""


@dataclass(frozen=True, slots=True)
class BlackoutWindow:
    blackout: Blackout
    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class ClosedDay:
    """A day that a calendar closes which one of the schedules observes."""

    calendar: str
    date: date
    name: str
    is_weekend: bool


@dataclass(frozen=True, slots=True)
class RunCalendar:
    """The answer. `notes` say what is estimated or left out; none means that the numbers are exact."""

    parts: Sequence[CalendarPart]
    rare: Sequence[RareSchedule]
    rare_omitted: int
    """How many schedules that run rarely are not named."""
    blackouts: Sequence[BlackoutWindow]
    closed_days: Sequence[ClosedDay]
    notes: Sequence[str]
    to_come_at: datetime
    """When what is to come was counted."""
    is_first_answer: bool = False
    """Whether what is to come was estimated, because a first answer was asked for: a whole one may know."""

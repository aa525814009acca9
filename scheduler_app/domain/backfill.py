"""A backfill: past occurrences of a schedule become events, a page at a time, at a rate."""

import math
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from scheduler_app.domain.action import CALLBACKS, UNKNOWN_ORIGIN
from scheduler_app.domain.event import Event
from scheduler_app.domain.ids import backfill_event_id, tenant_of
from scheduler_app.domain.schedule import OwedRange
from scheduler_app.domain.states import Kind

MAX_OCCURRENCES = 100_000
MAX_RATE = 1_000.0
LEAST_RATE = 0.01
DEFAULT_RATE = 10.0
#: Backfills of one tenant that make events at a time.
MAX_RUNNING = 10
#: No more of one backfill wait at a time, however high its rate and however slow its receiver.
MAX_WAITING = 5_000


class BackfillState(StrEnum):
    """`made`: all events are made; some of them may wait."""

    RUNNING = "running"
    MADE = "made"
    CANCELLED = "cancelled"
    ERROR = "error"


class BackfillOverlap(StrEnum):
    """`allow`: its events run beside each other. `queue`: one after the other."""

    ALLOW = "allow"
    QUEUE = "queue"


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """One backfill, as it is stored; a schedule has one at a time."""

    schedule_id: str
    number: str
    """Part of its events' ids, so that no two backfills make the same one."""
    since: datetime
    until: datetime
    """Inclusive."""
    rest: OwedRange | None
    """What is left to make, by the rule that the schedule had when it was asked for."""
    schedule_created_at: datetime
    rate_per_second: float
    overlap: BackfillOverlap = BackfillOverlap.ALLOW
    only_missing: bool = True
    occurrences: int = 0
    origin: str = UNKNOWN_ORIGIN
    queue: str = CALLBACKS
    state: BackfillState = BackfillState.RUNNING
    reason: str | None = None
    made: int = 0
    left_out: int = 0
    """Occurrences that had an event already."""
    next_due_at: datetime
    """When the next event falls due at the earliest."""
    started_at: datetime
    ended_at: datetime | None = None
    sweeping: bool = False
    """It was cancelled, and some of its events may still wait."""

    @property
    def tenant(self) -> str:
        return tenant_of(self.schedule_id)

    @property
    def revision(self) -> int:
        return self.rest.revision if self.rest is not None else 1

    def room(self, now: datetime, *, ahead: timedelta, waiting: int, overdue: int) -> int:
        """How many events may be made now: those that fall due within `ahead`, while `waiting` of them are
        not finished. Those that are `overdue` and not begun take the place of others: after an outage no more
        come at once than that."""
        if self.overlap is BackfillOverlap.QUEUE:
            return 0 if waiting else 1
        seconds = (now + ahead - max(self.next_due_at, now)).total_seconds()
        return max(0, min(MAX_WAITING - waiting, math.ceil(seconds * self.rate_per_second) - overdue))

    def events(self, instants: list[datetime], now: datetime) -> tuple[list[Event], datetime]:
        """The events of these occurrences, spread by the rate, and when the one after them falls due."""
        first, step = max(self.next_due_at, now), timedelta(seconds=1 / self.rate_per_second)
        events = [
            Event(
                id=backfill_event_id(self.schedule_id, self.number, instant),
                schedule_id=self.schedule_id,
                revision=self.revision,
                run_time=instant,
                due_at=first + place * step,
                kind=Kind.BACKFILL,
                origin=self.origin,
                queue=self.queue,
            )
            for place, instant in enumerate(instants)
        ]
        return events, first + len(events) * step

    def went_on(
        self, rest: OwedRange | None, made: int, left_out: int, next_due_at: datetime, now: datetime
    ) -> "Backfill":
        """After a page."""
        moved = replace(
            self,
            rest=rest or self.rest,
            made=self.made + made,
            left_out=self.left_out + left_out,
            next_due_at=next_due_at,
        )
        return moved if rest is not None else replace(moved, state=BackfillState.MADE, ended_at=now)

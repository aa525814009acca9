"""A redrive: dead letters that people have sent again by beats, at a rate, when their receiver answers."""

import math
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from scheduler_app.domain.ids import WholeId, tenant_of

#: Redrives of one tenant that are at work at a time.
MAX_REDRIVES: Final = 10
#: Dead letters that a page looks at.
LETTERS_A_PAGE: Final = 500
#: Of so many schedules the newest dead letter is sent; of further ones none is.
MAX_NEWEST: Final = 5_000
#: Dead letters that a plan counts, and those that it shows.
MAX_PLANNED: Final = 10_000
PLANNED_SHOWN: Final = 100
#: With a rate, those due within this time are made due now.
AHEAD: Final = timedelta(seconds=10)
#: How often one dead letter is sent to a receiver that is waited for, while nothing else is.
TRIAL_PERIOD: Final = timedelta(minutes=1)


class RedriveState(StrEnum):
    """`waiting`: for its receiver to answer. `sent`: all are due again; some may wait."""

    WAITING = "waiting"
    RUNNING = "running"
    SENT = "sent"
    STOPPED = "stopped"
    ERROR = "error"


class RedriveChoice(StrEnum):
    """Which of the dead letters are sent."""

    ALL = "all"
    NEWEST = "newest_of_each_schedule"
    NOT_TOO_LATE = "not_too_late"


class RedriveTime(StrEnum):
    """When they are sent."""

    NOW = "now"
    RECEIVER_ANSWERS = "receiver_answers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Redrive:
    """One redrive, as it is stored."""

    id: WholeId
    cause: str | None
    """The mark that the dead letters carry; None for those of any cause."""
    choice: RedriveChoice = RedriveChoice.ALL
    time: RedriveTime = RedriveTime.NOW
    rate_per_second: float | None = None
    """None: as fast as beats make them due."""
    schedule_id: str | None = None
    tag: str | None = None
    origin: str | None = None
    newest: tuple[str, ...] = ()
    """The ids that are left to send, where the newest one of each schedule is sent."""
    before: datetime
    """Dead letters whose run times are later are not sent."""
    after: tuple[datetime, str] | None = None
    """The dead letter that was looked at last."""
    state: RedriveState = RedriveState.RUNNING
    planned: int = 0
    """How many there were at the start; MAX_PLANNED at most."""
    sent: int = 0
    skipped: int = 0
    reason: str | None = None
    next_due_at: datetime
    """When the next one falls due at the earliest."""
    started_at: datetime
    ended_at: datetime | None = None

    @property
    def tenant(self) -> str:
        return tenant_of(self.id)

    @property
    def is_over(self) -> bool:
        return self.ended_at is not None

    def room(self, now: datetime) -> int:
        """How many may be made due now."""
        if self.rate_per_second is None:
            return LETTERS_A_PAGE
        seconds = (now + AHEAD - max(self.next_due_at, now)).total_seconds()
        return max(0, min(LETTERS_A_PAGE, math.ceil(seconds * self.rate_per_second)))

    def due_times(self, count: int, now: datetime) -> tuple[list[datetime], datetime] | None:
        """When so many fall due, one after the other, and the one after them; None without a rate."""
        if self.rate_per_second is None:
            return None
        first, step = max(self.next_due_at, now), timedelta(seconds=1 / self.rate_per_second)
        return [first + place * step for place in range(count)], first + count * step

    def answered(self, now: datetime) -> "Redrive":
        """Its receiver answers: it begins."""
        return replace(self, state=RedriveState.RUNNING, next_due_at=now)

    def tried(self, sent: int, now: datetime) -> "Redrive":
        """After one dead letter was sent to see whether its receiver answers."""
        return replace(self, sent=self.sent + sent, next_due_at=now + TRIAL_PERIOD)

    def went_on(
        self,
        sent: int,
        skipped: int,
        next_due_at: datetime | None,
        *,
        newest: tuple[str, ...] = (),
        after: tuple[datetime, str] | None = None,
    ) -> "Redrive":
        """After a page."""
        return replace(
            self,
            sent=self.sent + sent,
            skipped=self.skipped + skipped,
            next_due_at=next_due_at or self.next_due_at,
            newest=newest,
            after=after or self.after,
        )

    def done(self, now: datetime) -> "Redrive":
        return replace(self, state=RedriveState.SENT, ended_at=now, newest=())

    def failed(self, reason: str, now: datetime) -> "Redrive":
        """It cannot continue."""
        return replace(self, state=RedriveState.ERROR, reason=reason[:1000], ended_at=now, newest=())

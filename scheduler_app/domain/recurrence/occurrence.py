"""An occurrence, and the two recurrences that need no rule: that of a single instant, and that of a schedule
without any occurrence.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from scheduler_app.domain.recurrence.timeline import require_aware
from scheduler_app.domain.recurrence.why.reason import Reason, RecurrenceVerdict


@dataclass(frozen=True)
class Occurrence:
    """`instant` in UTC, `local` in the recurrence's zone, and what a clock change did to it (None: nothing).

    `dst`: "gap_shifted" (its wall-clock time does not exist, so it fires later by the gap's length),
    "overlap_first" or "overlap_last" (its wall-clock time exists twice, and this is the first or the last).
    `rolled_from`: the local time from which a calendar's closed day moved it.
    """

    instant: datetime
    local: datetime
    dst: str | None
    rolled_from: datetime | None = None


class WithoutRule(ABC):
    """What `Once` and `Never` have in common: they answer the questions that `Recurrence` answers."""

    @property
    def timezone(self) -> str:
        """Always UTC: an instant needs no zone."""
        return "UTC"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Always empty: an instant does not surprise."""
        return ()

    @property
    @abstractmethod
    def _instants(self) -> tuple[datetime, ...]:
        """Its occurrences."""

    def after(self, instant: datetime, *, inclusive: bool = False) -> datetime | None:
        """The occurrence after an aware `instant` (or at it, if `inclusive`); None: no more."""
        require_aware(instant, "instant")
        return next((at for at in self._instants if at > instant or (inclusive and at == instant)), None)

    def between(self, start: datetime, end: datetime, limit: int | None = None) -> list[datetime]:
        """The occurrences from `start` (inclusive) to `end` (exclusive), both aware, `limit` at most."""
        require_aware(start, "start")
        require_aware(end, "end")
        return [at for at in self._instants if start <= at < end][:limit]

    def between_and_next(
        self, start: datetime, end: datetime, limit: int
    ) -> tuple[list[datetime], datetime | None]:
        """As `between`, and the occurrence that follows those."""
        found = self.between(start, end, limit)
        return found, next((at for at in self._instants if at >= start and at not in found), None)

    def count(self, start: datetime, end: datetime) -> int:
        """How many they are, as `between`."""
        return len(self.between(start, end))

    def occurrences(self, start: datetime, end: datetime, limit: int | None = None) -> list[Occurrence]:
        """As `between`."""
        return [Occurrence(instant, instant, None) for instant in self.between(start, end, limit)]

    def checkpoint(self, instant: datetime) -> dict[str, Any] | None:
        """None: there is nothing to count."""
        require_aware(instant, "instant")
        return None


@dataclass(frozen=True)
class Once(WithoutRule):
    """The one occurrence at an aware `instant`, kept in UTC and in whole milliseconds, as BSON keeps it."""

    instant: datetime

    def __post_init__(self) -> None:
        instant = require_aware(self.instant, "instant").astimezone(UTC)
        whole = instant.replace(microsecond=instant.microsecond // 1000 * 1000)
        object.__setattr__(self, "instant", whole)

    @property
    def _instants(self) -> tuple[datetime, ...]:
        return (self.instant,)

    @property
    def description(self) -> str:
        """The instant in words."""
        precision = "milliseconds" if self.instant.microsecond else "seconds"
        return f"Once, at {self.instant.replace(tzinfo=None).isoformat(' ', precision)} UTC"

    def why(self, instant: datetime) -> RecurrenceVerdict:
        """Whether it is the aware `instant`."""
        require_aware(instant, "instant")
        if instant == self.instant:
            return RecurrenceVerdict(True, causes=(Reason("run_at", f"{self.description}."),))
        reason = Reason("run_at", f"It fires once only. {self.description}.")
        before, behind = (self.instant, None) if self.instant < instant else (None, self.instant)
        return RecurrenceVerdict(False, (reason,), previous=before, following=behind)


@dataclass(frozen=True)
class Never(WithoutRule):
    """No occurrence."""

    @property
    def description(self) -> str:
        """The recurrence in plain English."""
        return "Only on demand"

    @property
    def _instants(self) -> tuple[datetime, ...]:
        return ()

    def why(self, instant: datetime) -> RecurrenceVerdict:
        """It never fires by itself."""
        require_aware(instant, "instant")
        reason = Reason("on_demand", "It has no times of its own: it runs when it is triggered by request.")
        return RecurrenceVerdict(False, (reason,))

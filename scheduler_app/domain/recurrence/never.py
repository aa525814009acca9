"""The recurrence of a schedule that runs on demand only: no occurrence at all."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .occurrence import Occurrence
from .timeline import require_aware
from .why import Reason, Verdict


@dataclass(frozen=True)
class Never:
    """No occurrence; it answers the questions that `Recurrence` answers."""

    @property
    def timezone(self) -> str:
        """Always UTC: there is no local time."""
        return "UTC"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Always empty."""
        return ()

    @property
    def description(self) -> str:
        """The recurrence in plain English."""
        return "Only on demand"

    def after(self, instant: datetime, *, inclusive: bool = False) -> datetime | None:
        """Always None."""
        require_aware(instant, "instant")
        return None

    def between(self, start: datetime, end: datetime, limit: int | None = None) -> list[datetime]:
        """Always empty."""
        require_aware(start, "start")
        require_aware(end, "end")
        return []

    def between_and_next(
        self, start: datetime, end: datetime, limit: int
    ) -> tuple[list[datetime], datetime | None]:
        """Always empty, and nothing follows."""
        return self.between(start, end, limit), None

    def count(self, start: datetime, end: datetime) -> int:
        """Always 0."""
        return len(self.between(start, end))

    def occurrences(self, start: datetime, end: datetime, limit: int | None = None) -> list[Occurrence]:
        """Always empty."""
        self.between(start, end, limit)
        return []

    def why(self, instant: datetime) -> Verdict:
        """It never fires by itself."""
        require_aware(instant, "instant")
        reason = Reason("on_demand", "It has no times of its own: it runs when it is triggered by request.")
        return Verdict(False, (reason,))

    def checkpoint(self, instant: datetime) -> dict[str, Any] | None:
        """Always None: there is nothing to count."""
        require_aware(instant, "instant")
        return None

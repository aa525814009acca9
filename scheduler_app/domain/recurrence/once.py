"""The recurrence of `run_at`: one instant, to the millisecond."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from .occurrence import Occurrence
from .timeline import require_aware
from .why import Reason, Verdict


@dataclass(frozen=True)
class Once:
    """The one occurrence at an aware `instant`, kept in UTC and in whole milliseconds, as BSON keeps it."""

    instant: datetime

    def __post_init__(self) -> None:
        instant = require_aware(self.instant, "instant").astimezone(UTC)
        whole = instant.replace(microsecond=instant.microsecond // 1000 * 1000)
        object.__setattr__(self, "instant", whole)

    @property
    def timezone(self) -> str:
        """Always UTC: an instant needs no zone."""
        return "UTC"

    @property
    def warnings(self) -> tuple[str, ...]:
        """None: an instant does not surprise."""
        return ()

    @property
    def description(self) -> str:
        """The instant in words."""
        precision = "milliseconds" if self.instant.microsecond else "seconds"
        return f"Once, at {self.instant.replace(tzinfo=None).isoformat(' ', precision)} UTC"

    def after(self, instant: datetime, *, inclusive: bool = False) -> datetime | None:
        """The instant, if it is later than the given aware one (or equal, when `inclusive`)."""
        require_aware(instant, "instant")
        return self.instant if self.instant > instant or (inclusive and self.instant == instant) else None

    def between(self, start: datetime, end: datetime, limit: int | None = None) -> list[datetime]:
        """The instant, if `start` <= it < `end` (both aware) and `limit` leaves room for one."""
        require_aware(start, "start")
        require_aware(end, "end")
        return [self.instant] if start <= self.instant < end and limit != 0 else []

    def between_and_next(
        self, start: datetime, end: datetime, limit: int
    ) -> tuple[list[datetime], datetime | None]:
        """As `between`, and the instant if it comes after those."""
        found = self.between(start, end, limit)
        return found, None if found or self.instant < start else self.instant

    def count(self, start: datetime, end: datetime) -> int:
        """1 or 0, as `between`."""
        return len(self.between(start, end))

    def occurrences(self, start: datetime, end: datetime, limit: int | None = None) -> list[Occurrence]:
        """As `between`."""
        return [Occurrence(instant, instant, None) for instant in self.between(start, end, limit)]

    def why(self, instant: datetime) -> Verdict:
        """Whether it is the aware `instant`."""
        require_aware(instant, "instant")
        if instant == self.instant:
            return Verdict(True, causes=(Reason("run_at", f"{self.description}."),))
        reason = Reason("run_at", f"It fires once only. {self.description}.")
        earlier = self.instant < instant
        return Verdict(
            False,
            (reason,),
            previous=self.instant if earlier else None,
            following=None if earlier else self.instant,
        )

    def checkpoint(self, instant: datetime) -> dict[str, Any] | None:
        """None: there is nothing to count."""
        require_aware(instant, "instant")
        return None

"""Figures of attempts: how many ended how, how late they were and how long they took, in parts of a time.

They are counted in memory where attempts are recorded, and added up in documents for each minute and hour, so
that no question has to read the events. How late and how long is kept by steps: a quantile is the upper
bound of its step.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

#: The upper bounds of the steps, in ms; the last step has none.
STEPS: Final = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(1_000, 2_000, 5_000, 10_000, 20_000, 60_000, 300_000, 3_600_000),
)
MINUTE: Final = timedelta(minutes=1)
HOUR: Final = timedelta(hours=1)
#: For how many days what was counted in minutes and in hours is kept.
MINUTE_DAYS: Final = 2
HOUR_DAYS: Final = 100
KEPT: Final = {MINUTE: timedelta(days=MINUTE_DAYS), HOUR: timedelta(days=HOUR_DAYS)}
#: How attempts end that are counted.
OUTCOMES: Final = ("completed", "error", "retrying")


@dataclass(slots=True)
class Measured:
    """How often something was measured, in which steps, and the greatest value in ms."""

    steps: Counter[int] = field(default_factory=Counter)
    total: float = 0.0
    most: float = 0.0

    def add(self, value: float) -> None:
        self.steps[bisect_left(STEPS, value)] += 1
        self.total += value
        self.most = max(self.most, value)

    def merge(self, other: "Measured") -> None:
        self.steps.update(other.steps)
        self.total += other.total
        self.most = max(self.most, other.most)

    @property
    def count(self) -> int:
        return self.steps.total()

    def above(self, bound: float) -> int:
        """How many values were greater than `bound`, which is the upper bound of a step."""
        return sum(count for step, count in self.steps.items() if step > STEPS.index(bound))

    def quantile(self, share: float) -> float | None:
        """What that share of the values does not exceed: the upper bound of the step, or the greatest value
        where that is less; None without values."""
        left = share * self.count
        for step in sorted(self.steps):
            left -= self.steps[step]
            if left <= 0:
                return min(float(STEPS[step]), self.most) if step < len(STEPS) else self.most
        return None


@dataclass(slots=True)
class FigurePart:
    """What ended within one part of the time."""

    at: datetime
    outcomes: Counter[str] = field(default_factory=Counter)
    lag: Measured = field(default_factory=Measured)
    """How late each attempt began, in ms."""
    duration: Measured = field(default_factory=Measured)
    """How long each attempt took, in ms."""

    def add(self, outcome: str, lag_ms: float | None, duration_ms: float | None) -> None:
        self.outcomes[outcome] += 1
        if lag_ms is not None:
            self.lag.add(max(lag_ms, 0.0))
        if duration_ms is not None:
            self.duration.add(duration_ms)

    def merge(self, other: "FigurePart") -> None:
        self.outcomes.update(other.outcomes)
        self.lag.merge(other.lag)
        self.duration.merge(other.duration)


@dataclass(frozen=True, slots=True)
class FigureSubject:
    """What figures are of: all of a tenant, what went to a destination, or the schedules with a tag."""

    tenant: str
    kind: str = "all"
    """`all`, `destination` or `tag`."""
    name: str = ""

    @property
    def has_minutes(self) -> bool:
        """Whether minutes are kept, too. There may be thousands of tags, and each would be a write."""
        return self.kind != "tag"


def begin_of_part(at: datetime, width: timedelta) -> datetime:
    """When the part began that an instant is in; parts begin at multiples of their width."""
    seconds = int(width.total_seconds())
    return datetime.fromtimestamp(int(at.timestamp()) // seconds * seconds, tz=at.tzinfo)


def regrouped(
    found: Iterable[FigurePart], start: datetime, end: datetime, width: timedelta
) -> Sequence[FigurePart]:
    """The same in parts of another width from `start` to `end`, those without anything included."""
    count = -((start - end) // width)
    parts = [FigurePart(start + number * width) for number in range(count)]
    for each in found:
        if start <= each.at < end:
            parts[(each.at - start) // width].merge(each)
    return parts

"""The recurrence set (RFC 5545, 3.8.5): rules and dates together, without what exceptions take away.

It is a set: instants that several rules or dates name are one occurrence.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import merge

from scheduler_app.domain.recurrence.timeline import FIRST_SECOND, LAST_SECOND
from scheduler_app.domain.recurrence.zones.zone import Zone

from .closed_days import ClosedDays
from .counted_rule import RuleOfSet
from .day_bits import Window, seconds_of, window_from
from .exclusions import Exclusions
from .step_budget import StepBudget


@dataclass(frozen=True, eq=False)
class RecurrenceSet:
    """Rules, dates (sorted UTC seconds), and the exceptions to both; `exception_days` are local days in
    `zone`, and `closed` are those of a calendar."""

    zone: Zone
    rules: tuple[RuleOfSet, ...]
    dates: tuple[int, ...]
    shifted_dates: frozenset[int]
    exception_rules: tuple[RuleOfSet, ...]
    exception_dates: frozenset[int]
    exception_days: frozenset[int]
    closed: ClosedDays | None = None
    _exclusions: Exclusions | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        exceptions = self.exception_rules, self.exception_dates, self.exception_days
        has_any = any(exceptions) or self.closed is not None
        found = Exclusions(self.zone, *exceptions, self.closed) if has_any else None
        object.__setattr__(self, "_exclusions", found)

    def instants(self, second: int, steps: StepBudget, shifted: set[int] | None = None) -> Iterator[int]:
        """The occurrences from `second` on, as UTC seconds, strictly increasing. `shifted` collects what a
        gap moved."""
        second = max(second, FIRST_SECOND)
        steps.allow(len(self.rules) + len(self.exception_rules))
        streams = self._streams(second, steps, shifted)
        for instant in streams[0] if len(streams) == 1 else _union(streams):
            if instant > LAST_SECOND:
                return
            steps.found()
            yield instant

    def seconds_in(self, window: Window, steps: StepBudget) -> int:
        """What the rules (not the dates) leave of a window, as `day_bits` has it; it must not begin before
        their start."""
        found = 0
        for rule in self.rules:
            found |= seconds_of(rule, window, steps)
        return found & ~self._exclusions.seconds_in(window, steps) if self._exclusions is not None else found

    def count(self, begin: int, end: int, steps: StepBudget) -> int:
        """How many occurrences lie from one UTC second up to another; `begin` is not before the rules'
        start. Costs a few operations for each local day, however many they are."""
        found = 0
        while begin < end:
            window = window_from(self.zone, begin)
            window = window._replace(end=min(window.end, end))
            seconds = self.seconds_in(window, steps)
            for date in self._dates_from(begin, steps):
                if date >= window.end:
                    break
                seconds |= 1 << (date - begin)
            found += seconds.bit_count()
            steps.found()
            begin = window.end
        return found

    def check(self, steps: StepBudget) -> None:
        """InvalidRecurrence where it cannot be told within the steps what EXRULEs leave of a rule."""
        if self._exclusions is not None and self.exception_rules:
            for rule in self.rules:
                next(self._exclusions.left_of(rule, FIRST_SECOND, steps, None), None)

    def _streams(self, second: int, steps: StepBudget, shifted: set[int] | None) -> list[Iterator[int]]:
        exclusions = self._exclusions
        if exclusions is not None:
            streams = [exclusions.left_of(rule, second, steps, shifted) for rule in self.rules]
        else:
            streams = [rule.instants(second, steps, shifted) for rule in self.rules]
        if self.dates:
            if shifted is not None:
                shifted.update(self.shifted_dates)
            streams.append(self._dates_from(second, steps))
        return streams

    def _dates_from(self, second: int, steps: StepBudget) -> Iterator[int]:
        """The dates from a UTC second on that no exception takes away."""
        dates = self.dates[bisect_left(self.dates, second) :]
        return iter(dates) if self._exclusions is None else self._exclusions.left_of_dates(dates, steps)


def _union(streams: list[Iterator[int]]) -> Iterator[int]:
    previous = FIRST_SECOND - 1
    for instant in merge(*streams):
        if instant != previous:
            previous = instant
            yield instant

"""The recurrence set (RFC 5545, 3.8.5): rules and dates together, without what exceptions take away.

It is a set: instants that several rules or dates name are one occurrence.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import merge

from .counted_rule import CountedRule
from .seconds import DAY, FIRST_SECOND, LAST_SECOND
from .steps import Steps
from .tied_rule import TiedRule
from .zone import Zone

RuleOfSet = TiedRule | CountedRule


@dataclass(frozen=True, eq=False)
class RecurrenceSet:
    """Rules, dates (sorted UTC seconds), and the exceptions to both; `exception_days` are local days in
    `zone`."""

    zone: Zone
    rules: tuple[RuleOfSet, ...]
    dates: tuple[int, ...]
    shifted_dates: frozenset[int]
    exception_rules: tuple[RuleOfSet, ...]
    exception_dates: frozenset[int]
    exception_days: frozenset[int]

    def instants(self, second: int, steps: Steps, shifted: set[int] | None = None) -> Iterator[int]:
        """The occurrences from `second` on, as UTC seconds, strictly increasing. `shifted` collects what a
        gap moved."""
        second = max(second, FIRST_SECOND)
        included = self._included(second, steps, shifted)
        excluded = _Exclusion(self, second, steps) if self._has_exceptions else None
        for instant in included:
            if instant > LAST_SECOND:
                return
            if excluded is not None and excluded.covers(instant):
                steps.spend()
            else:
                steps.found()
                yield instant

    @property
    def _has_exceptions(self) -> bool:
        return bool(self.exception_rules or self.exception_dates or self.exception_days)

    def _included(self, second: int, steps: Steps, shifted: set[int] | None) -> Iterator[int]:
        streams = [rule.instants(second, steps, shifted) for rule in self.rules]
        if self.dates:
            if shifted is not None:
                shifted.update(self.shifted_dates)
            streams.append(iter(self.dates[bisect_left(self.dates, second) :]))
        return streams[0] if len(streams) == 1 else _union(streams)


def _union(streams: list[Iterator[int]]) -> Iterator[int]:
    previous = FIRST_SECOND - 1
    for instant in merge(*streams):
        if instant != previous:
            previous = instant
            yield instant


class _Exclusion:
    """What the exceptions take away, asked in ascending order."""

    def __init__(self, of: RecurrenceSet, second: int, steps: Steps) -> None:
        self._set = of
        self._stream = merge(*(rule.instants(second, steps) for rule in of.exception_rules))
        self._next = next(self._stream, None)
        self._steps = steps

    def covers(self, instant: int) -> bool:
        """Whether `instant` is taken away."""
        of = self._set
        if instant in of.exception_dates:
            return True
        if of.exception_days and (instant + of.zone.offset(instant)) // DAY in of.exception_days:
            return True
        while self._next is not None and self._next < instant:
            self._steps.spend()
            self._next = next(self._stream, None)
        return self._next == instant

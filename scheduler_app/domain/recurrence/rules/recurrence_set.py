"""The recurrence set (RFC 5545, 3.8.5): rules and dates together, without what exceptions and closed days
take away.

It is a set: instants that several rules or dates name are one occurrence.

What EXDATE and EXRULE take away is jumped over rather than walked through. An excluded instant is met one
by one at first. Where several in a row are excluded, the rest of the local day is decided at once
(`day_bits`), and days that are excluded as a whole are passed over year by year. So SECONDLY without
December costs 31 steps in December, and a rule with nothing left ends.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from functools import lru_cache
from heapq import merge
from math import lcm
from typing import Final, Literal, Protocol

from scheduler_app.domain.recurrence.rules.bound_rule import BoundRule, RuleOfSet
from scheduler_app.domain.recurrence.rules.calendar_rule import CalendarRule
from scheduler_app.domain.recurrence.rules.day_bits import (
    DayWindow,
    excluded_times,
    seconds_of,
    times_of,
    touched_by_gaps,
    window_from,
)
from scheduler_app.domain.recurrence.rules.days import has_day
from scheduler_app.domain.recurrence.timeline import (
    DAY,
    FIRST_DAY,
    FIRST_SECOND,
    LAST_DAY,
    LAST_SECOND,
    LAST_YEAR,
    StepBudget,
    first_day,
    year_of,
)
from scheduler_app.domain.recurrence.zones import Zone

#: What becomes of an occurrence on a closed day: it is dropped, or moved to an open day, or the day is not
#: even counted, as if the rule did not know it.
OnHoliday = Literal["skip", "next", "previous", "uncounted"]

_WORDS: Final[dict[OnHoliday, str]] = {
    "skip": "but not on",
    "next": "or on the next business day after",
    "previous": "or on the last business day before",
    "uncounted": "not counting",
}


class ClosedDays(Protocol):
    """The holidays and weekend days of a calendar."""

    @property
    def irregular_until(self) -> int:
        """The last year with closed days beside those of every week."""
        ...

    def of_year(self, year: int) -> int:
        """The closed days of a year as a set (see `timeline`): bit 0 is 1 January."""
        ...

    def name_of(self, at: date) -> str:
        """What a closed day is called; "" where it has no name."""
        ...


@dataclass(frozen=True)
class Observance:
    """The calendar that a recurrence observes. `name` is what people call the calendar."""

    name: str
    closed: ClosedDays
    on_holiday: OnHoliday

    @property
    def words(self) -> str:
        """What it does, to be added to a description."""
        return f"{_WORDS[self.on_holiday]} a holiday or weekend day of the calendar {self.name}"


@lru_cache(maxsize=1024)
def missing_days_of(zone: Zone) -> frozenset[int]:
    """The local days that a zone left out, as Apia did with 2011-12-30: nothing can fire on them."""
    found: set[int] = set()
    for start, before, after in zip(zone.starts, zone.offsets, zone.offsets[1:], strict=False):
        if after - before >= DAY:
            first = -(-(start + before) // DAY)
            found.update(range(first, (start + after) // DAY))
    return frozenset(found)


_PATIENCE: Final = 8  # excluded instants in a row before the day is decided at once
_NEAR: Final = 4  # instants of an EXRULE that are walked before it is restarted at the candidate
_GROUPS: Final = 64  # sets of days that EXRULEs may divide a year into
_KEPT: Final = 256


@dataclass(frozen=True, eq=False)
class Exclusions:
    """The exceptions of a set: rules, instants (UTC seconds), local days, and the days that a calendar
    closes."""

    zone: Zone
    rules: tuple[RuleOfSet, ...]
    dates: frozenset[int]
    days: frozenset[int]
    closed: ClosedDays | None = None
    _in_order: tuple[int, ...] = field(init=False, repr=False)  # the instants
    _of_years: dict[int, int] = field(default_factory=dict, init=False, repr=False)  # the days
    _over: dict[int, int] = field(
        default_factory=dict, init=False, repr=False
    )  # by rule: nothing is left from there on
    _taken_times: dict[tuple[int, int], int] = field(default_factory=dict, init=False, repr=False)
    _known: dict[tuple[int, tuple[tuple[int, int], ...]], int] = field(
        default_factory=dict, init=False, repr=False
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "_in_order", tuple(sorted(self.dates)))
        for day in self.days:
            year = year_of(day)
            self._of_years[year] = self._of_years.get(year, 0) | 1 << (day - first_day(year))

    def left_of(
        self, rule: RuleOfSet, second: int, steps: StepBudget, shifted: set[int] | None
    ) -> Iterator[int]:
        """The instants of a rule from a UTC second on that no exception takes away."""
        asked = _ExclusionSearch(self, steps)
        in_a_row = 0
        while second < self._over.get(id(rule), LAST_SECOND + 1):
            for instant in rule.instants(second, steps, shifted):
                if not asked.covers(instant):
                    in_a_row = 0
                    yield instant
                    continue
                steps.spend()
                in_a_row += 1
                if in_a_row >= _PATIENCE or self._is_out(self._local_day(instant)):
                    second = self._resume(rule, instant, steps)
                    if second > LAST_SECOND:
                        self._over[id(rule)] = instant
                    break
            else:
                return

    def left_of_dates(self, dates: tuple[int, ...], steps: StepBudget) -> Iterator[int]:
        """As `left_of`, for given instants in order."""
        asked = _ExclusionSearch(self, steps)
        return (instant for instant in dates if not asked.covers(instant))

    def names(self, instant: int) -> bool:
        """Whether an EXDATE or a closed day takes an instant away."""
        if instant in self.dates:
            return True
        return bool(self.days or self.closed) and self._is_out(self._local_day(instant))

    def seconds_in(self, window: DayWindow, steps: StepBudget) -> int:
        """What is excluded in a window, as `day_bits` has it."""
        return window.every_second if self._is_out(window.day) else self._seconds(window, steps)

    def _is_out(self, day: int) -> bool:
        """Whether a local day is excluded as a whole."""
        return day in self.days or (self.closed is not None and has_day(self.closed.of_year, day))

    def _local_day(self, instant: int) -> int:
        return (instant + self.zone.offset(instant)) // DAY

    def _resume(self, rule: RuleOfSet, instant: int, steps: StepBudget) -> int:
        """A later UTC second; every instant of the rule from the given one up to it is excluded."""
        window = window_from(self.zone, instant)
        if not self._is_out(window.day):
            steps.spend()
            left = seconds_of(rule, window, steps) & ~self._seconds(window, steps)
            if left:
                return instant + (left & -left).bit_length() - 1
        if window.end <= LAST_SECOND and self._local_day(window.end) <= window.day:
            return window.end  # a clock change: the day goes on after it, or its end comes once more
        return max(window.end, self._next_open(rule, window.day + 1, steps))

    def _seconds(self, window: DayWindow, steps: StepBudget) -> int:
        """What is excluded in a window."""
        found = 0
        dates = self._in_order
        for day in dates[bisect_left(dates, window.begin) : bisect_left(dates, window.end)]:
            found |= 1 << (day - window.begin)
        for rule in self.rules:
            found |= seconds_of(rule, window, steps)
        return found

    def _next_open(self, rule: RuleOfSet, day: int, steps: StepBudget) -> int:
        """The UTC second at which the first local day begins, from `day` on, that the rule names and that is
        not excluded as a whole."""
        if day > LAST_DAY:
            return LAST_SECOND + 1
        bound = rule.bound
        others = [(other.bound, times) for other in self.rules if (times := self._taken(other, bound))]
        wanted = times_of(bound)
        year = year_of(max(day, FIRST_DAY))
        last_year = self._hopeless_after(bound, [other for other, _ in others], year)
        while year <= last_year:
            steps.spend()
            january = first_day(year)
            excluded = [(_days(other, year), times) for other, times in others]
            named = bound.endless.days.of_year(year)
            left = named & ~self._closed(wanted, excluded)
            if isinstance(bound.endless, CalendarRule):
                touched, moved = touched_by_gaps(self.zone, wanted, named, january, first_day(year + 1))
                if touched:
                    left |= touched & ~self._closed(wanted | moved, excluded)
            left &= ~self._of_years.get(year, 0)
            if self.closed is not None:
                left &= ~self.closed.of_year(year)
            left = left >> max(day - january, 0) << max(day - january, 0)
            if left:
                early, _, kind = self.zone.read((january + (left & -left).bit_length() - 1) * DAY)
                return early - DAY if kind == "gap" else early
            year += 1
        return LAST_SECOND + 1

    def _taken(self, rule: RuleOfSet, other: BoundRule) -> int:
        """The times of day at which an EXRULE, on the days that it names, surely takes away another rule."""
        key = (id(rule), id(other))
        if key not in self._taken_times:
            self._taken_times[key] = excluded_times(rule, other)
        return self._taken_times[key]

    def _hopeless_after(self, rule: BoundRule, others: list[BoundRule], year: int) -> int:
        """The year after which a search that found nothing from `year` on only repeats itself."""
        ends = [other.until // DAY for other in others if other.until is not None]
        steady = year_of(min(max(self.zone.steady_from // DAY, FIRST_DAY), LAST_DAY)) + 1
        irregular = self.closed.irregular_until if self.closed is not None else year
        since = max(
            [year, steady, irregular, *self._of_years, *(min(end, LAST_DAY) // 365 + 1 for end in ends)]
        )
        repeats = lcm(*(each.endless.days.repeats_after for each in (rule, *others)))
        last = LAST_YEAR if rule.until is None else year_of(min(rule.until // DAY + 1, LAST_DAY))
        return min(since + repeats + 1, last)

    def _closed(self, wanted: int, others: list[tuple[int, int]]) -> int:
        """The days of a year on which EXRULEs, given as days and times of day, leave none of the times that
        are wanted. Days that too many of them divide are left to be looked at one by one."""
        key = (wanted, tuple(others))
        closed = self._known.get(key)
        if closed is None:
            groups = {0: (1 << 366) - 1}  # days by the times that are taken away on them
            for days, times in others:
                if not times & wanted or len(groups) > _GROUPS:
                    continue
                divided: dict[int, int] = {}
                for taken, group in groups.items():
                    for more, part in ((taken | times, group & days), (taken, group & ~days)):
                        if part:
                            divided[more] = divided.get(more, 0) | part
                groups = divided
            closed = sum(group for taken, group in groups.items() if not wanted & ~taken)
            if len(self._known) == _KEPT:
                self._known.clear()
            self._known[key] = closed
        return closed


class _ExclusionSearch:
    """Which instants are excluded, asked in ascending order."""

    def __init__(self, of: Exclusions, steps: StepBudget) -> None:
        self._of = of
        self._steps = steps
        self._rules = [_RuleCursor(rule) for rule in of.rules]

    def covers(self, instant: int) -> bool:
        """Whether `instant` is taken away."""
        if self._of.names(instant):
            return True
        return any(cursor.hits(instant, self._steps) for cursor in self._rules)


class _RuleCursor:
    """A place in an EXRULE. Where the next question lies far ahead, it restarts there."""

    def __init__(self, rule: RuleOfSet) -> None:
        self._rule = rule
        self._stream: Iterator[int] = iter(())
        self._next: int | None = -1

    def hits(self, instant: int, steps: StepBudget) -> bool:
        """Whether the rule gives `instant`."""
        for _ in range(_NEAR):
            if self._next is None or self._next >= instant:
                return self._next == instant
            steps.spend()
            self._next = next(self._stream, -1)
            if self._next == -1:
                break
        self._stream = self._rule.instants(instant, steps)
        self._next = next(self._stream, None)
        return self._next == instant


def _days(rule: BoundRule, year: int) -> int:
    """The days of a year that an EXRULE names, but for the last ones before its UNTIL."""
    days = rule.endless.days.of_year(year)
    if rule.until is None:
        return days
    safe = rule.until // DAY - 2 - first_day(year)  # an offset is never more than a day
    return days & ((1 << min(max(safe, 0), 366)) - 1)


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

    def seconds_in(self, window: DayWindow, steps: StepBudget) -> int:
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
            for day in self._dates_from(begin, steps):
                if day >= window.end:
                    break
                seconds |= 1 << (day - begin)
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

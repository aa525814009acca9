"""A set whose occurrences on closed days move, or whose rules do not know closed days at all.

Of open days alone neither BYSETPOS nor COUNT counts the closed ones: "the third business day of the
month" is the third of the month's days that are open.

Moved occurrences go to the next or to the previous open day at the same time of day. Closed days come in
runs (a weekend, the days around New Year), and all that a run's days hold goes to one open day. So a run
is decided as a whole: the times of day of its occurrences are united as sets (`day_bits`), until they are
all that the rules can give, and the search goes on behind the run. A SECONDLY rule over a year of
holidays costs no more steps than over a month.

The set's own occurrences are counted, ended by UNTIL and excluded before they are moved, by the local day
on which they would fire. A time of day that a gap would have moved is the one that was written; whether
it exists is asked again on the new day.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import chain
from operator import or_
from typing import Final, NamedTuple

from scheduler_app.domain.recurrence.rules.bound_rule import BoundRule, CountedRule, RuleOfSet, Start
from scheduler_app.domain.recurrence.rules.calendar_rule import CalendarRule
from scheduler_app.domain.recurrence.rules.day_bits import DayWindow, daily_times, window_from
from scheduler_app.domain.recurrence.rules.days import Days, has_day, span
from scheduler_app.domain.recurrence.rules.recurrence_set import (
    ClosedDays,
    Observance,
    RecurrenceSet,
    missing_days_of,
)
from scheduler_app.domain.recurrence.timeline import (
    DAY,
    FIRST_DAY,
    FIRST_SECOND,
    LAST_DAY,
    LAST_SECOND,
    StepBudget,
)

_LONGEST_PERIOD = 400  # days; more than those of a week-year, and of the days that SKIP moves out of it


@dataclass(frozen=True, eq=False)
class OpenDays(Days):
    """The days of a rule on which a calendar is open."""

    of: Days
    observed: Observance

    def of_year(self, year: int) -> int:
        """As `Days.of_year`."""
        return self.of.of_year(year) & ~self.observed.closed.of_year(year)

    @property
    def reach(self) -> int:
        """As `Days.reach`."""
        return self.of.reach

    @property
    def everything(self) -> bool:
        """Never: a calendar closes some days."""
        return False

    def in_period(self, first: int, last: int) -> tuple[int, int]:
        """As `Days.in_period`."""
        base, days = self.of.in_period(first, last)
        closed = span(self.observed.closed.of_year, base, base + _LONGEST_PERIOD)
        return base, days & ~closed

    def is_closed(self, day: int) -> bool:
        """Whether the calendar is closed on a day."""
        return has_day(self.observed.closed.of_year, day)


@dataclass(frozen=True, eq=False)
class OpenRule(BoundRule):
    """A rule of open days. Other rules were proven to fire when they were given; of this one, it is found out
    once that nothing is left."""

    _over: dict[str, int] = field(
        default_factory=dict, init=False, repr=False
    )  # nothing is left from there on

    def instants(self, second: int, steps: StepBudget, shifted: set[int] | None = None) -> Iterator[int]:
        """As `BoundRule.instants`."""
        last = second - 1
        if second < self._over.get("from", LAST_SECOND + 1):
            for last in super().instants(second, steps, shifted):
                yield last
            self._over["from"] = last + 1


def on_open_days(of: RecurrenceSet, observed: Observance) -> RecurrenceSet:
    """The set with rules that name open days alone; its dates, and what it leaves out, stay."""
    return replace(of, rules=tuple(_on_open_days(rule, observed) for rule in of.rules))


def _on_open_days(rule: RuleOfSet, observed: Observance) -> RuleOfSet:
    bound, days = rule.bound, rule.bound.endless.days
    open_days = OpenDays(days.filter, days.phase, days.repeats_after, days, observed)
    found = OpenRule(bound.rule, bound.start, bound.until, replace(bound.endless, days=open_days))
    return CountedRule(found, rule.count) if isinstance(rule, CountedRule) else found


_CHUNK: Final = 1024  # bits that are looked at together


class ClosedDayRun(NamedTuple):
    """Consecutive closed days, as ordinals, both included."""

    first: int
    last: int


@dataclass(frozen=True, eq=False)
class RolledSet:
    """A set whose occurrences on closed days move: `forward` to the next open day, else to the previous
    one."""

    own: RecurrenceSet
    start: Start
    closed: ClosedDays
    forward: bool
    _possible: int = field(init=False, repr=False)  # the times of day that the rules can give
    _by_clock: bool = field(init=False, repr=False)  # whether a rule goes by the wall clock

    def __post_init__(self) -> None:
        rules = [rule.bound for rule in self.own.rules]
        object.__setattr__(self, "_possible", reduce(or_, map(daily_times, rules), 0))
        object.__setattr__(self, "_by_clock", any(isinstance(rule.endless, CalendarRule) for rule in rules))

    def instants(self, second: int, steps: StepBudget, shifted: set[int] | None = None) -> Iterator[int]:
        """The occurrences from a UTC second on, strictly increasing. `shifted` collects what a gap moved."""
        second = max(second, FIRST_SECOND)
        previous = second - 1
        for instant in self._walk(second, steps, shifted):
            if instant > previous:
                if instant > LAST_SECOND:
                    return
                previous = instant
                steps.found()
                yield instant

    def earliest(self, second: int) -> int:
        """The UTC second from which on the set's own occurrences matter to what fires from `second` on."""
        if not self.forward:
            return second
        window = window_from(self.own.zone, second)
        # Where clocks go forward over midnight, what moved to the day before may fire on this one.
        last = 1 if window.plain else 2
        runs = [self.run_around(window.day - back) for back in range(last + 1)]
        return min([second, *(self._begin(run.first) for run in runs if run is not None)])

    def source(self, second: int) -> int | None:
        """The local second at which an occurrence would have fired, had its day been open; None when it is
        one of the set's own. Of several that have been moved together, the first."""
        if next(self.own.instants(second, StepBudget()), None) == second:
            return None
        zone = self.own.zone
        readings = {second + zone.offset(second)}
        start, _, _ = zone.segment(second)
        if start > FIRST_SECOND:
            # The new day may have a gap of its own: what was written is earlier by its length, and on the day
            # before where clocks go forward over midnight.
            moved = second + zone.offset(start - 1)
            if zone.read(moved).kind == "gap":
                readings.add(moved)
        for reading in sorted(readings, reverse=True):
            target, time = divmod(reading, DAY)
            run = self.run_around(target - 1 if self.forward else target + 1)
            for window_day, times in self._times_by_day(run, StepBudget()) if run else ():
                if times >> time & 1:
                    return window_day * DAY + time
        return None

    def target(self, second: int, steps: StepBudget) -> int | None:
        """The UTC second to which the set's own occurrence at `second`, on a closed day, moves. It is None
        if the new day does not have its time of day and `gap` skips that, or if there is no such day."""
        zone, moved = self.own.zone, set[int]()
        next(self.own.instants(second, steps, moved), None)
        offset = zone.offset(second)
        run = self.run_around((second + offset) // DAY)
        new_day = None if run is None else self._new_day(run)
        if new_day is None:
            return None
        if second in moved:
            offset = zone.offset(zone.segment(second)[0] - 1)
        return next(self._read(iter([new_day * DAY + (second + offset) % DAY]), None), None)

    def _new_day(self, run: ClosedDayRun) -> int | None:
        """The open day to which the occurrences of a run move; None if it would be none of the calendar's."""
        day = run.last + 1 if self.forward else run.first - 1
        return day if FIRST_DAY <= day <= LAST_DAY else None

    def run_around(self, day: int) -> ClosedDayRun | None:
        """The run of closed days that a day belongs to; None for an open one."""
        if not self._is_closed(day):
            return None
        first = last = day
        while self._is_closed(first - 1):
            first -= 1
        while self._is_closed(last + 1):
            last += 1
        return ClosedDayRun(first, last)

    def _is_closed(self, day: int) -> bool:
        return has_day(self.closed.of_year, day) or day in missing_days_of(self.own.zone)

    def _walk(self, second: int, steps: StepBudget, shifted: set[int] | None) -> Iterator[int]:
        """In ascending order, with repeats where days repeat on the local clock, and some before `second`."""
        at = self.earliest(second)
        waiting: Iterator[int] = iter(())
        done: ClosedDayRun | None = None
        while at <= LAST_SECOND:
            head = next(waiting, None)
            met: tuple[int, DayWindow, ClosedDayRun] | None = None
            window, run = DayWindow(at, at, 0, 0, False), None
            for instant in self.own.instants(at, steps, shifted):
                while head is not None and head < instant:
                    yield head
                    head = next(waiting, None)
                if instant >= window.end:
                    window = window_from(self.own.zone, instant)
                    run = self.run_around(window.day)
                    if run is None and not self.forward:
                        # What comes to this day from behind it has to be merged with its own.
                        run = self.run_around(window.day + 1)
                        run = None if run == done else run
                if run is not None:
                    met = instant, window, run
                    break
                yield instant
            waiting = iter(()) if head is None else chain((head,), waiting)
            if met is None or met[2] != done:
                yield from waiting
            if met is None:
                return
            instant, window, run = met
            steps.spend()
            is_inside = run.first <= window.day <= run.last
            if run != done:  # else those that it has moved wait on, among the next day's own
                waiting = self._moved(run, second, steps, shifted)
            at = instant
            if is_inside and self._day(window.end) < run.first:
                at = window.end  # clocks go back over midnight: the end of the day before comes once more
            elif is_inside:
                behind = self._begin(run.last + 1)
                at = behind if run != done else max(behind, window.end)
            done = run
        yield from waiting  # from the last day of all to one before it

    def _moved(
        self, run: ClosedDayRun, second: int, steps: StepBudget, shifted: set[int] | None
    ) -> Iterator[int]:
        """The UTC seconds to which the occurrences of a run move, in ascending order; perhaps without those
        before `second`."""
        day = self._new_day(run)
        if day is None:
            return iter(())
        times = 0
        for _, of_day in self._times_by_day(run, steps):
            times |= of_day
            if times == self._possible and not self._has_dates(run):
                break
        midnight, zone = day * DAY, self.own.zone
        early, _, kind = zone.read(midnight)
        if not kind and zone.plain_until(midnight) >= midnight + DAY:
            passed = min(max(second - early, 0), DAY)
            return _members(times >> passed, early + passed)
        return self._read(_members(times, midnight), shifted)

    def _read(self, readings: Iterator[int], shifted: set[int] | None) -> Iterator[int]:
        """Wall-clock readings of a day on which the clocks change, as instants in order."""
        plain: set[int] = set()
        moved: set[int] = set()
        for reading in readings:
            early, late, kind = self.own.zone.read(reading)
            if kind != "gap":
                plain.add(late if kind and self.start.last_in_overlap else early)
            elif not self.start.skip_gap:
                moved.add(early)
        if shifted is not None:
            shifted.update(moved - plain)
        return iter(sorted(plain | moved))

    def _has_dates(self, run: ClosedDayRun) -> bool:
        dates = self.own.dates
        return bisect_left(dates, self._begin(run.first)) < bisect_left(dates, self._begin(run.last + 1))

    def _times_by_day(self, run: ClosedDayRun, steps: StepBudget) -> Iterator[tuple[int, int]]:
        """`(day, times of day as bits)` of those days of a run, or parts of them, that have occurrences."""
        at, end = self._begin(run.first), self._begin(run.last + 1) + DAY
        while (instant := next(self.own.instants(at, steps), None)) is not None and instant < end:
            steps.spend()
            window = window_from(self.own.zone, instant)
            if run.first <= window.day <= run.last:
                yield window.day, self._times(window, steps)
            at = window.end

    def _times(self, window: DayWindow, steps: StepBudget) -> int:
        """The times of day of the set's occurrences in a window, as they were written."""
        dates = self.own.dates
        has_dates = bisect_left(dates, window.begin) < bisect_left(dates, window.end)
        is_plain = window.plain or not self._by_clock
        if not is_plain or has_dates or window.begin < self.start.instant + DAY:
            return self._listed(window)
        return self.own.seconds_in(window, steps) << ((window.begin + window.offset) % DAY)

    def _listed(self, window: DayWindow) -> int:
        moved: set[int] = set()
        times = bytearray(DAY // 8)
        before = self.own.zone.offset(self.own.zone.segment(window.begin)[0] - 1)
        for instant in self.own.instants(window.begin, StepBudget(), moved):
            if instant >= window.end:
                break
            time = (instant + (before if instant in moved else window.offset)) % DAY
            times[time >> 3] |= 1 << (time & 7)
        return int.from_bytes(times, "little")

    def _day(self, second: int) -> int:
        """The local day of a UTC second."""
        return (second + self.own.zone.offset(second)) // DAY if second <= LAST_SECOND else LAST_DAY

    def _begin(self, day: int) -> int:
        """A UTC second that is not after the first one of a local day, and hardly before it."""
        if not FIRST_DAY <= day <= LAST_DAY:
            return FIRST_SECOND if day < FIRST_DAY else LAST_SECOND + 1
        early, late, _ = self.own.zone.read(day * DAY)
        return min(early, late)


def _members(bits: int, base: int) -> Iterator[int]:
    """The positions of the bits that are set, from `base` on."""
    mask = (1 << _CHUNK) - 1
    while bits:
        skipped = ((bits & -bits).bit_length() - 1) // _CHUNK * _CHUNK
        bits >>= skipped
        base += skipped
        chunk = bits & mask
        while chunk:
            lowest = chunk & -chunk
            yield base + lowest.bit_length() - 1
            chunk ^= lowest
        bits >>= _CHUNK
        base += _CHUNK

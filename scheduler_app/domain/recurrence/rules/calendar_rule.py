"""DAILY, WEEKLY, MONTHLY and YEARLY rules: days by the calendar, times by the wall clock.

An occurrence is a wall-clock reading first and becomes an instant by RFC 5545, 3.3.5 (erratum 4271):
a reading that does not exist is taken with the offset before the gap and so comes out later by the gap's
length; one that exists twice is its first occurrence. Both can be chosen otherwise (`gap`, `overlap`).

BYSETPOS picks from whole periods. The first period is whole too, though the part of it before DTSTART does
not fire (dateutil issue 1398: it picks from what is left after DTSTART). Positions are those of the readings
as written.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from scheduler_app.domain.recurrence.rules.rule import first_from, week_of
from scheduler_app.domain.recurrence.timeline import (
    DAY,
    FIRST_DAY,
    LAST_DAY,
    StepBudget,
    first_day,
    first_of_week_year,
    is_leap,
    members,
    month_spans,
    week_year_of,
)
from scheduler_app.domain.recurrence.zones import Zone

from .days import Days
from .rule import Frequency, Rule


@dataclass(frozen=True, eq=False)
class CalendarRule:
    """A rule bound to its start: `start` is DTSTART's local second in `zone`."""

    rule: Rule
    start: int
    zone: Zone
    days: Days
    times: Sequence[int]
    skip_gap: bool
    last_in_overlap: bool

    def instants(self, second: int, steps: StepBudget, shifted: set[int] | None = None) -> Iterator[int]:
        """The UTC seconds from `second` on, strictly increasing; those moved out of a gap are added to
        `shifted`."""
        first_local = max(self.start, second + self.zone.lowest_offset(second))
        previous = second - 1
        for instant in self.to_utc(self._readings(first_local, steps), shifted):
            if instant > previous:
                previous = instant
                yield instant

    def has_reading(self, local: int) -> bool:
        """Whether a rule without BYSETPOS gives the wall-clock reading `local`."""
        return local >= self.start and self.first_reading(local, local + 1) is not None

    def first_reading(self, begin: int, end: int) -> int | None:
        """The first wall-clock second from `begin` to before `end` on a day and at a time of the rule;
        BYSETPOS is not asked."""
        for day in range(begin // DAY, (end - 1) // DAY + 1):
            index = first_from(self.times, max(begin - day * DAY, 0))
            if index < len(self.times):
                local = day * DAY + self.times[index]
                if local < end and self.days.allows(day):
                    return local
        return None

    def _readings(self, local: int, steps: StepBudget) -> Iterator[int]:
        """The wall-clock readings from the local second `local` on, as local seconds in order."""
        if self.rule.by_set_pos:
            yield from self._picked(local, steps)
            return
        times = self.times
        first_day, first_time = divmod(local, DAY)
        for day in self.days.from_(first_day, steps):
            midnight = day * DAY
            if day == first_day:
                for index in range(first_from(times, first_time), len(times)):
                    yield midnight + times[index]
            else:
                for time in times:
                    yield midnight + time

    def _picked(self, local: int, steps: StepBudget) -> Iterator[int]:
        """As `_readings`, for a rule with BYSETPOS: period by period."""
        # Where SKIP moves days, neighbouring periods may overlap by a day: that day waits for the next one.
        reach = self.days.reach
        held: list[int] = []
        deadline: int | None = None
        for first, last in self._periods(local // DAY, steps):
            readings = self.pick(first, last)
            if readings or deadline is None:
                deadline = last + (self.days.repeats_after + 1) * 366
            elif first > deadline:
                break
            if reach:
                held = sorted({*held, *readings})
                settled = bisect_left(held, (last + 1 - reach) * DAY)
                readings, held = held[:settled], held[settled:]
            for reading in readings:
                if reading >= local:
                    yield reading
        for reading in held:
            if reading >= local:
                yield reading

    def _periods(self, day: int, steps: StepBudget) -> Iterator[tuple[int, int]]:
        """`(first, last)` day of each period that may name a day from `day` on."""
        reach = self.days.reach
        done = FIRST_DAY - 2
        while (found := self.days.next(day, steps)) is not None:
            for probe in range(found - reach, found + reach + 1):
                first, last = self.period(probe)
                if last > done:
                    steps.spend()
                    yield first, last
                    done = last
            day = max(found, done - reach) + 1

    def pick(self, first: int, last: int) -> list[int]:
        """The readings of one period that BYSETPOS names, in order.

        They are found by their index in days × times, because such a product may hold millions.
        """
        base, chosen = self.days.in_period(first, last)
        size = len(self.times)
        total = chosen.bit_count() * size
        if min(map(abs, self.rule.by_set_pos)) > total:
            return []
        days = members(chosen, base)
        # Where gaps are skipped, readings in them are not members of the set and hold no position.
        missing = self._in_gaps(days) if self.skip_gap and not self.zone.fixed else []
        total -= sum(end - start for start, end in missing)
        found = set()
        for position in self.rule.by_set_pos:
            index = position - 1 if position > 0 else total + position
            if not 0 <= index < total:
                continue
            for start, end in missing:
                if index >= start:
                    index += end - start
            found.add(days[index // size] * DAY + self.times[index % size])
        return sorted(found)

    def _in_gaps(self, days: list[int]) -> list[tuple[int, int]]:
        """The ranges of indexes in days × times whose readings do not exist."""
        gaps = self.zone.gaps(days[0] * DAY, (days[-1] + 1) * DAY)
        return [(self._index(days, start), self._index(days, end)) for start, end in gaps]

    def _index(self, days: list[int], local: int) -> int:
        """The index in days × times of the first reading that is not before `local`."""
        day, time = divmod(local, DAY)
        position = bisect_left(days, day)
        on_day = position < len(days) and days[position] == day
        return position * len(self.times) + (first_from(self.times, time) if on_day else 0)

    def period(self, day: int) -> tuple[int, int]:
        """The first and the last day of the period in which `day` lies."""
        freq = self.rule.freq
        if freq == Frequency.DAILY:
            return day, day
        if freq == Frequency.WEEKLY:
            first = week_of(day, self.rule.week_start)
            return first, first + 6
        moment = date.fromordinal(min(max(day, FIRST_DAY), LAST_DAY))
        january = first_day(moment.year)
        if self.rule.by_week_no:
            week_start = self.rule.week_start
            year = week_year_of(moment.toordinal(), week_start)
            return first_of_week_year(year, week_start), first_of_week_year(year + 1, week_start) - 1
        if freq == Frequency.YEARLY:
            return january, first_day(moment.year + 1) - 1
        start, length = month_spans(is_leap(moment.year))[moment.month - 1]
        return january + start, january + start + length - 1

    def to_utc(self, readings: Iterator[int], shifted: set[int] | None) -> Iterator[int]:
        """UTC seconds in ascending order, repeats included.

        Readings in a gap come out among those after it, which are shifted by nothing: two ascending runs,
        merged here.
        """
        zone = self.zone
        held: deque[int] = deque()
        plain_from = plain_until = 0
        offset = 0
        for local in readings:
            if plain_from <= local < plain_until:
                instant = local - offset
            else:
                early, late, kind = zone.read(local)
                if kind == "gap":
                    # No later reading can come before this one by the offset after the gap.
                    while held and held[0] <= late:
                        yield held.popleft()
                    if not self.skip_gap:
                        held.append(early)
                        if shifted is not None:
                            shifted.add(early)
                    continue
                instant = late if kind and self.last_in_overlap else early
                if not kind:
                    plain_from, plain_until, offset = local, zone.plain_until(local), local - instant
            if shifted is not None:
                shifted.discard(instant)  # a reading as written is here too: nothing was moved
            while held and held[0] <= instant:
                yield held.popleft()
            yield instant
        yield from held

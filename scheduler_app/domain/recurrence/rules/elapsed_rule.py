"""HOURLY, MINUTELY and SECONDLY rules: steps of exact time, tested on the local clock.

A period is an hour, a minute or a second of elapsed time; the first one holds DTSTART and the k-th begins
k × INTERVAL units later. So no instant repeats and none is lost when the clocks change. BY parts are
tested on what the local clock shows at each instant.

The next period that can fire is found by turns: the time of day is looked up in a table, the day in the
sets of `days`. Each jump passes over whatever the other excludes, so HOURLY;INTERVAL=7 with BYDAY and
BYHOUR costs the same from 1970 as from yesterday, and SECONDLY;BYMONTH=2 does not walk through March.

The table is possible because, while one offset lasts, the local times at which the periods begin repeat
after a short cycle of periods: a day's length divided by what it has in common with the step. One byte a
period tells whether it can pass, and finding the next one is a search for a byte. Where the step is a
multiple of seven units the weekdays repeat in the same cycle, and the table knows them too:
HOURLY;INTERVAL=168;BYDAY=FR would otherwise visit every Friday in vain.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from math import gcd
from typing import Final, NamedTuple

from scheduler_app.domain.recurrence.rules.days import Days
from scheduler_app.domain.recurrence.rules.rule import Rule
from scheduler_app.domain.recurrence.timeline import CYCLE_DAYS, CYCLE_YEARS, DAY, LAST_SECOND, StepBudget
from scheduler_app.domain.recurrence.zones import Zone

_WEEK: Final = 7 * DAY
_FEW_TURNS: Final = 1024


class TimeTest(NamedTuple):
    """What a period's beginning is tested for; an empty part allows everything. `unit` in seconds."""

    hours: tuple[int, ...]
    minutes: tuple[int, ...]
    seconds: tuple[int, ...]
    weekdays: tuple[int, ...]
    unit: int


@lru_cache(maxsize=64)
def _daily(test: TimeTest, step: int, start: int) -> bytes:
    """One byte for each period of a cycle, 1 where it can pass, weekdays aside.

    `step` is the seconds from period to period, `start` the local second of the first. A period that
    straddles two units of the clock (after a shift of half an hour, say) can pass when either does.
    """
    unit = test.unit
    allowed = _allowed(test)
    first, straddles = divmod(start, unit)
    if straddles:
        allowed = bytes(a | b for a, b in zip(allowed, allowed[1:] + allowed[:1], strict=True))
    cells = DAY // unit
    jump = step // unit
    turn = cells // gcd(jump, cells)
    if turn <= _FEW_TURNS or jump > _FEW_TURNS:
        return bytes([allowed[(first + index * jump) % cells] for index in range(turn)])
    rows: list[bytes] = []
    done = 0
    while done < turn:  # a row is what one pass over the day meets: slices are much faster than single bytes
        row = allowed[first::jump][: turn - done]
        rows.append(row)
        done += len(row)
        first = (first + len(row) * jump) % cells
    return b"".join(rows)


@lru_cache(maxsize=64)
def _on_weekdays(table: bytes, test: TimeTest, step: int, start: int) -> bytes:
    last = test.unit - 1
    weekdays = test.weekdays
    return bytes(
        allowed
        and (
            ((start + index * step) // DAY + 6) % 7 in weekdays
            or ((start + index * step + last) // DAY + 6) % 7 in weekdays
        )
        for index, allowed in enumerate(table)
    )


@lru_cache(maxsize=64)
def _allowed(test: TimeTest) -> bytes:
    """One byte for each unit of the day."""
    a_second = b"\x01"
    a_minute = _repeated(a_second, 60, test.seconds) if test.unit == 1 else a_second
    an_hour = _repeated(a_minute, 60, test.minutes) if test.unit <= 60 else a_second
    return _repeated(an_hour, 24, test.hours)


def _repeated(table: bytes, times: int, chosen: tuple[int, ...]) -> bytes:
    empty = bytes(len(table))
    return b"".join(table if not chosen or index in chosen else empty for index in range(times))


class _Block(NamedTuple):
    """Periods from `begin` up to `end` on one day and in one offset: only `table` tells which of them pass.

    An `irregular` block is one period whose instants have to be tested one by one.
    """

    begin: int
    end: int
    table: bytes
    irregular: bool


@dataclass(frozen=True, eq=False)
class ElapsedRule:
    """A rule bound to its start: `start` is DTSTART as a UTC second."""

    rule: Rule
    start: int
    zone: Zone
    days: Days
    _unit: int = field(init=False)
    width: int = field(init=False)  # seconds of a period in which it can fire: 1, where no BY part expands it
    step: int = field(init=False)  # seconds from period to period
    first: int = field(init=False)  # UTC second at which the first period begins
    # Seconds into a period at which it fires, where the period runs with the local clock.
    inner: tuple[int, ...] = field(init=False)
    _test: TimeTest | None = field(init=False)
    _tables: dict[int, bytes] = field(default_factory=dict, init=False)  # by offset

    def __post_init__(self) -> None:
        rule, unit = self.rule, self.rule.freq.seconds
        expands = (unit > 1 and rule.by_second) or (unit == 3600 and rule.by_minute)
        into = (self.start + self.zone.offset(self.start)) % unit if expands else 0
        for name, value in (
            ("_unit", unit),
            ("width", unit if expands else 1),
            ("step", unit * rule.interval),
            ("first", self.start - into),
            ("inner", _inner(rule, unit, into) if expands else (0,)),
            ("_test", _test(rule, unit)),
        ):
            object.__setattr__(self, name, value)

    @property
    def plain(self) -> bool:
        """Whether the instants are simply `start` and every `step` seconds after it."""
        return self._test is None and self.width == 1 and self.days.everything

    def instants(self, second: int, steps: StepBudget, shifted: set[int] | None = None) -> Iterator[int]:
        """The UTC seconds from `second` on, strictly increasing. Elapsed time has no gaps: `shifted` stays
        empty."""
        second = max(second, self.start)
        first, step, inner = self.first, self.step, self.inner
        period = (second - first) // step
        give_up = self._give_up(second)
        while (block := self._next(period, give_up, steps)) is not None:
            period, end, table, irregular = block
            if irregular:
                for instant in self._tested(first + period * step):
                    give_up = self._give_up(instant)
                    if instant >= second:
                        yield instant
                period += 1
                continue
            give_up = self._give_up(first + period * step)
            turn = len(table)
            while True:
                if turn > 1:
                    period += _periods_to_next(table, period) or 0
                if period >= end:
                    period = end  # what the table of this block said beyond it is not true there
                    break
                begin = first + period * step
                for into in inner:
                    if begin + into >= second:
                        yield begin + into
                period += 1

    def _next(self, period: int, give_up: int, steps: StepBudget) -> _Block | None:
        """The first block from `period` on that can fire; None if no period up to `give_up` can."""
        width, step, zone = self.width, self.step, self.zone
        begin = self.first + period * step
        day_from, day_found = 0, -1
        while begin <= give_up:
            steps.spend()
            _, change, offset = zone.segment(begin)
            end = self._period_from(change - width + 1)  # the first period that the change touches or follows
            if period >= end:
                return _Block(period, period + 1, b"\x01", True)
            table = self._table(offset)
            jump = _periods_to_next(table, period)
            # No jump at all: no time of day passes while this offset lasts.
            period = end if jump is None else period + jump
            if period >= end:
                period = end
                begin = self.first + period * step
                continue
            begin = self.first + period * step
            local = begin + offset
            day = local // DAY
            if not day_from <= day <= day_found:
                next_day = self.days.next(day, steps)
                if next_day is None:
                    return None
                day_from, day_found = day, next_day
            if day_found <= (local + width - 1) // DAY:
                if local % width:
                    return _Block(period, period + 1, b"\x01", True)
                if not self.days.everything:
                    end = min(end, self._period_from((day + 1) * DAY - offset))
                return _Block(period, end, table, False)
            # Nothing before the day that was found; beyond a change of offset it begins at another instant.
            reach = min(day_found * DAY - offset, max(change, (day_found - 2) * DAY))
            period = max(self._period_from(reach - width + 1), period + 1)
            begin = self.first + period * step
        return None

    def _give_up(self, second: int) -> int:
        """The UTC second by which, from `second` on, calendar, offset and phase have met in every way."""
        days = self.step // gcd(self.step, DAY)
        years = CYCLE_YEARS * (days // gcd(days, CYCLE_DAYS)) + 1
        return min(LAST_SECOND, max(second, self.zone.steady_from) + years * 366 * DAY)

    def _period_from(self, second: int) -> int:
        """The first period that begins at `second` or later."""
        return -((self.first - second) // self.step)

    def _table(self, offset: int) -> bytes:
        """The time table while `offset` is in force."""
        table = self._tables.get(offset)
        if table is None:
            table = b"\x01"
            if (test := self._test) is not None:
                local = self.first + offset
                # What fires at one second lies in one unit of the clock, wherever its period begins.
                start = local if self.width > 1 else local - local % self._unit
                table = _daily(test._replace(weekdays=()), self.step % DAY, start % DAY)
                if test.weekdays:
                    table = _on_weekdays(table, test, self.step % _WEEK, start % _WEEK)
            self._tables[offset] = table
        return table

    def _tested(self, begin: int) -> list[int]:
        """The instants of an irregular period, tested one by one: the clock changes in it, or runs askew to
        it."""
        into = self.start - self.first
        rule, unit = self.rule, self._unit
        minutes = range(60) if unit == 3600 and rule.by_minute else (into // 60,)
        found = []
        for minute in minutes:
            if rule.by_second and unit > 1:
                seconds = range(minute * 60, minute * 60 + 60)
            else:
                seconds = range(minute * 60 + into % 60, minute * 60 + into % 60 + 1)
            found += [begin + second for second in seconds if self._passes(begin + second)]
        return pick(found, rule.by_set_pos)

    def _passes(self, instant: int) -> bool:
        """Whether the local clock at `instant` satisfies every BY part."""
        rule = self.rule
        day, time = divmod(instant + self.zone.offset(instant), DAY)
        return (
            (not rule.by_hour or time // 3600 in rule.by_hour)
            and (not rule.by_minute or time // 60 % 60 in rule.by_minute)
            and (not rule.by_second or time % 60 in rule.by_second)
            and self.days.allows(day)
        )


def _periods_to_next(table: bytes, period: int) -> int | None:
    """Periods from `period` to the next that its time table lets pass; None when the table lets none."""
    at = period % len(table)
    found = table.find(1, at)
    if found < 0:
        found = table.find(1)
        if found < 0:
            return None
        found += len(table)
    return found - at


def _inner(rule: Rule, unit: int, into: int) -> tuple[int, ...]:
    """Seconds into a period at which it fires: DTSTART's, where no BY part gives others."""
    minutes = (rule.by_minute or (into // 60,)) if unit == 3600 else (0,)
    seconds = (rule.by_second or (into % 60,)) if unit > 1 else (0,)
    return tuple(pick([minute * 60 + second for minute in minutes for second in seconds], rule.by_set_pos))


def _test(rule: Rule, unit: int) -> TimeTest | None:
    """What a period's beginning is tested for; None if every time of day passes."""
    minutes = rule.by_minute if unit <= 60 else ()
    seconds = rule.by_second if unit == 1 else ()
    weekdays = tuple(day.weekday for day in rule.by_day) if rule.interval % 7 == 0 else ()
    if not (rule.by_hour or minutes or seconds or weekdays):
        return None
    return TimeTest(rule.by_hour, minutes, seconds, weekdays, unit)


def pick(found: list[int], positions: tuple[int, ...]) -> list[int]:
    """What BYSETPOS picks from the sorted members of a period; all of them where it is absent."""
    if not positions:
        return found
    total = len(found)
    indexes = {position - 1 if position > 0 else total + position for position in positions}
    return [found[index] for index in sorted(indexes) if 0 <= index < total]

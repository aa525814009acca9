"""The instants of a rule within one local day, as a set of seconds: an integer with one bit a second.

Bit 0 is the first second of the window. What several rules leave of a day is then one operation on such
integers, however many thousand instants they give.

`excluded_times` are the times of day at which one rule surely takes away another, on every day that it
names. What is decided so holds for whole days at once, so that days are passed over year by year. A time
of day that a gap moves comes to lie at another one, perhaps on the next day: `touched_by_gaps` names
both.
"""

from bisect import bisect_right
from functools import lru_cache
from math import gcd
from typing import Final, NamedTuple

from scheduler_app.domain.recurrence.rules.bound_rule import BoundRule, CountedRule, RuleOfSet
from scheduler_app.domain.recurrence.rules.calendar_rule import CalendarRule
from scheduler_app.domain.recurrence.rules.elapsed_rule import ElapsedRule
from scheduler_app.domain.recurrence.timeline import DAY, StepBudget
from scheduler_app.domain.recurrence.zones import Zone

_TWO_DAYS: Final = 2 * DAY
_A_STEP: Final = 16  # instants that are listed for a step


class DayWindow(NamedTuple):
    """UTC seconds from `begin` up to `end` within one local day and one offset.

    `plain`: no change of offset is near that could move a wall-clock time into the window or out of it.
    """

    begin: int
    end: int
    offset: int
    day: int
    plain: bool

    @property
    def every_second(self) -> int:
        """The set of all its seconds."""
        return (1 << (self.end - self.begin)) - 1


def window_from(zone: Zone, second: int) -> DayWindow:
    """From a UTC second to the end of its local day, or to the next change of offset."""
    start, change, offset = zone.segment(second)
    day = (second + offset) // DAY
    end = min((day + 1) * DAY - offset, change)
    return DayWindow(second, end, offset, day, start + _TWO_DAYS <= second and end + _TWO_DAYS <= change)


def seconds_of(rule: RuleOfSet, window: DayWindow, steps: StepBudget) -> int:
    """The instants of a rule within a window that does not begin before its start."""
    until = rule.last if isinstance(rule, CountedRule) else rule.until
    if isinstance(rule, CountedRule) and until is None:
        return _listed(rule, window, steps)
    endless = rule.bound.endless
    if isinstance(endless, CalendarRule):
        found = _of_calendar(endless, window)
    else:
        found = _of_elapsed(endless, window)
    if found is None:
        return _listed(rule, window, steps)
    if until is not None and until < window.end:
        found &= (1 << max(until - window.begin + 1, 0)) - 1
    return found


def _of_calendar(rule: CalendarRule, window: DayWindow) -> int | None:
    """None if the instants have to be listed."""
    if rule.rule.by_set_pos or not window.plain:
        return None
    if not rule.days.allows(window.day):
        return 0
    times = times_of_day_bits(*rule.rule.hours_minutes_seconds(rule.start))
    return times >> ((window.begin + window.offset) % DAY) & window.every_second


def _of_elapsed(rule: ElapsedRule, window: DayWindow) -> int | None:
    """As `_of_calendar`. A period that runs askew to the local clock is tested instant by instant."""
    if (rule.first + window.offset) % rule.width:
        return None
    if not rule.days.allows(window.day):
        return 0
    period = -((rule.first - window.begin + rule.width - 1) // rule.step)
    before = window.begin - (rule.first + period * rule.step)
    if -before >= window.end - window.begin:
        return 0
    found = _repeated(1, rule.step, _TWO_DAYS)
    if rule.width > 1:
        found *= sum(1 << into for into in rule.inner)
    found = found >> before if before >= 0 else found << -before
    times = times_of_day_bits(rule.rule.by_hour, rule.rule.by_minute, rule.rule.by_second)
    return found & times >> ((window.begin + window.offset) % DAY) & window.every_second


def _listed(rule: RuleOfSet, window: DayWindow, steps: StepBudget) -> int:
    found = bytearray((window.end - window.begin) // 8 + 1)
    count = 0
    for instant in rule.instants(window.begin, steps):
        if instant >= window.end:
            break
        second = instant - window.begin
        found[second >> 3] |= 1 << (second & 7)
        count += 1
    steps.spend(count // _A_STEP)
    return int.from_bytes(found, "little")


@lru_cache(maxsize=128)
def times_of_day_bits(hours: tuple[int, ...], minutes: tuple[int, ...], seconds: tuple[int, ...]) -> int:
    """The seconds of a day at such times; an empty part allows everything."""
    minute = sum(1 << second for second in seconds or range(60))
    hour = sum(minute << (60 * number) for number in minutes or range(60))
    return sum(hour << (3600 * number) for number in hours or range(24))


_EVERY_TIME: Final = (1 << DAY) - 1


def excluded_times(rule: RuleOfSet, other: BoundRule) -> int:
    """One bit for each second of the local day at which `rule` takes away whatever `other` has there; 0 where
    that cannot be told for all its days alike."""
    if isinstance(rule, CountedRule) or rule.rule.by_set_pos:
        return 0
    own, its = rule.endless, other.endless
    if isinstance(own, CalendarRule):
        return times_of(rule) if isinstance(its, CalendarRule) else 0
    if isinstance(its, CalendarRule):
        return times_of(rule) & _daily_step_times(own)
    into = its.first - own.first
    covers = its.step % own.step == 0 and {into + second for second in its.inner} <= set(own.inner)
    return times_of(rule) if covers or own.step == own.width == 1 else 0


def times_of(rule: BoundRule) -> int:
    """The times of day at which a rule can fire, as bits."""
    parts, endless = rule.rule, rule.endless
    if isinstance(endless, ElapsedRule):
        return times_of_day_bits(parts.by_hour, parts.by_minute, parts.by_second)
    if parts.by_set_pos and (endless.zone.fixed or not endless.skip_gap):
        # A period's readings are whole days, so a position is always at the same time of day.
        times, size = endless.times, len(endless.times)
        picked = {times[(at - 1 if at > 0 else at) % size] for at in parts.by_set_pos}
        return sum(1 << time for time in picked)
    return times_of_day_bits(*parts.hours_minutes_seconds(endless.start))


def touched_by_gaps(zone: Zone, times: int, named: int, first: int, end: int) -> tuple[int, int]:
    """`(days, moved times)`: of the days from `first` up to `end`, those on which a gap moves one of the
    times of day of a `named` one, or into which it does; and the times of day that those are moved to.

    Days are given and found as bits from `first` on.
    """
    days = moved = 0
    for start, after in zone.gaps(first * DAY, end * DAY):
        lost = (times | times << DAY) >> (start % DAY) & ((1 << (after - start)) - 1)
        source, last = start // DAY, (2 * after - start - 1) // DAY
        touched = (1 << (last + 1 - source)) - 1
        touched = touched << (source - first) if source >= first else touched >> (first - source)
        if lost and (touched & named or source < first):
            at = lost << (after % DAY)
            moved |= (at | at >> DAY) & _EVERY_TIME
            days |= touched
    return days & ((1 << (end - first)) - 1), moved


def daily_times(rule: BoundRule) -> int:
    """The times of day at which a rule fires on one day or another: all of them, and perhaps more."""
    times, endless = times_of(rule), rule.endless
    if not isinstance(endless, ElapsedRule):
        return times
    # Whatever day it is, steps of elapsed time meet the clock at the same distance from this grid.
    grid, zone = gcd(endless.step, DAY), endless.zone
    offsets = zone.offsets[bisect_right(zone.starts, endless.start) :]
    met = {(endless.first + offset + into) % grid for offset in set(offsets) for into in endless.inner}
    return times & _repeated(sum(1 << second for second in met), grid, DAY)


def _daily_step_times(rule: ElapsedRule) -> int:
    """The times of day that the steps of elapsed time meet every day; 0 where they are not the same ones."""
    if DAY % rule.step:
        return 0
    zone = rule.zone
    offsets = zone.offsets[bisect_right(zone.starts, rule.start) :]
    phases = {(rule.first + offset) % rule.step for offset in offsets}
    if len(phases) > 1:
        return 0
    phase = phases.pop()
    return _repeated(sum(1 << (phase + second) for second in rule.inner), rule.step, DAY)


@lru_cache(maxsize=128)
def _repeated(found: int, step: int, length: int) -> int:
    """The same seconds again after every `step` seconds, in `length` seconds."""
    reach = step
    while reach < length:
        found |= found << reach
        reach *= 2
    return found & ((1 << length) - 1)

"""The times of day at which one rule surely takes away another, on every day that it names.

What is decided here holds for whole days at once, so that days are passed over year by year (`exclusions`).
A time of day that a gap moves comes to lie at another one, perhaps on the next day: `touched_by_gaps` names
both.
"""

from bisect import bisect_right
from math import gcd
from typing import Final

from scheduler_app.domain.recurrence.timeline import DAY
from scheduler_app.domain.recurrence.zones.zone import Zone

from .bound_rule import BoundRule
from .calendar_rule import CalendarRule
from .counted_rule import CountedRule, RuleOfSet
from .day_bits import times_of_day_bits
from .elapsed_rule import ElapsedRule

_EVERY_TIME: Final = (1 << DAY) - 1


def taken_times(rule: RuleOfSet, other: BoundRule) -> int:
    """One bit for each second of the local day at which `rule` takes away whatever `other` has there; 0 where
    that cannot be told for all its days alike."""
    if isinstance(rule, CountedRule) or rule.rule.by_set_pos:
        return 0
    own, its = rule.endless, other.endless
    if isinstance(own, CalendarRule):
        return times_of(rule) if isinstance(its, CalendarRule) else 0
    if isinstance(its, CalendarRule):
        return times_of(rule) & _comb(own)
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
    time = endless.start % DAY
    return times_of_day_bits(
        parts.by_hour or (time // 3600,),
        parts.by_minute or (time // 60 % 60,),
        parts.by_second or (time % 60,),
    )


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
    return times & _repeated(sum(1 << second for second in met), grid)


def _comb(rule: ElapsedRule) -> int:
    """The times of day that the steps of elapsed time meet every day; 0 where they are not the same ones."""
    if DAY % rule.step:
        return 0
    zone = rule.zone
    offsets = zone.offsets[bisect_right(zone.starts, rule.start) :]
    phases = {(rule.first + offset) % rule.step for offset in offsets}
    if len(phases) > 1:
        return 0
    phase = phases.pop()
    return _repeated(sum(1 << (phase + second) for second in rule.inner), rule.step)


def _repeated(found: int, step: int) -> int:
    """The same seconds in every `step` seconds of a day."""
    reach = step
    while reach < DAY:
        found |= found << reach
        reach *= 2
    return found & _EVERY_TIME

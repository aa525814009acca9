"""The instants of a rule within one local day, as a set of seconds: an integer with one bit a second.

Bit 0 is the first second of the window. What several rules leave of a day is then one operation on such
integers, however many thousand instants they give.
"""

from functools import lru_cache
from typing import Final, NamedTuple

from scheduler_app.domain.recurrence.timeline import DAY
from scheduler_app.domain.recurrence.zones.zone import Zone

from .calendar_rule import CalendarRule
from .counted_rule import CountedRule, RuleOfSet
from .elapsed_rule import ElapsedRule
from .step_budget import StepBudget

_TWO_DAYS: Final = 2 * DAY
_A_STEP: Final = 16  # instants that are listed for a step


class Window(NamedTuple):
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


def window_from(zone: Zone, second: int) -> Window:
    """From a UTC second to the end of its local day, or to the next change of offset."""
    start, change, offset = zone.segment(second)
    day = (second + offset) // DAY
    end = min((day + 1) * DAY - offset, change)
    return Window(second, end, offset, day, start + _TWO_DAYS <= second and end + _TWO_DAYS <= change)


def seconds_of(rule: RuleOfSet, window: Window, steps: StepBudget) -> int:
    """The instants of a rule within a window that does not begin before its start."""
    bound, until = (rule.bound, rule.last) if isinstance(rule, CountedRule) else (rule, rule.until)
    if isinstance(rule, CountedRule) and until is None:
        return _listed(rule, window, steps)
    endless = bound.endless
    if isinstance(endless, CalendarRule):
        found = _of_calendar(endless, window)
    else:
        found = _of_elapsed(endless, window)
    if found is None:
        return _listed(rule, window, steps)
    if until is not None and until < window.end:
        found &= (1 << max(until - window.begin + 1, 0)) - 1
    return found


def _of_calendar(rule: CalendarRule, window: Window) -> int | None:
    """None if the instants have to be listed."""
    if rule.rule.by_set_pos or not window.plain:
        return None
    if not rule.days.allows(window.day):
        return 0
    time = rule.start % DAY
    times = times_of_day_bits(
        rule.rule.by_hour or (time // 3600,),
        rule.rule.by_minute or (time // 60 % 60,),
        rule.rule.by_second or (time % 60,),
    )
    return times >> ((window.begin + window.offset) % DAY) & window.every_second


def _of_elapsed(rule: ElapsedRule, window: Window) -> int | None:
    """As `_of_calendar`. A period that runs askew to the local clock is tested instant by instant."""
    if (rule.first + window.offset) % rule.width:
        return None
    if not rule.days.allows(window.day):
        return 0
    period = -((rule.first - window.begin + rule.width - 1) // rule.step)
    before = window.begin - (rule.first + period * rule.step)
    if -before >= window.end - window.begin:
        return 0
    found = _comb(rule.step)
    if rule.width > 1:
        found *= sum(1 << into for into in rule.inner)
    found = found >> before if before >= 0 else found << -before
    times = times_of_day_bits(rule.rule.by_hour, rule.rule.by_minute, rule.rule.by_second)
    return found & times >> ((window.begin + window.offset) % DAY) & window.every_second


def _listed(rule: RuleOfSet, window: Window, steps: StepBudget) -> int:
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


@lru_cache(maxsize=128)
def _comb(step: int) -> int:
    """Every `step`-th second of two days, from the first on."""
    found = 1
    reach = step
    while reach < _TWO_DAYS:
        found |= found << reach
        reach *= 2
    return found & ((1 << _TWO_DAYS) - 1)

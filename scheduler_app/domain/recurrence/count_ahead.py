"""How many instances a rule has before some instant, without listing them.

COUNT needs the number of instances from DTSTART on. For the rules that are common with COUNT it is
arithmetic: steps of elapsed time, or days of a year times times of a day, with a correction for the readings
that a gap took away or laid upon others. What this module does not know is counted one by one.
"""

from typing import Final, NamedTuple

from .calendar_rule import CalendarRule
from .elapsed_rule import ElapsedRule
from .seconds import DAY, FIRST_DAY, LAST_DAY
from .times_of_day import first_from
from .year import year_of

_TWO_DAYS: Final = 2 * DAY
_MANY_TIMES: Final = 1440


class Mark(NamedTuple):
    """`done` instances lie before the UTC second `second`."""

    second: int
    done: int


def count_ahead(rule: CalendarRule | ElapsedRule, second: int) -> Mark | None:
    """A mark at `second` or shortly before it; None where counting one by one is as good."""
    if isinstance(rule, ElapsedRule):
        if not rule.plain:
            return None
        return Mark(second, max(0, -((rule.start - second) // rule.step)))
    if rule.rule.by_set_pos or len(rule.times) > _MANY_TIMES:
        return None
    day = _quiet_day(rule, second)
    if day <= rule.start // DAY + 2:
        return None
    midnight = day * DAY
    done = _readings(rule, day) - sum(_lost(rule, *gap) for gap in rule.zone.gaps(rule.start, midnight))
    return Mark(rule.zone.read(midnight).early, done)


def _quiet_day(rule: CalendarRule, second: int) -> int:
    """A local day before `second` with no change of offset near: what is before its midnight is before it in
    UTC."""
    zone = rule.zone
    while True:
        start, end, offset = zone.segment(second)
        if second - start > 2 * _TWO_DAYS:
            return min((min(second, end - _TWO_DAYS) - _TWO_DAYS + offset) // DAY, LAST_DAY)
        second = start - 1
        if second < rule.start:
            return FIRST_DAY


def _readings(rule: CalendarRule, day: int) -> int:
    """Readings from DTSTART's to the midnight that begins `day`."""
    first, time = divmod(rule.start, DAY)
    days = 0
    for year in range(year_of(first), year_of(day - 1) + 1):
        days += rule.days.count(year, first, day - 1)
    partly = first_from(rule.times, time) if rule.days.allows(first) else 0
    return days * len(rule.times) - partly


def _lost(rule: CalendarRule, start: int, end: int) -> int:
    """Of the readings in the gap from local `start` to `end`: how many give no instant of their own."""
    lost = 0
    for day in range(start // DAY, end // DAY + 1):
        if not rule.days.allows(day):
            continue
        midnight = day * DAY
        begin, stop = max(start, rule.start) - midnight, end - midnight
        for time in rule.times[first_from(rule.times, begin) : first_from(rule.times, stop)]:
            lost += rule.skip_gap or rule.has_reading(midnight + time + end - start)
    return lost

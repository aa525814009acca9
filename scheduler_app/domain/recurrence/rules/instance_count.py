"""How many instances a rule has before some instant, without listing them.

COUNT needs the number of instances from DTSTART on. For the rules that are common with COUNT it is
arithmetic: steps of elapsed time, or days of a year times times of a day, with a correction for the readings
that a gap took away or laid upon others. What this module does not know is counted one by one.
"""

from typing import Final, NamedTuple

from scheduler_app.domain.recurrence.timeline import DAY, FIRST_DAY, LAST_DAY
from scheduler_app.domain.recurrence.year_kinds import first_day, is_leap, year_of

from .calendar_rule import CalendarRule
from .elapsed_rule import ElapsedRule
from .rule import Frequency
from .step_budget import StepBudget
from .times_of_day import first_from

_TWO_DAYS: Final = 2 * DAY
_MANY_TIMES: Final = 1440


class Mark(NamedTuple):
    """`done` instances lie before the UTC second `second`."""

    second: int
    done: int


def count_ahead(rule: CalendarRule | ElapsedRule, second: int, enough: int, steps: StepBudget) -> Mark | None:
    """A mark at `second` or shortly before it; None if counting one by one is as good.

    Years are counted until `enough` instances are found, which the mark may then exceed or stop at: a step
    each, of a few operations on sets of a year's days.
    """
    if isinstance(rule, ElapsedRule):
        if not rule.plain:
            return None
        return Mark(second, max(0, -((rule.start - second) // rule.step)))
    if len(rule.times) > _MANY_TIMES or (rule.rule.by_set_pos and rule.days.reach):
        return None
    day = _quiet_day(rule, second)
    if day <= rule.start // DAY + 2:
        return None
    done = _picks(rule, day, enough, steps) if rule.rule.by_set_pos else _readings(rule, day, enough, steps)
    return None if done is None else Mark(rule.zone.read(day * DAY).early, done)


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


def _readings(rule: CalendarRule, day: int, enough: int, steps: StepBudget) -> int:
    """Instances from DTSTART's to the midnight that begins `day`, of a rule without BYSETPOS."""
    first, time = divmod(rule.start, DAY)
    done = -first_from(rule.times, time) if rule.days.allows(first) else 0
    for year in range(year_of(first), year_of(day - 1) + 1):
        steps.spend()
        done += rule.days.count(year, first, day - 1) * len(rule.times)
        for gap in _gaps(rule, max(first_day(year) * DAY, rule.start), min(first_day(year + 1), day) * DAY):
            done -= _lost(rule, *gap)
        if done >= enough:
            break
    return done


def _picks(rule: CalendarRule, day: int, enough: int, steps: StepBudget) -> int | None:
    """As `_readings`, for a rule with BYSETPOS; None if a gap in a zone's clock would move picked times
    into another day."""
    first_end = rule.period(rule.start // DAY)[1]
    last_begin = rule.period(day)[0]
    if last_begin <= first_end:
        return None
    done = _of_period(rule, first_end, rule.start, first_end * DAY + DAY)
    done += _of_period(rule, day, last_begin * DAY, day * DAY)
    known: dict[tuple[object, ...], int] = {}
    begin = first_end + 1
    while begin < last_begin and done < enough:
        steps.spend()
        end = min(first_day(year_of(begin) + 1), last_begin)
        stop, more = _of_year(rule, begin, end, known)
        done += more
        affected = set()
        for start, after in _gaps(rule, begin * DAY, stop * DAY):
            if start // DAY != (2 * after - start) // DAY:
                return None
            if _lost_at_most(rule, start, after):
                affected.add(rule.period(start // DAY))
        for first, last in affected:
            done += _of_period(rule, first, first * DAY, last * DAY + DAY) - _positions(rule, first, last)
        begin = stop
    return done


def _of_year(
    rule: CalendarRule, begin: int, end: int, known: dict[tuple[object, ...], int]
) -> tuple[int, int]:
    """`(day after the last period, readings picked)` of the periods from day `begin` on that begin before
    `end`; `known` keeps what years of one kind have in common."""
    year = year_of(begin)
    within = (rule.rule.freq <= Frequency.MONTHLY and not rule.rule.by_week_no) or rule.days.everything
    key = (rule.days.of_year(year), begin - first_day(year), end - begin, is_leap(year))
    if within and key in known:
        return end, known[key]
    picked, day = 0, begin
    while day < end:
        first, last = rule.period(day)
        picked += _positions(rule, first, last)
        day = last + 1
    if within:
        known[key] = picked
    return day, picked


def _positions(rule: CalendarRule, first: int, last: int) -> int:
    """How many readings BYSETPOS picks from a period, gaps aside."""
    total = rule.days.in_period(first, last)[1].bit_count() * len(rule.times)
    positions = rule.rule.by_set_pos
    return len({at if at > 0 else total + 1 + at for at in positions if abs(at) <= total})


def _of_period(rule: CalendarRule, day: int, since: int, until: int) -> int:
    """The instances of a day's period whose readings lie from local second `since` up to `until`."""
    readings = [reading for reading in rule.pick(*rule.period(day)) if since <= reading < until]
    return len(set(rule.to_utc(iter(readings), None)))


def _gaps(rule: CalendarRule, begin: int, end: int) -> list[tuple[int, int]]:
    """The gaps that begin between two local seconds."""
    if rule.zone.fixed:
        return []
    return [gap for gap in rule.zone.gaps(begin, end) if begin <= gap[0] < end]


def _lost_at_most(rule: CalendarRule, start: int, end: int) -> bool:
    """Whether the rule has readings in the gap from local `start` to `end`, which lies in one day."""
    midnight = start // DAY * DAY
    return rule.days.allows(start // DAY) and first_from(rule.times, start - midnight) < first_from(
        rule.times, end - midnight
    )


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

"""Binds a rule to its DTSTART: fills in what DTSTART implies, proves that the rule can fire, and counts
COUNT.

RFC 5545, 3.3.10: what the BY parts do not say about the date and time of an occurrence is the same as in
DTSTART.

COUNT is kept right without walking from DTSTART each time. An instance is counted from DTSTART on, before
EXDATE takes any away, and one that a gap shifted counts. So where a rule ends can be known only from a
place where the count is known: a *mark*, the number of instances before some second. A checkpoint, which
a schedule stores, is such a mark; another is kept from the last look-up. For the rules that are common
with COUNT the number of instances is arithmetic: steps of elapsed time, or days of a year times times of
a day, with a correction for the readings that a gap took away or laid upon others. The others are counted
one by one.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Final, NamedTuple

from dateutil.rrule import weekday

from scheduler_app.domain.errors import InvalidRecurrence
from scheduler_app.domain.recurrence.rules.calendar_rule import CalendarRule
from scheduler_app.domain.recurrence.rules.days import (
    DayFilter,
    Days,
    SkippingDays,
    can_move,
    limits_of_moved,
)
from scheduler_app.domain.recurrence.rules.elapsed_rule import ElapsedRule
from scheduler_app.domain.recurrence.rules.rule import (
    Frequency,
    Rule,
    first_from,
    phase_of,
    times_of_day,
    years_to_repeat,
)
from scheduler_app.domain.recurrence.timeline import (
    CYCLE_YEARS,
    DAY,
    FIRST_DAY,
    LAST_DAY,
    StepBudget,
    first_day,
    is_leap,
    year_of,
)
from scheduler_app.domain.recurrence.zones import Zone


@dataclass(frozen=True)
class Start:
    """DTSTART: its local second, the zone, the instant it stands for, and what to do at clock changes."""

    local: int
    zone: Zone
    instant: int
    skip_gap: bool
    last_in_overlap: bool


@dataclass(frozen=True, eq=False)
class BoundRule:
    """A rule with a start. `until` is the inclusive last UTC second, or None."""

    rule: Rule
    start: int  # a UTC second before which no instance lies
    until: int | None
    endless: CalendarRule | ElapsedRule

    @property
    def bound(self) -> "BoundRule":
        """The rule itself; that of a `CountedRule` is the rule without its COUNT."""
        return self

    def instants(self, second: int, steps: StepBudget, shifted: set[int] | None = None) -> Iterator[int]:
        """The UTC seconds from `second` on, strictly increasing, up to UNTIL; COUNT is not looked at here."""
        until = self.until
        for instant in self.endless.instants(second, steps, shifted):
            if until is not None and instant > until:
                return
            yield instant


def bind(rule: Rule, start: Start, until: int | None, part: str, steps: StepBudget) -> BoundRule:
    """`rule` bound to `start`; InvalidRecurrence naming `part` when it can never fire."""
    _check_positions(rule)
    filled = _filled_in(rule, start.local // DAY)
    day_filter = replace(
        DayFilter.of(filled), days_in_month=rule.freq == Frequency.MONTHLY or bool(rule.by_month)
    )
    endless: CalendarRule | ElapsedRule
    if rule.elapsed:
        endless = ElapsedRule(rule, start.instant, start.zone, Days(day_filter, None, CYCLE_YEARS))
    else:
        phase = phase_of(rule, date.fromordinal(start.local // DAY))
        years = years_to_repeat(rule.freq, rule.interval)
        days = Days(day_filter, phase, years)
        if can_move(filled):
            days = SkippingDays(day_filter, phase, years, filled, limits_of_moved(filled))
        endless = CalendarRule(
            rule,
            start.local,
            start.zone,
            days,
            times_of_day(*rule.hours_minutes_seconds(start.local)),
            start.skip_gap,
            start.last_in_overlap,
        )
    earliest = start.instant - DAY  # DTSTART's own reading may be skipped or read late
    if next(endless.instants(earliest, steps), None) is None:
        raise InvalidRecurrence(
            part,
            f"{rule.text(None)} can never fire: the calendar repeats after {CYCLE_YEARS} years, and no time "
            "from DTSTART to the year 9999 satisfies all its parts; remove the one that contradicts the rest",
        )
    return BoundRule(rule, earliest, until, endless)


def _filled_in(rule: Rule, start_day: int) -> Rule:
    """The rule with the days that DTSTART implies."""
    moment = date.fromordinal(start_day)
    names_days = rule.by_month_day or rule.by_day or rule.by_year_day or rule.by_week_no
    if names_days or rule.freq >= Frequency.DAILY:
        return rule
    if rule.freq == Frequency.WEEKLY:
        return replace(rule, by_day=(weekday(moment.weekday()),))
    filled = replace(rule, by_month_day=(moment.day,))
    if rule.freq == Frequency.YEARLY and not rule.by_month:
        filled = replace(filled, by_month=(moment.month,))
    return filled


def _check_positions(rule: Rule) -> None:
    """A position beyond the largest set that a period can give would be searched for without end."""
    hours, minutes, seconds = (max(len(part), 1) for part in (rule.by_hour, rule.by_minute, rule.by_second))
    largest = {
        Frequency.YEARLY: 371 * hours * minutes * seconds,
        Frequency.MONTHLY: 31 * hours * minutes * seconds,
        Frequency.WEEKLY: max(len(rule.by_day), 1) * hours * minutes * seconds,
        Frequency.DAILY: hours * minutes * seconds,
        Frequency.HOURLY: minutes * seconds,
        Frequency.MINUTELY: seconds,
        Frequency.SECONDLY: 1,
    }[rule.freq]
    if rule.by_set_pos and all(abs(position) > largest for position in rule.by_set_pos):
        raise InvalidRecurrence(
            "BYSETPOS",
            f"can never fire: a period of this {rule.freq.name} rule holds at most {largest} "
            f"time{'' if largest == 1 else 's'} to pick from; use positions from 1 to {largest}, or add "
            "values to the other BY parts",
        )


_TWO_DAYS: Final = 2 * DAY
_MANY_TIMES: Final = 1440


class CountMark(NamedTuple):
    """`done` instances lie before the UTC second `second`."""

    second: int
    done: int


def count_ahead(
    rule: CalendarRule | ElapsedRule, second: int, enough: int, steps: StepBudget
) -> CountMark | None:
    """A mark at `second` or shortly before it; None if counting one by one is as good.

    Years are counted until `enough` instances are found, which the mark may then exceed or stop at: a step
    each, of a few operations on sets of a year's days.
    """
    if isinstance(rule, ElapsedRule):
        if not rule.plain:
            return None
        return CountMark(second, max(0, -((rule.start - second) // rule.step)))
    if len(rule.times) > _MANY_TIMES or (rule.rule.by_set_pos and rule.days.reach):
        return None
    day = _quiet_day(rule, second)
    if day <= rule.start // DAY + 2:
        return None
    done = _picks(rule, day, enough, steps) if rule.rule.by_set_pos else _readings(rule, day, enough, steps)
    return None if done is None else CountMark(rule.zone.read(day * DAY).early, done)


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
            if rule.first_reading(start, after) is not None:
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


_FAR: Final = 10 * DAY  # a mark this near is as good as arithmetic
_A_STEP: Final = 16  # instances that are counted one by one for a step


@dataclass(frozen=True, eq=False)
class CountedRule:
    """A rule that ends after `count` instances. Its marks are what is known so far; they change no answer."""

    bound: BoundRule
    count: int
    _marks: dict[str, CountMark] = field(default_factory=dict, init=False, repr=False)

    @property
    def last(self) -> int | None:
        """The UTC second of the last instance, where that is arithmetic."""
        endless = self.bound.endless
        if isinstance(endless, ElapsedRule) and endless.plain:
            return endless.start + (self.count - 1) * endless.step
        return None

    def use(self, mark: CountMark) -> None:
        """Take a mark from outside, that of a checkpoint, for true."""
        self._marks["checkpoint"] = mark

    def instants(self, second: int, steps: StepBudget, shifted: set[int] | None = None) -> Iterator[int]:
        """The UTC seconds from `second` on, strictly increasing, up to the last that COUNT allows."""
        done = self.done_before(second, steps)
        if done >= self.count:
            return
        for instant in self.bound.instants(second, steps, shifted):
            yield instant
            done += 1
            if done >= self.count:
                return

    def done_before(self, second: int, steps: StepBudget) -> int:
        """How many instances lie before a UTC second; costs the distance from the nearest mark before it."""
        earlier = (mark for mark in tuple(self._marks.values()) if mark.second <= second)
        from_, done = max(earlier, default=CountMark(self.bound.start, 0))
        endless = self.bound.endless
        told = "checkpoint" in self._marks  # what a checkpoint says goes before what is worked out
        plain = isinstance(endless, ElapsedRule) and endless.plain and not told
        if second - from_ > _FAR or plain:
            from_, done = count_ahead(endless, second, self.count, steps) or (from_, done)
        if from_ < second and done < self.count:
            for instant in self.bound.instants(from_, steps):
                if instant >= second:
                    break
                done += 1
                if done % _A_STEP == 0:
                    steps.spend()
                if done == self.count:
                    break
        done = min(done, self.count)
        if second > self.bound.start:
            self._marks["latest"] = CountMark(second, done)
        return done


RuleOfSet = BoundRule | CountedRule

"""Binds a rule to its DTSTART: fills in what DTSTART implies and proves that the rule can fire.

RFC 5545, 3.3.10: what the BY parts do not say about the date and time of an occurrence is the same as in
DTSTART.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date

from dateutil.rrule import weekday

from scheduler_app.domain.errors import InvalidRecurrence
from scheduler_app.domain.recurrence.timeline import CYCLE_YEARS, DAY
from scheduler_app.domain.recurrence.zones.zone import Zone

from .calendar_rule import CalendarRule
from .day_filter import DayFilter
from .days import Days
from .elapsed_rule import ElapsedRule
from .interval_phase import phase_of, years_to_repeat
from .rule import Frequency, Rule
from .skipping import SkippingDays, limits_of, moves
from .step_budget import StepBudget
from .times_of_day import times_of_day


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
    day_filter = DayFilter(
        filled.by_month,
        filled.by_week_no,
        filled.by_year_day,
        filled.by_month_day,
        filled.by_day,
        rule.freq == Frequency.MONTHLY or bool(rule.by_month),
        rule.week_start,
    )
    endless: CalendarRule | ElapsedRule
    if rule.elapsed:
        endless = ElapsedRule(rule, start.instant, start.zone, Days(day_filter, None, CYCLE_YEARS))
    else:
        phase = phase_of(rule, date.fromordinal(start.local // DAY))
        years = years_to_repeat(rule.freq, rule.interval)
        days = Days(day_filter, phase, years)
        if moves(filled):
            days = SkippingDays(day_filter, phase, years, filled, limits_of(filled))
        endless = CalendarRule(
            rule,
            start.local,
            start.zone,
            days,
            _times(rule, start.local),
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


def _times(rule: Rule, local: int) -> Sequence[int]:
    time = local % DAY
    return times_of_day(
        rule.by_hour or (time // 3600,),
        rule.by_minute or (time // 60 % 60,),
        rule.by_second or (time % 60,),
    )


def _check_positions(rule: Rule) -> None:
    """A position beyond the largest set that a period can give would be searched for in vain."""
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

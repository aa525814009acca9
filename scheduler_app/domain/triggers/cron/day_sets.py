"""What recurrence rules mean as days and times, in a form in which equal rules are equal.

Rules are compared as: for each month and weekday, the days of the month on which they fire, from its
beginning and from its end; beside it the times of day. Only what a cron expression can become has this form.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from scheduler_app.domain.recurrence.rules.rule import Frequency, Rule, Skip

_LONGEST: Final = (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_WORKING: Final = (0, 1, 2, 3, 4)
_MONDAY, _FRIDAY = 0, 4
#: `(month, weekday)`, Monday is 0, with days of the month. A day of leap years only, or of others only, has
#: its BYYEARDAY beside it.
Days = dict[tuple[int, int], frozenset[int | tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class DaySets:
    """Days and times of day of a whole recurrence. `elapsed`: it steps in elapsed time."""

    days: Days
    hours: tuple[int, ...]
    minutes: tuple[int, ...]
    seconds: tuple[int, ...]
    elapsed: bool


def day_sets(rules: Iterable[Rule], start: datetime) -> DaySets | None:
    """The form of rules with DTSTART at the local time `start`; None if they have none."""
    found: dict[tuple[int, int], set[int | tuple[int, int]]] = {}
    times: set[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], bool]] = set()
    for rule in rules:
        if not _like_cron(rule):
            return None
        filled = _times(rule, start)
        pieces = _pieces(rule, start, len(filled[0]) * len(filled[1]) * len(filled[2]))
        if pieces is None or not all(filled[:3]):
            return None
        times.add(filled)
        for month in rule.by_month or _implied_months(rule, start):
            for weekday, days in pieces:
                kept = {day for day in days if abs(day) <= _LONGEST[month]}
                held = {(day, rule.by_year_day[0]) for day in kept} if rule.by_year_day else kept
                found.setdefault((month, weekday), set()).update(held)
    if len(times) != 1:
        return None
    every = frozenset(range(1, 32))
    by_key = {
        key: every if set(range(1, _LONGEST[key[0]] + 1)) <= held else frozenset(held)
        for key, held in found.items()
        if held
    }
    return DaySets(by_key, *times.pop())


def _like_cron(rule: Rule) -> bool:
    in_months = rule.freq == Frequency.MONTHLY or bool(rule.by_month)
    ranked = any(day.n for day in rule.by_day)
    return (
        rule.interval == 1
        and rule.count is None
        and rule.until is None
        and rule.skip is Skip.OMIT
        and not rule.by_week_no
        and (not ranked or (in_months and not rule.by_month_day and not rule.by_set_pos))
        and (not rule.by_year_day or (len(rule.by_year_day) == 1 and len(rule.by_month_day) == 1))
        and (not rule.by_set_pos or rule.freq == Frequency.MONTHLY)
    )


def _times(rule: Rule, start: datetime) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], bool]:
    if not rule.elapsed:
        hours = rule.by_hour or (start.hour,)
        return hours, rule.by_minute or (start.minute,), rule.by_second or (start.second,), False
    hours = rule.by_hour or tuple(range(24))
    every = tuple(range(60))
    # An hour's minute, where it is not given, is not always the same on the clock.
    minutes = rule.by_minute or (every if rule.freq >= Frequency.MINUTELY else ())
    return hours, minutes, rule.by_second or (every if rule.freq == Frequency.SECONDLY else ()), True


def _implied_months(rule: Rule, start: datetime) -> tuple[int, ...]:
    dated = rule.by_year_day or any(day.n for day in rule.by_day)
    if rule.freq == Frequency.YEARLY and not dated and (rule.by_month_day or not rule.by_day):
        return (start.month,)
    return tuple(range(1, 13))


def _pieces(rule: Rule, start: datetime, times: int) -> list[tuple[int, set[int]]] | None:
    """`(weekday, days of the month)` of a rule; None if BYSETPOS picks something else."""
    if rule.by_set_pos:
        return _picked(rule, times)
    days = set(rule.by_month_day)
    weekdays = [(day.n or 0, day.weekday) for day in rule.by_day]
    if not weekdays and rule.freq == Frequency.WEEKLY:
        weekdays = [(0, start.weekday())]
    if not (days or weekdays) and rule.freq <= Frequency.MONTHLY:
        days = {start.day}
    if not weekdays:
        weekdays = [(0, weekday) for weekday in range(7)]
    return [(weekday, _ranked(rank) or days or set(range(1, 32))) for rank, weekday in weekdays]


def _ranked(rank: int) -> set[int]:
    """The days of the month on which the first, second, … or last of a weekday falls."""
    if rank > 0:
        return set(range(7 * rank - 6, 7 * rank + 1))
    return set(range(7 * rank, 7 * rank + 7)) if rank else set()


def _picked(rule: Rule, times: int) -> list[tuple[int, set[int]]] | None:
    weekdays = [(day.n or 0, day.weekday) for day in rule.by_day]
    if rule.by_month_day or weekdays != [(0, weekday) for weekday in _WORKING]:
        return None
    if rule.by_set_pos == tuple(range(1, times + 1)):
        return [(weekday, {1}) for weekday in _WORKING] + [(_MONDAY, {2, 3})]
    if rule.by_set_pos == tuple(range(-times, 0)):
        return [(weekday, {-1}) for weekday in _WORKING] + [(_FRIDAY, {-2, -3})]
    return None

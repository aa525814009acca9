"""The way back: a recurrence as a cron expression, where one fires at exactly the same times.

An expression is guessed from the days and times, translated, and compared: one that differs in anything is
dropped. Rules are compared as: for each month and weekday, the days of the month on which they fire, from
its beginning and from its end; beside it the times of day. Only what a cron expression can become has
this form.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, cast

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.recurrence import Gap, Overlap, Recurrence
from scheduler_app.domain.recurrence.parsed_text import read_text
from scheduler_app.domain.recurrence.rules.rule import Frequency, Rule, Skip
from scheduler_app.domain.recurrence.timeline import local_second
from scheduler_app.domain.recurrence.zones import find_zone
from scheduler_app.domain.triggers.cron.expression import (
    HOURS,
    MINUTES,
    MONTH_DAYS,
    MONTHS,
    SECONDS,
    WEEKDAYS,
    FieldSpec,
)
from scheduler_app.domain.triggers.cron.translation import FRIDAY, MONDAY, WORKING, cron_reading, days_of_rank
from scheduler_app.domain.triggers.translation import TriggerContext

_EVERY: Final = frozenset(range(1, 32))
_LONGEST: Final = (0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
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
    """The form of rules with DTSTART at the local time `start`; None if they do not have this form."""
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
    by_key = {
        key: _EVERY if set(range(1, _LONGEST[key[0]] + 1)) <= held else frozenset(held)
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
        return *rule.hours_minutes_seconds(local_second(start)), False
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
    return [(day, set(days_of_rank(rank)) if rank else days or set(_EVERY)) for rank, day in weekdays]


def _picked(rule: Rule, times: int) -> list[tuple[int, set[int]]] | None:
    weekdays = [(day.n or 0, day.weekday) for day in rule.by_day]
    if rule.by_month_day or weekdays != [(0, weekday) for weekday in WORKING]:
        return None
    if rule.by_set_pos == tuple(range(1, times + 1)):
        return [(weekday, {1}) for weekday in WORKING] + [(MONDAY, {2, 3})]
    if rule.by_set_pos == tuple(range(-times, 0)):
        return [(weekday, {-1}) for weekday in WORKING] + [(FRIDAY, {-2, -3})]
    return None


_RUN: Final = 3  # this many numbers in a row are a range


def as_cron(recurrence: Recurrence) -> str | None:
    """The cron expression that fires at the same instants as `recurrence` from its DTSTART on, read with the
    same timezone, gap and overlap; None if no expression does.

    Cron has no start: whether a DTSTART that is still to come matters is for the caller to tell. Six fields
    are given with the seconds first, and so that they have no other reading.
    """
    written = read_text(recurrence.text)
    if written.dates or written.exception_dates or written.exception_rules or not written.rules:
        return None
    # Without clock changes it does not matter whether a rule steps in elapsed time.
    fixed = find_zone(recurrence.timezone).fixed
    if recurrence.gap == "skip" and not fixed and any(rule.by_set_pos for rule in written.rules):
        return None  # a time that is skipped holds no position, so another day takes it
    wanted = day_sets(written.rules, recurrence.dtstart)
    if wanted is None:
        return None
    context = TriggerContext(
        recurrence.dtstart,
        recurrence.timezone,
        cast(Gap, recurrence.gap),
        cast(Overlap, recurrence.overlap),
    )
    for text in _candidates(wanted, fixed):
        try:
            rules = read_text(cron_reading(text, None, context).recurrence).rules
        except InvalidField:
            continue
        found = day_sets(rules, recurrence.dtstart)
        if found is not None and (replace(found, elapsed=wanted.elapsed) if fixed else found) == wanted:
            return text
    return None


def _candidates(of: DaySets, fixed: bool) -> Iterator[str]:
    stars = of.elapsed or fixed
    times = [_numbers(of.minutes, MINUTES, stars), _numbers(of.hours, HOURS, stars)]
    six = of.seconds != (0,)
    if six:
        times.insert(0, _numbers(of.seconds, SECONDS, stars))
    months = _numbers(tuple(sorted({month for month, _ in of.days})), MONTHS, True)
    for month_days, weekdays in _day_fields(of, names=six):
        yield " ".join([*times, month_days, months, weekdays])


def _day_fields(of: DaySets, *, names: bool) -> Iterator[tuple[str, str]]:
    """Pairs of day fields that may mean the days; the first pair that does is taken."""
    anything = "?" if names else "*"
    found: dict[int, set[int]] = {weekday: set() for weekday in range(7)}
    for (_, weekday), days in of.days.items():
        found[weekday].update(day for day in days if isinstance(day, int))
    whole = [weekday for weekday, days in found.items() if days >= _EVERY]
    if len(whole) == 7:
        yield "*", anything
        return
    # Days that satisfy one of the fields.
    partly = {weekday: days for weekday, days in found.items() if weekday not in whole}
    common = set.intersection(*partly.values())
    working = [days for weekday, days in partly.items() if weekday in WORKING]
    nearest = set.intersection(*working) - common if working else set()
    weekdays = _listed_weekdays(whole, list(_ranks(partly, common)), names)
    for month_days in dict.fromkeys([_listed_month_days(common, set()), _listed_month_days(common, nearest)]):
        yield month_days or "*", weekdays or anything
    # Days that satisfy both fields, which takes a field that begins with a star.
    named = [weekday for weekday, days in found.items() if days]
    together = set.union(*found.values())
    if star := _star(together, MONTH_DAYS):
        yield star, _listed_weekdays(named, [], names)
    cron_days = {(weekday + 1) % 7 for weekday in named}
    step = next((n for n in range(2, 8) if {day % 7 for day in range(0, 8, n)} == cron_days), 0)
    if step:
        yield _listed_month_days(together, set()), f"*/{step}"


def _ranks(found: dict[int, set[int]], common: set[int]) -> Iterator[tuple[int, int]]:
    """Weekdays with the ranks whose days are all among theirs, without those of every weekday."""
    for weekday, days in found.items():
        for rank in (1, 2, 3, 4, 5, -1):
            asked = {day for day in days_of_rank(rank) if day <= 31}
            if asked <= days and not asked <= common:
                yield rank, weekday


def _listed_weekdays(days: list[int], ranked: list[tuple[int, int]], names: bool) -> str:
    numbers = sorted((day + 1) % 7 for day in days)
    runs = ["-".join(dict.fromkeys(_weekday(number, names) for number in ends)) for ends in _runs(numbers)]
    marks = [f"{_weekday((day + 1) % 7, names)}{'L' if rank < 0 else f'#{rank}'}" for rank, day in ranked]
    return ",".join(runs + marks)


def _weekday(number: int, names: bool) -> str:
    return WEEKDAYS.names[number].upper() if names else str(number)


def _listed_month_days(days: set[int], nearest: set[int]) -> str:
    positive = tuple(sorted(day for day in days if day > 0))
    items = [_numbers(positive, MONTH_DAYS, False)] if positive else []
    items += [f"{day}W" for day in sorted(nearest) if day > 0]
    items += ["L" if day == -1 else f"L-{-1 - day}" for day in sorted(days, reverse=True) if day < 0]
    items += ["LW"] if -1 in nearest else []
    return ",".join(items)


def _numbers(values: tuple[int, ...], spec: FieldSpec, stars: bool) -> str:
    if stars and (star := _star(set(values), spec)):
        return star
    step = values[1] - values[0] if len(values) >= _RUN else 0
    if step > 1 and values == tuple(range(values[0], values[-1] + 1, step)):
        return f"{values[0]}-{values[-1]}/{step}"
    return ",".join("-".join(map(str, dict.fromkeys(ends))) for ends in _runs(list(values)))


def _star(values: set[int], spec: FieldSpec) -> str:
    """`*` or `*/2`; empty if the numbers are neither."""
    if values >= set(range(spec.low, spec.high + 1)):
        return "*"
    steps = range(2, spec.high + 1) if len(values) > 1 else ()
    step = next((n for n in steps if set(range(spec.low, spec.high + 1, n)) == values), 0)
    return f"*/{step}" if step else ""


def _runs(numbers: list[int]) -> Iterator[tuple[int, int]]:
    """First and last of numbers in a row, where there are enough of them; else each by itself."""
    at = 0
    while at < len(numbers):
        end = at
        while end + 1 < len(numbers) and numbers[end + 1] == numbers[end] + 1:
            end += 1
        if end - at + 1 >= _RUN:
            yield numbers[at], numbers[end]
        else:
            yield from ((number, number) for number in numbers[at : end + 1])
        at = end + 1

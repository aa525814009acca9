"""BYSETPOS in words, where its positions are days of a period at the same times of day."""

from dataclasses import replace
from typing import NamedTuple

from dateutil.rrule import weekday

from scheduler_app.domain.recurrence.rules.day_filter import DayFilter
from scheduler_app.domain.recurrence.rules.rule import Frequency, Rule

from . import vocabulary as say
from .day_words import DayWords, constraints, day_words, monthly, plain, yearly
from .moved_words import moved_words
from .time_words import TimesOfDay

_WORKING = (0, 1, 2, 3, 4)
_WEEKEND = (5, 6)


class Picked(NamedTuple):
    """What BYSETPOS leaves: the n-th days (empty: all), and the times of day on each of them."""

    days: tuple[int, ...]
    times: TimesOfDay


def picked(rule: Rule, times: TimesOfDay) -> Picked | None:
    """The positions of a calendar rule as days and times; None if they are no product of the two."""
    positions = rule.by_set_pos
    if not positions:
        return Picked((), times)
    size = times.size
    if size > 1440:
        return None
    all_times = times.all()
    by_day: dict[int, set[int]] = {}
    for position in positions:
        day, time = divmod(abs(position) - 1, size)
        sign = 1 if position > 0 else -1
        by_day.setdefault(sign * (day + 1), set()).add(all_times[time if sign > 0 else size - 1 - time])
    if rule.freq == Frequency.DAILY:
        # A day has its own times and nothing else: later positions name nothing.
        chosen = by_day.get(1, set()) | by_day.get(-1, set())
        return _product((), chosen)
    chosen = next(iter(by_day.values()))
    if any(other != chosen for other in by_day.values()):
        return None
    return _product(tuple(sorted(by_day, key=lambda day: (day < 0, day))), chosen)


def _product(days: tuple[int, ...], chosen: set[int]) -> Picked | None:
    hours = tuple(sorted({time // 3600 for time in chosen}))
    minutes = tuple(sorted({time // 60 % 60 for time in chosen}))
    seconds = tuple(sorted({time % 60 for time in chosen}))
    times = TimesOfDay(hours, minutes, seconds)
    return Picked(days, times) if times.size == len(chosen) else None


def simpler(rule: Rule, of: DayFilter, days: tuple[int, ...]) -> tuple[DayFilter, tuple[int, ...]]:
    """The same days without positions where weekdays can say it: the second of the Mondays of a month is the
    second Monday, the first of Tuesday and Friday in a week is Tuesday."""
    only_weekdays = not (of.by_month_day or of.by_year_day or of.by_week_no) and not any(
        d.n for d in of.by_day
    )
    if not days or not only_weekdays:
        return of, days
    if rule.freq == Frequency.WEEKLY and not of.by_month:
        week = sorted((day.weekday for day in of.by_day), key=lambda day: (day - rule.week_start) % 7)
        chosen = {week[day - 1 if day > 0 else day] for day in days if abs(day) <= len(week)}
        return replace(of, by_day=tuple(weekday(day) for day in sorted(chosen))), ()
    in_month = rule.freq == Frequency.MONTHLY or len(of.by_month) == 1
    if len(of.by_day) == 1 and rule.freq <= Frequency.MONTHLY and (in_month or not of.by_month):
        name = of.by_day[0].weekday
        return replace(of, by_day=tuple(weekday(name, day) for day in days)), ()
    return of, days


def position_words(rule: Rule, of: DayFilter, days: tuple[int, ...]) -> DayWords | None:
    """The words for the n-th days of each period that `of` allows; None if there are none."""
    if not days:
        moved = moved_words(rule, of)
        return None if moved is None else day_words(of, moved)
    of = plain(of)
    month, months = _period(rule, of)
    pool = _pool(replace(of, by_month=()) if months else of)
    if rule.freq not in (Frequency.MONTHLY, Frequency.YEARLY) or pool is None:
        return None
    text = f"the {say.ranks(days)} {pool}"
    if rule.freq == Frequency.MONTHLY and not months:
        return monthly(text)
    return replace(yearly(f"{text} of {month}"), in_month=text)


def _period(rule: Rule, of: DayFilter) -> tuple[str, bool]:
    """What the positions count in, and whether that says BYMONTH already."""
    in_months = bool(of.by_month) and (rule.freq == Frequency.MONTHLY or len(of.by_month) == 1)
    return (say.months(of.by_month), True) if in_months else ("the year", False)


def _pool(of: DayFilter) -> str | None:
    """What there is to pick from: `weekday (Monday to Friday)`, `day that is …`; None if it is too much to
    keep in mind."""
    must = constraints(of)
    if not must:
        return "day"
    if len(must) > 2 or any(day.n for day in of.by_day):
        return None
    if len(must) == 1 and of.by_month_day and min(of.by_month_day) > 0:
        return f"of the days {say.numbers(of.by_month_day)}"
    names = tuple(day.weekday for day in of.by_day)
    noun = {_WORKING: "weekday (Monday to Friday)", _WEEKEND: "weekend day (Saturday or Sunday)"}.get(
        names, "day"
    )
    rest = constraints(replace(of, by_day=())) if noun != "day" else must
    if not rest:
        return noun
    return f"{noun} that is {say.all_of(rest)}" + ("," if len(must) > 1 else "")

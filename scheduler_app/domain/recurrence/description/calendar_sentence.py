"""DAILY, WEEKLY, MONTHLY and YEARLY rules in words."""

from dataclasses import replace
from typing import Final

from scheduler_app.domain.recurrence.rules.bound_rule import Start
from scheduler_app.domain.recurrence.rules.day_filter import DayFilter
from scheduler_app.domain.recurrence.rules.interval_phase import week_of
from scheduler_app.domain.recurrence.rules.rule import Frequency, Rule
from scheduler_app.domain.recurrence.timeline import DAY

from . import vocabulary as say
from .body import Body, quoted
from .day_words import DayWords, leading, plain
from .moved_words import moved_words
from .position_words import picked, position_words, simpler
from .time_words import TimesOfDay, time_words, together

_UNITS: Final = {
    Frequency.YEARLY: "year",
    Frequency.MONTHLY: "month",
    Frequency.WEEKLY: "week",
    Frequency.DAILY: "day",
}


def calendar_body(rule: Rule, of: DayFilter, start: Start) -> Body:
    """The body of a rule whose days are those of `of`, in the periods that INTERVAL allows."""
    chosen = picked(rule, _times(rule, start))
    # Where gaps are left out, the readings in them hold no position.
    if chosen is None or (chosen.days and chosen.times.size > 1 and start.skip_gap and not start.zone.fixed):
        return quoted(rule, start)
    at = time_words(chosen.times)
    if chosen.days and moved_words(rule, of) != "":
        return quoted(rule, start)
    of, positions = simpler(rule, plain(of), chosen.days)
    days = _days(rule, of, positions)
    if at is None or days is None:
        return quoted(rule, start)
    some_days = rule.interval > 1 or bool(positions) or not of.everything
    time = start.local % DAY
    whole = not time or (chosen.times.size == 1 and chosen.times.all()[0] >= time)
    return Body(
        together(days, at, some_days),
        _anchor(rule, start),
        rule.freq == Frequency.DAILY,
        starts_with_day=whole,
    )


def _times(rule: Rule, start: Start) -> TimesOfDay:
    time = start.local % DAY
    return TimesOfDay(
        rule.by_hour or (time // 3600,), rule.by_minute or (time // 60 % 60,), rule.by_second or (time % 60,)
    )


def _days(rule: Rule, of: DayFilter, positions: tuple[int, ...]) -> DayWords | None:
    """The days, with the periods that take part."""
    words = position_words(rule, of, positions)
    if words is None or rule.interval == 1:
        return words
    text = _periods(rule, of, positions, words)
    return None if text is None else leading(text)


def _periods(rule: Rule, of: DayFilter, positions: tuple[int, ...], words: DayWords) -> str | None:
    """`Every second week on Monday`."""
    unit = _UNITS[rule.freq]
    every = f"Every second {unit}" if rule.interval == 2 else f"Every {rule.interval} {unit}s"
    if rule.freq == Frequency.YEARLY:
        return f"{every} on {words.on}"
    only = f", only {say.in_months(of.by_month)}," if of.by_month else ""
    rest = replace(of, by_month=())
    if rule.freq == Frequency.DAILY:
        if rest.everything:
            return every + only
        return f"{every}, only on {words.only},"
    if rule.freq == Frequency.WEEKLY:
        names = say.weekdays(day.weekday for day in of.by_day) if of.by_day else "every day"
        return f"{every} on {names}{only}"
    inside = position_words(rule, rest, positions)
    return None if inside is None else f"{every} on {inside.in_month}{only}"


def _anchor(rule: Rule, start: Start) -> str:
    """The period from which INTERVAL counts."""
    if rule.interval == 1:
        return ""
    date = say.date(start.local)
    if rule.freq == Frequency.WEEKLY:
        first = say.date(week_of(start.local // DAY, rule.week_start) * DAY)
        begin = f"that begins on {say.WEEKDAYS[rule.week_start]}" if rule.week_start else "of"
        return f"the week {begin} {first}"
    if rule.freq == Frequency.MONTHLY:
        return date.split(" ", 1)[1]
    if rule.freq == Frequency.YEARLY and not rule.by_week_no:
        return date.rsplit(" ", 1)[1]
    return date

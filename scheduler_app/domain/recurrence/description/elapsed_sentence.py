"""HOURLY, MINUTELY and SECONDLY rules in words."""

from bisect import bisect_right
from typing import Final

from scheduler_app.domain.recurrence.rules.bound_rule import Start
from scheduler_app.domain.recurrence.rules.day_filter import DayFilter
from scheduler_app.domain.recurrence.rules.elapsed_rule import pick
from scheduler_app.domain.recurrence.rules.rule import Frequency, Rule

from . import vocabulary as say
from .body import Body, quoted
from .day_words import day_words, plain
from .time_words import TimesOfDay, in_each_hour, in_each_minute, time_words, together

_UNITS: Final = {
    Frequency.HOURLY: ("hour", 3600),
    Frequency.MINUTELY: ("minute", 60),
    Frequency.SECONDLY: ("second", 1),
}


def elapsed_body(rule: Rule, of: DayFilter, start: Start) -> Body:
    """The body of a rule that steps in elapsed time, on the days of `of`.

    Steps that go round the hour evenly are the same times of every day; others are counted from DTSTART.
    """
    of = plain(of)
    times = _times_of_day(rule, start)
    if times is not None:
        at = time_words(times)
        return quoted(rule, start) if at is None else Body(together(day_words(of), at, not of.everything))
    inside = _in_each_period(rule, start)
    if inside is None:
        return quoted(rule, start)
    # BY parts that give several instants for each period divide it by the clock, so that it begins with it.
    unit = _UNITS[rule.freq][1] if _expands(rule) else 1
    begin = start.local - start.local % unit
    return Body(_every(rule) + inside + _only(rule, of), say.moment(begin), exact=begin == start.local)


def _every(rule: Rule) -> str:
    """Its step in the largest unit that counts it evenly."""
    seconds = rule.interval * _UNITS[rule.freq][1]
    unit, length = next(each for each in _UNITS.values() if seconds % each[1] == 0)
    count = seconds // length
    return f"Every {unit}" if count == 1 else f"Every {count} {unit}s"


def _in_each_period(rule: Rule, start: Start) -> str | None:
    """Where in each of its periods the rule fires; None if there are no words for it."""
    if not _expands(rule):
        alone = not rule.by_set_pos or not {1, -1}.isdisjoint(rule.by_set_pos)
        return "" if alone else None
    minute, second = divmod(start.local % 3600, 60)
    hourly = rule.freq == Frequency.HOURLY
    minutes = rule.by_minute or (minute,) if hourly else (0,)
    times = _picked(rule, TimesOfDay((0,), minutes, rule.by_second or (second,)))
    if times is None or not times.size:
        return None
    return in_each_hour(times.minutes, times.seconds) if hourly else in_each_minute(times.seconds)


def _only(rule: Rule, of: DayFilter) -> str:
    """The BY parts that steps of time are tested by."""
    clauses = []
    if rule.by_hour:
        clauses.append(_hours(rule.by_hour))
    if rule.by_minute and rule.freq != Frequency.HOURLY:
        clauses.append(f"at minute {say.numbers(rule.by_minute, 'or')}")
    if rule.by_second and rule.freq == Frequency.SECONDLY:
        clauses.append(f"at second {say.numbers(rule.by_second, 'or')}")
    if not of.everything:
        clauses.append(f"on {day_words(of).only}")
    return f", only {' and '.join(clauses)}" if clauses else ""


def _hours(hours: tuple[int, ...]) -> str:
    spans = say.spans(hours)
    if any(low == high for low, high in spans):
        return f"in the hour{'s' if len(hours) > 1 else ''} {say.numbers(hours, 'or')}"
    return say.listed([f"from {low:02d}:00 to {high:02d}:59" for low, high in spans], "or")


def _expands(rule: Rule) -> bool:
    """Whether a BY part gives several instants for each period."""
    inside = rule.by_minute if rule.freq == Frequency.HOURLY else ()
    return bool(inside or (rule.by_second and rule.freq != Frequency.SECONDLY))


def _covers(rule: Rule) -> bool:
    """Whether every instant is tested, so that it does not matter where on the clock the periods begin."""
    if rule.interval > 1 or rule.by_set_pos:
        return False
    minutes_given = bool(rule.by_minute) or rule.freq != Frequency.HOURLY
    return minutes_given and (bool(rule.by_second) or rule.freq == Frequency.SECONDLY)


def _times_of_day(rule: Rule, start: Start) -> TimesOfDay | None:
    """The times of day at which the rule fires, when they are the same on every day; else None."""
    unit = _UNITS[rule.freq][1]
    larger = {3600: 24, 60: 60, 1: 60}[unit]
    if larger % rule.interval:
        return None
    if not _covers(rule) and len({offset % (unit * rule.interval) for offset in _offsets(start)}) > 1:
        return None
    if unit == 3600 and rule.interval > 1 and not rule.by_hour:
        return None
    local = start.instant + start.zone.offset(start.instant)
    hour, minute, second = local // 3600 % 24, local // 60 % 60, local % 60
    if rule.freq == Frequency.HOURLY:
        hours = _steps(rule.by_hour, hour, rule.interval, 24)
        minutes, seconds = rule.by_minute or (minute,), rule.by_second or (second,)
    elif rule.freq == Frequency.MINUTELY:
        hours, seconds = rule.by_hour or tuple(range(24)), rule.by_second or (second,)
        minutes = _steps(rule.by_minute, minute, rule.interval, 60)
    else:
        hours, minutes = rule.by_hour or tuple(range(24)), rule.by_minute or tuple(range(60))
        seconds = _steps(rule.by_second, second, rule.interval, 60)
    return _picked(rule, TimesOfDay(hours, minutes, seconds))


def _steps(allowed: tuple[int, ...], first: int, interval: int, size: int) -> tuple[int, ...]:
    return tuple(value for value in allowed or range(size) if (value - first) % interval == 0)


def _offsets(start: Start) -> tuple[int, ...]:
    """The offsets from UTC that DTSTART's zone has from DTSTART on."""
    zone = start.zone
    return zone.offsets[min(bisect_right(zone.starts, start.instant), max(len(zone.starts) - 4, 0)) :]


def _picked(rule: Rule, times: TimesOfDay) -> TimesOfDay | None:
    """What BYSETPOS leaves of them; None if that is not the same minutes with the same seconds."""
    if not rule.by_set_pos or rule.freq == Frequency.SECONDLY:
        return times
    if rule.freq == Frequency.MINUTELY:
        return TimesOfDay(times.hours, times.minutes, tuple(pick(list(times.seconds), rule.by_set_pos)))
    inside = [minute * 60 + second for minute in times.minutes for second in times.seconds]
    chosen = pick(inside, rule.by_set_pos)
    minutes = tuple(sorted({time // 60 for time in chosen}))
    seconds = tuple(sorted({time % 60 for time in chosen}))
    return TimesOfDay(times.hours, minutes, seconds) if len(minutes) * len(seconds) == len(chosen) else None

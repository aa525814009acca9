"""A recurrence set in words: its rules, its dates, and what the exceptions take away."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from scheduler_app.domain.recurrence.description import vocabulary as say
from scheduler_app.domain.recurrence.description.day_words import (
    DayWords,
    day_words,
    leading,
    moved_words,
    simplified_filter,
)
from scheduler_app.domain.recurrence.description.time_words import (
    TimesOfDay,
    days_and_times,
    in_each_hour,
    in_each_minute,
    picked_positions,
    position_words,
    time_words,
    without_positions,
)
from scheduler_app.domain.recurrence.rules.bound_rule import BoundRule, CountedRule, RuleOfSet, Start
from scheduler_app.domain.recurrence.rules.days import DayFilter
from scheduler_app.domain.recurrence.rules.elapsed_rule import pick
from scheduler_app.domain.recurrence.rules.recurrence_set import RecurrenceSet
from scheduler_app.domain.recurrence.rules.rule import Frequency, Rule, week_of
from scheduler_app.domain.recurrence.timeline import DAY, OutOfSteps, StepBudget

_LONGEST: Final = 300  # of a quoted rule; a longer one is cut


@dataclass(frozen=True)
class SentenceBody:
    """`text` says which days and times. `counted_from`: what INTERVAL counts from, where that has to be said;
    `exact`: it is DTSTART itself, so nothing lies before it. `starts_with_day`: no time of DTSTART's day is
    left out."""

    text: str
    counted_from: str = ""
    exact: bool = False
    starts_with_day: bool = False


def quoted_rule(rule: Rule, start: Start) -> SentenceBody:
    """The rule as it is written, where every paraphrase would be harder to read than it, or wrong."""
    text = rule.text(None)
    shown = text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
    return SentenceBody(f"As the rule {shown} says", say.moment(start.local), exact=True)


def calendar_body(rule: Rule, of: DayFilter, start: Start) -> SentenceBody:
    """The body of a rule whose days are those of `of`, in the periods that INTERVAL allows."""
    chosen = picked_positions(rule, TimesOfDay(*rule.hours_minutes_seconds(start.local)))
    # Where gaps are left out, the readings in them hold no position.
    if chosen is None or (chosen.days and chosen.times.size > 1 and start.skip_gap and not start.zone.fixed):
        return quoted_rule(rule, start)
    at = time_words(chosen.times)
    if chosen.days and moved_words(rule, of) != "":
        return quoted_rule(rule, start)
    of, positions = without_positions(rule, simplified_filter(of), chosen.days)
    days = _days(rule, of, positions)
    if at is None or days is None:
        return quoted_rule(rule, start)
    some_days = rule.interval > 1 or bool(positions) or not of.everything
    time = start.local % DAY
    whole = not time or (chosen.times.size == 1 and chosen.times.all()[0] >= time)
    return SentenceBody(
        days_and_times(days, at, some_days),
        _anchor(rule, start),
        rule.freq == Frequency.DAILY,
        starts_with_day=whole,
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
    unit = rule.freq.unit
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


def elapsed_body(rule: Rule, of: DayFilter, start: Start) -> SentenceBody:
    """The body of a rule that steps in elapsed time, on the days of `of`.

    Steps that go round the hour evenly are the same times of every day; others are counted from DTSTART.
    """
    of = simplified_filter(of)
    times = _times_of_day(rule, start)
    if times is not None:
        at = time_words(times)
        return (
            quoted_rule(rule, start)
            if at is None
            else SentenceBody(days_and_times(day_words(of), at, not of.everything))
        )
    inside = _in_each_period(rule, start)
    if inside is None:
        return quoted_rule(rule, start)
    # BY parts that give several instants for each period divide it by the clock, so that it begins with it.
    unit = rule.freq.seconds if _expands(rule) else 1
    begin = start.local - start.local % unit
    return SentenceBody(
        _every(rule) + inside + _only(rule, of), say.moment(begin), exact=begin == start.local
    )


def _every(rule: Rule) -> str:
    """Its step in the largest unit that counts it evenly."""
    seconds = rule.interval * rule.freq.seconds
    freqs = (Frequency.HOURLY, Frequency.MINUTELY, Frequency.SECONDLY)
    largest = next(freq for freq in freqs if seconds % freq.seconds == 0)
    count = seconds // largest.seconds
    return f"Every {largest.unit}" if count == 1 else f"Every {count} {largest.unit}s"


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
    unit = rule.freq.seconds
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
    inside = replace(times, hours=(0,)).all()
    picked = TimesOfDay.of(pick(inside, rule.by_set_pos))
    return None if picked is None else replace(picked, hours=times.hours)


@dataclass(frozen=True)
class RuleSentence:
    """`body` says when, `tail` from when and until when; the zone's name has its place between them."""

    body: str
    tail: str = ""


def rule_sentence(of: RuleOfSet, start: Start, later: bool, exceptions: bool) -> RuleSentence:
    """The sentence for one rule. `later`: its DTSTART lies in the future; `exceptions`: some of its instances
    may be taken away."""
    count = of.count if isinstance(of, CountedRule) else None
    bound = of.bound
    if count == 1 and not exceptions and (only := _first(bound)) is not None:
        return RuleSentence(f"Once, on {say.moment(only + start.zone.offset(only))}")
    rule, days = bound.rule, bound.endless.days.filter
    body = elapsed_body(rule, days, start) if rule.elapsed else calendar_body(rule, days, start)
    return RuleSentence(body.text, _begin(body, start, later) + _end(bound, count, start, exceptions))


def _first(bound: BoundRule) -> int | None:
    """The first instant; None when it takes too long to find."""
    try:
        return next(bound.instants(bound.start, StepBudget(parsing=True)), None)
    except OutOfSteps:
        return None


def _begin(body: SentenceBody, start: Start, later: bool) -> str:
    counted = f", counted from {body.counted_from}" if body.counted_from else ""
    if not later:
        return counted
    begin = say.date(start.local) if body.starts_with_day else say.moment(start.local)
    return ("" if body.exact else counted) + f", from {begin} on"


def _end(bound: BoundRule, count: int | None, start: Start, exceptions: bool) -> str:
    if count is not None:
        text = ", once" if count == 1 else f", {count} times"
        return text + (" counting the exceptions" if exceptions else "")
    if bound.until is None:
        return ""
    local = bound.until + start.zone.offset(bound.until)
    if local % DAY == DAY - 1:
        return f", until the end of {say.date(local)}"
    return f", until {say.moment(local)}"


_LISTED: Final = 3  # more dates are counted, with the first and the last
_RULES: Final = 4  # more rules are counted


def describe(of: RecurrenceSet, start: Start, later: bool) -> str:
    """The sentence, without a full stop. `later`: DTSTART lies after the instant when the rule was given."""
    zone = f" ({start.zone.name})"
    if not of.rules:
        return _dates_alone(of) + zone
    text = _rules(of, start, later, zone)
    if of.dates:
        text += f", and also on {_moments(of.dates, of)}"
    without = [_exception_rules(of, start), _exception_dates(of)]
    return text + "".join(without)


def _rules(of: RecurrenceSet, start: Start, later: bool, zone: str) -> str:
    exceptions = bool(of.exception_rules or of.exception_dates or of.exception_days)
    found = [rule_sentence(rule, start, later, exceptions) for rule in of.rules[:_RULES]]
    if len(found) == 1:
        return found[0].body + zone + found[0].tail
    more = len(of.rules) - len(found)
    clauses = [found[0].body + found[0].tail] + [say.lower_first(each.body) + each.tail for each in found[1:]]
    if more:
        clauses.append(f"by {more} more rule{'s' if more > 1 else ''}")
    return f"{'; '.join(clauses[:-1])}; and {clauses[-1]}{zone}"


def _dates_alone(of: RecurrenceSet) -> str:
    """Dates without a rule: those that no exception takes away."""
    left = [
        instant
        for instant in of.dates
        if instant not in of.exception_dates
        and (instant + of.zone.offset(instant)) // DAY not in of.exception_days
    ]
    if not left:
        return "Never, as the exceptions take away every date"
    if len(left) == 1:
        return f"Once, on {_moments(left, of)}"
    return f"On {_moments(left, of)}"


def _moments(instants: Sequence[int], of: RecurrenceSet) -> str:
    """The local times of sorted instants; of many, how many and between which."""
    local = [instant + of.zone.offset(instant) for instant in instants]
    if len(local) <= _LISTED:
        return say.listed([say.moment(each) for each in local])
    return f"{len(local)} dates from {say.date(local[0])} to {say.date(local[-1])}"


def _exception_rules(of: RecurrenceSet, start: Start) -> str:
    """What EXRULE takes away."""
    if not of.exception_rules:
        return ""
    found = [rule_sentence(rule, start, False, False) for rule in of.exception_rules[:_RULES]]
    clauses = [say.lower_first(each.body) + each.tail for each in found]
    if len(of.exception_rules) > len(found):
        clauses.append("at the times of more rules")
    return f", except {', and except '.join(clauses)}"


def _exception_dates(of: RecurrenceSet) -> str:
    """What EXDATE takes away: instants, and whole days."""
    days = sorted(of.exception_days)
    text = ""
    if days:
        shown = [say.date(day * DAY) for day in days]
        names = f"{len(days)} days from {shown[0]} to {shown[-1]}"
        text += f", except on {say.listed(shown) if len(days) <= _LISTED else names}"
    if of.exception_dates:
        text += f"{' and' if days else ', except'} on {_moments(sorted(of.exception_dates), of)}"
    return text

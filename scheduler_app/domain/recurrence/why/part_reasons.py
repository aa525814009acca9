"""The reasons that calendar rules and rules of elapsed time have in common: days, times of day, positions."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from scheduler_app.domain.recurrence.rules.bound_rule import BoundRule
from scheduler_app.domain.recurrence.rules.day_filter import DayFilter
from scheduler_app.domain.recurrence.rules.open_days import OpenDays
from scheduler_app.domain.recurrence.rules.rule import DAY_NAMES
from scheduler_app.domain.recurrence.timeline import DAY
from scheduler_app.domain.recurrence.year_kinds import first_day, year_of

from .causes import closed_on
from .reason import Reason
from .sentences import UNITS, day_in_words, part_text, rule_text

#: The BY parts that name days, in the order of RFC 5545.
_DAY_PARTS: Final = {
    "by_month": "BYMONTH",
    "by_week_no": "BYWEEKNO",
    "by_year_day": "BYYEARDAY",
    "by_month_day": "BYMONTHDAY",
    "by_day": "BYDAY",
}
_TIME_PARTS: Final = (
    ("BYHOUR", "hour", 3600, 24),
    ("BYMINUTE", "minute", 60, 60),
    ("BYSECOND", "second", 1, 60),
)


def interval_reason(bound: BoundRule, local: int) -> Reason:
    """The period of the local second takes no part."""
    unit, interval = UNITS[bound.rule.freq], bound.rule.interval
    period = f"the {unit} of {day_in_words(local)}" if unit in ("week", "month", "year") else f"this {unit}"
    return Reason(
        "INTERVAL",
        f"INTERVAL={interval} takes one {unit} in {interval}, counted from that of DTSTART, and {period} is"
        " not one of them.",
        rule_text(bound),
    )


def day_reason(bound: BoundRule, day: int) -> Reason | None:
    """The first part that leaves a local day out; None if the rule allows the day."""
    days = bound.endless.days
    if days.allows(day):
        return None
    year = year_of(day)
    bit = day - first_day(year)
    if days.phase is not None and not days.phase(year) >> bit & 1:
        return interval_reason(bound, day * DAY)
    for name, part in _DAY_PARTS.items():
        alone = _only(days.filter, name)
        if alone.everything or alone.days(year) >> bit & 1:
            continue
        written = part_text(bound, part)
        if written is not None:
            return Reason(part, f"{written} does not name {day_in_words(day * DAY)}.", rule_text(bound))
        return Reason(
            part,
            f"The rule has no {part}, so DTSTART implies {part}={_listed(days.filter, name)}, which does not"
            f" name {day_in_words(day * DAY)}.",
            rule_text(bound),
        )
    if isinstance(days, OpenDays) and days.is_closed(day):
        closed = closed_on(days.observed, day * DAY)
        return Reason(
            "holiday",
            f"{closed[0].upper()}{closed[1:]}, and on_holiday=uncounted does not count that day.",
            rule_text(bound),
        )
    return None


def time_reason(bound: BoundRule, local: int, implied: dict[str, int]) -> Reason | None:
    """The first of BYHOUR, BYMINUTE and BYSECOND that leaves a local second out, or what DTSTART implies
    where the rule does not have the part: `implied` holds those values by the part's name."""
    rule = bound.rule
    given = {"BYHOUR": rule.by_hour, "BYMINUTE": rule.by_minute, "BYSECOND": rule.by_second}
    for part, unit, seconds, size in _TIME_PARTS:
        value = local // seconds % size
        if given[part]:
            if value not in given[part]:
                message = f"{part_text(bound, part)} does not name the {unit} {value}."
                return Reason(part, message, rule_text(bound))
        elif part in implied and value != implied[part]:
            return Reason(
                part,
                f"The rule has no {part}, so DTSTART implies {part}={implied[part]}, and not the {unit}"
                f" {value}.",
                rule_text(bound),
            )
    return None


def position_reason(bound: BoundRule) -> Reason:
    """What the other parts name, and BYSETPOS does not pick."""
    unit = UNITS[bound.rule.freq]
    days, of_open = bound.endless.days, ""
    if isinstance(days, OpenDays):
        of_open = f", of those on which the calendar {days.observed.name} is open"
    return Reason(
        "BYSETPOS",
        f"The other parts name it, but {part_text(bound, 'BYSETPOS')} picks other times of the {unit}"
        f"{of_open}.",
        rule_text(bound),
    )


def _only(day_filter: DayFilter, name: str) -> DayFilter:
    """The filter with one of its parts alone."""
    others = {each: () for each in _DAY_PARTS if each != name}
    return replace(day_filter, **others)  # type: ignore[arg-type]


def _listed(day_filter: DayFilter, name: str) -> str:
    return ",".join(_values(day_filter, name))


def _values(day_filter: DayFilter, name: str) -> Iterator[str]:
    if name == "by_day":
        return (DAY_NAMES[day.weekday] for day in day_filter.by_day)
    found: tuple[int, ...] = getattr(day_filter, name)
    return map(str, found)

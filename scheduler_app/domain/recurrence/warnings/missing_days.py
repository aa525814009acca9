"""Warnings of days that some months or years do not have: they are left out, unless SKIP moves them."""

from collections.abc import Iterator
from datetime import date
from typing import Final

from dateutil.rrule import weekday

from scheduler_app.domain.recurrence.description import vocabulary as say
from scheduler_app.domain.recurrence.rules.rule import DAY_NAMES, Frequency, Rule, Skip

_LENGTHS: Final = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_FEW: Final = 4  # with more week numbers than these, one that is missing now and then is no surprise


def missing_days(rule: Rule, start: date) -> Iterator[str]:
    """Sentences about a MONTHLY or YEARLY rule, which DTSTART's day `start` completes."""
    if rule.freq not in (Frequency.MONTHLY, Frequency.YEARLY):
        return
    yield from _weeks_and_days_of_the_year(rule)
    if not rule.by_set_pos:
        if rule.skip is Skip.OMIT:
            yield from _days_of_the_month(rule, start)
        yield from _weekdays(rule)


def _weeks_and_days_of_the_year(rule: Rule) -> Iterator[str]:
    if 53 in rule.by_week_no and len(rule.by_week_no) <= _FEW:
        yield (
            "Only some years have a week 53; in the others the rule does not fire in it. "
            "BYWEEKNO=-1 is the last week of each year."
        )
    if -53 in rule.by_week_no and len(rule.by_week_no) <= _FEW:
        yield (
            "Only some years have 53 weeks and so a week -53, their first; in the others the rule does not "
            "fire in it. BYWEEKNO=1 is the first week of each year."
        )
    for day, name in ((366, "BYYEARDAY=-1 is the last day"), (-366, "BYYEARDAY=1 is the first day")):
        if day in rule.by_year_day and rule.skip is Skip.OMIT:
            yield (
                f"Only leap years have a day {day}; in the others the rule does not fire on it. "
                f"{name} of each year."
            )


def _days_of_the_month(rule: Rule, start: date) -> Iterator[str]:
    if rule.by_day:
        return
    implied = not (rule.by_month_day or rule.by_year_day or rule.by_week_no)
    days = (start.day,) if implied else rule.by_month_day
    months = rule.by_month or ((start.month,) if implied and rule.freq == Frequency.YEARLY else ())
    shortest = min(_LENGTHS[month] for month in months or range(1, 13))
    gone = [day for day in days if abs(day) > shortest]
    if not gone or (max(gone) > 0 and set(range(28, max(gone) + 1)) <= set(days)):
        return  # the 28th and whatever follows it are the last days of each month, and are meant so
    if months == (2,) and gone == [29]:
        yield (
            "29 February exists only in leap years; in the others the rule does not fire. "
            "BYMONTH=2;BYMONTHDAY=-1 is the last day of February."
        )
        return
    which = "month of BYMONTH" if rule.by_month else "month"
    if len(gone) == 1:
        name = f"a day {gone[0]}" if gone[0] > 0 else f"a day {-gone[0]} from the end"
        missing = "where it is missing the rule does not fire on it"
    else:
        name = f"the days {say.listed([str(day) for day in gone])}"
        missing = "where one is missing the rule does not fire on it"
    instead = "-1 is the last" if max(gone) > 0 else "1 is the first"
    yield f"Not every {which} has {name}: {missing}. BYMONTHDAY={instead} day of each month."


def _weekdays(rule: Rule) -> Iterator[str]:
    in_months = rule.freq == Frequency.MONTHLY or bool(rule.by_month)
    period, most = ("month", 5) if in_months else ("year", 53)
    for day in rule.by_day:
        number, name = abs(day.n or 0), say.WEEKDAYS[day.weekday]
        if number > most:
            yield f"No {period} has a {say.ordinal(number)} {name}; take BYDAY={day.n}{_code(day)} out."
        elif number == most:
            end = "-1" if day.n > 0 else "1"
            yield (
                f"Not every {period} has a {say.rank(day.n)} {name}: where it is missing the rule does not "
                f"fire on it. BYDAY={end}{_code(day)} is the {say.rank(int(end))} {name} of each {period}."
            )


def _code(day: weekday) -> str:
    return DAY_NAMES[day.weekday]

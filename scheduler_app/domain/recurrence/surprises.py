"""What may surprise the person who wrote a recurrence: accepted, but worth a warning."""

from collections.abc import Iterator
from datetime import date
from typing import Final

from .build import Built
from .counted_rule import CountedRule, RuleOfSet
from .rule import Frequency, Rule, Skip
from .seconds import DAY
from .steps import OutOfSteps, Steps
from .tied_rule import TiedRule

_LOOKED_AT: Final = 500  # dates and counted instances that are looked at; more would make the answer slow


def surprises(built: Built, start_asked_for: bool, now: int, steps: Steps) -> list[str]:
    """Sentences, seen from the UTC second `now`; InvalidRecurrence when the set takes all of itself away."""
    found: list[str] = []
    for rule in built.set.rules:
        found += _of_rule(_tied(rule), built)
    found += _of_start(built, start_asked_for, steps)
    found += _of_exceptions(built, steps)
    try:
        first = next(built.set.instants(built.start.instant - DAY, steps), None)
        if first is None:
            found.append("There are no occurrences at all.")
        elif first <= now and next(built.set.instants(now + 1, steps), None) is None:
            found.append("All occurrences lie in the past.")
    except OutOfSteps:
        # A count too long to be made here says nothing against the rule; a set without COUNT is refused.
        if not any(isinstance(rule, CountedRule) for rule in built.set.rules):
            raise
    return list(dict.fromkeys(found))


def _tied(rule: RuleOfSet) -> TiedRule:
    return rule.tied if isinstance(rule, CountedRule) else rule


def _of_rule(tied: TiedRule, built: Built) -> Iterator[str]:
    rule = tied.rule
    start_day = date.fromordinal(built.start.local // DAY)
    if tied.until is not None and tied.until < built.start.instant:
        yield "UNTIL lies before DTSTART, so the rule gives nothing."
    if rule.freq == Frequency.YEARLY:
        if rule.by_week_no == (53,):
            yield "Only some years have a week 53; in the others the rule does not fire."
        if rule.by_year_day == (366,) and rule.skip is Skip.OMIT:
            yield "Only leap years have a day 366; in the others the rule does not fire."
    if rule.freq in (Frequency.MONTHLY, Frequency.YEARLY) and rule.skip is Skip.OMIT:
        yield from _of_short_months(rule, start_day)


def _of_short_months(rule: Rule, start: date) -> Iterator[str]:
    """Days that not every month has: they are left out, never moved to another day."""
    numbered = rule.by_day or rule.by_year_day or rule.by_week_no
    days = rule.by_month_day or (() if numbered else (start.day,))
    months = rule.by_month or (
        () if rule.freq == Frequency.MONTHLY or rule.by_month_day or numbered else (start.month,)
    )
    if len(days) != 1 or rule.by_set_pos:
        return
    day = abs(days[0])
    if months == (2,) and day == 29:
        yield "29 February exists only in leap years; in the others the rule does not fire."
    elif day > 28 and any(_longest(month) < day for month in months or range(1, 13)):
        which = "month of BYMONTH" if rule.by_month else "month"
        name = f"day {day}" if days[0] > 0 else f"day {day} from the end"
        yield (
            f"Not every {which} has a {name}: where it is missing the rule does not fire. "
            "BYMONTHDAY=-1 is the last day of each month."
        )


def _longest(month: int) -> int:
    return 28 if month == 2 else 30 if month in (4, 6, 9, 11) else 31


def _of_start(built: Built, asked_for: bool, steps: Steps) -> Iterator[str]:
    if not built.set.rules:
        return
    if not asked_for:
        second = built.start.local % 60
        rules = [_tied(rule).rule for rule in built.set.rules]
        if second and any((rule.by_hour or rule.by_minute) and not rule.by_second for rule in rules):
            yield (
                f"Without DTSTART and BYSECOND it fires at second {second}, that of the creation; "
                "add BYSECOND=0 for the full minute."
            )
        return
    start = built.start.instant
    hit = start in built.set.dates or any(
        next(_tied(rule).endless.instants(start, steps), None) == start for rule in built.set.rules
    )
    if not hit:
        yield "DTSTART does not satisfy the rule, so it is not an occurrence; the first one comes later."


def _of_exceptions(built: Built, steps: Steps) -> Iterator[str]:
    rules, dates = built.set.rules, built.set.exception_dates
    for exception in sorted(dates)[:_LOOKED_AT]:
        if exception not in built.set.dates and not any(
            next(_tied(rule).instants(exception, steps), None) == exception for rule in rules
        ):
            yield "An EXDATE names a time at which nothing occurs, and takes nothing away; check it."
            break
    for rule in rules:
        if isinstance(rule, CountedRule) and dates:
            first = _first_instances(rule, steps)
            lost = sum(instant in dates for instant in first)
            if lost:
                yield (
                    f"EXDATE takes away {lost} of the {rule.count} occurrences that COUNT allows; they count "
                    "all the same and not made up for."
                )


def _first_instances(rule: CountedRule, steps: Steps) -> list[int]:
    found = []
    for instant in rule.tied.instants(rule.tied.start, steps):
        found.append(instant)
        steps.spend()
        if len(found) == min(rule.count, _LOOKED_AT):
            break
    return found

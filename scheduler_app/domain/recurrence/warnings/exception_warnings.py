"""Warnings of exceptions that take nothing away, or that COUNT counts."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

from scheduler_app.domain.recurrence.build import Built
from scheduler_app.domain.recurrence.description import vocabulary as say
from scheduler_app.domain.recurrence.rules.bound_rule import BoundRule
from scheduler_app.domain.recurrence.rules.counted_rule import CountedRule, RuleOfSet
from scheduler_app.domain.recurrence.rules.step_budget import OutOfSteps, StepBudget
from scheduler_app.domain.recurrence.timeline import DAY

#: Exceptions and counted instances that are looked at; more would make the answer slow.
_LOOKED_AT: Final = 500


def exception_warnings(built: Built) -> list[str]:
    """Sentences about EXDATE. They have a budget of their own: what is too rare to be looked up within it is
    not warned of."""
    steps = StepBudget(parsing=True)
    found: list[str] = []
    try:
        found += islice(_without_effect(built, steps), 1)
        for rule in built.set.rules:
            if isinstance(rule, CountedRule):
                found += _counted(rule, built.set.exception_dates, steps)
    except OutOfSteps:
        pass
    return found


def _without_effect(built: Built, steps: StepBudget) -> Iterator[str]:
    """A sentence for each exception at which nothing occurs."""
    of = built.set
    for exception in sorted(of.exception_dates)[:_LOOKED_AT]:
        if exception in of.dates or any(_next(rule, exception, steps) == exception for rule in of.rules):
            continue
        local = exception + of.zone.offset(exception)
        on_day = _on_day(built, local // DAY, steps)
        hint = "nothing occurs on that day; check it"
        if on_day is not None:
            time = say.clock((on_day + of.zone.offset(on_day)) % DAY)
            hint = f"on that day it fires at {time}; write that time"
        yield f"EXDATE {say.moment(local)} takes nothing away: {hint}."
    for day in sorted(of.exception_days)[:_LOOKED_AT]:
        if _on_day(built, day, steps) is None:
            yield (f"EXDATE {say.date(day * DAY)} takes nothing away: nothing occurs on that day; check it.")


def _on_day(built: Built, day: int, steps: StepBudget) -> int | None:
    """The first instant of the rules and dates on a local day."""
    of = built.set
    begin, end = of.zone.read(day * DAY).early, of.zone.read((day + 1) * DAY).late
    instants = [_next(rule, begin, steps) for rule in of.rules]
    instants += [next((date for date in of.dates if date >= begin), None)]
    return min((instant for instant in instants if instant is not None and instant < end), default=None)


def _next(rule: RuleOfSet, second: int, steps: StepBudget) -> int | None:
    """The first instant from a UTC second on. The end of a long COUNT is not looked at, because it would have
    to be counted to."""
    if isinstance(rule, BoundRule):
        return next(rule.instants(second, steps), None)
    if rule.count > _LOOKED_AT:
        return next(rule.bound.instants(second, steps), None)
    return next(rule.instants(second, steps), None)


def _counted(rule: CountedRule, exceptions: frozenset[int], steps: StepBudget) -> Iterator[str]:
    if not exceptions:
        return
    counted = islice(rule.bound.instants(rule.bound.start, steps), min(rule.count, _LOOKED_AT))
    lost = sum(instant in exceptions for instant in counted)
    if lost:
        yield (
            f"EXDATE takes away {lost} of the {rule.count} occurrences that COUNT allows and counts all the "
            f"same. COUNT={rule.count + lost} makes up for {'it' if lost == 1 else 'them'}."
        )

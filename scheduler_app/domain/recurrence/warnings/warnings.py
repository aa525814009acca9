"""The warnings of a recurrence: what is accepted and may surprise the person who wrote it."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from scheduler_app.domain.recurrence.build import Built
from scheduler_app.domain.recurrence.description import vocabulary as say
from scheduler_app.domain.recurrence.rules.bound_rule import BoundRule
from scheduler_app.domain.recurrence.rules.counted_rule import CountedRule, RuleOfSet
from scheduler_app.domain.recurrence.rules.step_budget import OutOfSteps, StepBudget
from scheduler_app.domain.recurrence.timeline import DAY

from .clock_warnings import moved_by_clock_changes, unsaid_time
from .exception_warnings import exception_warnings
from .missing_days import missing_days


class Outlook(NamedTuple):
    """The first occurrence, and whether all lie in the past; `known` is false where a COUNT is too long to
    tell."""

    first: int | None
    over: bool
    known: bool = True


def outlook(built: Built, now: int, steps: StepBudget) -> Outlook:
    """Seen from the UTC second `now`; InvalidRecurrence when the set takes all of itself away."""
    try:
        first = next(built.set.instants(built.start.instant - DAY, steps), None)
        past = first is not None and first <= now
        return Outlook(first, past and next(built.set.instants(now + 1, steps), None) is None)
    except OutOfSteps:
        # A count too long to be made here says nothing against the rule; a set without COUNT is refused.
        if not any(isinstance(rule, CountedRule) for rule in built.set.rules):
            raise
        return Outlook(None, False, False)


@dataclass(frozen=True)
class Warnings:
    """What the warnings of a recurrence are made from, when somebody asks for them. `start_asked_for`: its
    DTSTART was written by a person; `now`: the UTC second of its creation; `notes`: what is known already."""

    built: Built
    start_asked_for: bool
    now: int
    outlook: Outlook
    notes: tuple[str, ...]

    def sentences(self, *, days_known: bool = True) -> tuple[str, ...]:
        """The warnings as sentences. The search is bounded: a warning that would take longer is left out.

        Where the days depend on a calendar (`days_known` is false), none speaks of the first occurrence or of
        the last.
        """
        built = self.built
        found = list(self.notes)
        for rule in built.set.rules:
            bound = _bound(rule)
            found += _of_rule(bound, built)
            found += missing_days(bound.rule, date.fromordinal(built.start.local // DAY))
            found += moved_by_clock_changes(bound, built.start, self.now)
        if days_known:
            found += _of_start(built, self.start_asked_for, self.outlook.first)
        found += exception_warnings(built)
        if days_known and self.outlook.over:
            found.append("All occurrences lie in the past, so none will fire; give a later start or end.")
        elif days_known and self.outlook.known and self.outlook.first is None:
            found.append("There are no occurrences at all; check the end of the rule and its exceptions.")
        return tuple(dict.fromkeys(found))


def _bound(rule: RuleOfSet) -> BoundRule:
    return rule.bound if isinstance(rule, CountedRule) else rule


def _of_rule(bound: BoundRule, built: Built) -> Iterator[str]:
    if bound.until is not None and bound.until < built.start.instant:
        yield "UNTIL lies before DTSTART, so the rule gives nothing; give a later one."


def _of_start(built: Built, asked_for: bool, first: int | None) -> Iterator[str]:
    """Warnings about DTSTART; `first` is the first occurrence, as far as it is known."""
    rules = [_bound(rule) for rule in built.set.rules]
    start = built.start.instant
    if not asked_for:
        for bound in rules:
            yield from unsaid_time(bound.rule, built.start)
    elif rules and start not in built.set.dates and not any(_fires_at(bound, start) for bound in rules):
        later = "comes later"
        if first is not None and first > start:
            later = f"is on {say.moment(first + built.set.zone.offset(first))}"
        yield (
            f"DTSTART does not satisfy the rule, so it is not an occurrence; the first one {later}. "
            "To fire at DTSTART as well, add it as RDATE."
        )


def _fires_at(bound: BoundRule, second: int) -> bool:
    """Whether a rule fires at a UTC second, whatever its UNTIL; true where that takes too long to tell."""
    try:
        return next(bound.endless.instants(second, StepBudget(parsing=True)), None) == second
    except OutOfSteps:
        return True

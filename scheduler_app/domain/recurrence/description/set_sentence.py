"""A recurrence set in words: its rules, its dates, and what the exceptions take away."""

from collections.abc import Sequence
from typing import Final

from scheduler_app.domain.recurrence.rules.bound_rule import Start
from scheduler_app.domain.recurrence.rules.recurrence_set import RecurrenceSet
from scheduler_app.domain.recurrence.timeline import DAY

from . import vocabulary as say
from .rule_sentence import rule_sentence

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
    without = [_but(of, start), _except(of)]
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


def _but(of: RecurrenceSet, start: Start) -> str:
    """What EXRULE takes away."""
    if not of.exception_rules:
        return ""
    found = [rule_sentence(rule, start, False, False) for rule in of.exception_rules[:_RULES]]
    clauses = [say.lower_first(each.body) + each.tail for each in found]
    if len(of.exception_rules) > len(found):
        clauses.append("at the times of more rules")
    return f", except {', and except '.join(clauses)}"


def _except(of: RecurrenceSet) -> str:
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

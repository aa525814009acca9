"""One rule in words: its body, what it is counted from, when it begins and when it ends."""

from dataclasses import dataclass

from scheduler_app.domain.recurrence.rules.bound_rule import BoundRule, Start
from scheduler_app.domain.recurrence.rules.counted_rule import CountedRule, RuleOfSet
from scheduler_app.domain.recurrence.rules.step_budget import OutOfSteps, StepBudget
from scheduler_app.domain.recurrence.timeline import DAY

from . import vocabulary as say
from .body import Body
from .calendar_sentence import calendar_body
from .elapsed_sentence import elapsed_body


@dataclass(frozen=True)
class RuleSentence:
    """`body` says when, `tail` from when and until when; the zone's name has its place between them."""

    body: str
    tail: str = ""


def rule_sentence(of: RuleOfSet, start: Start, later: bool, exceptions: bool) -> RuleSentence:
    """The sentence for one rule. `later`: its DTSTART lies in the future; `exceptions`: some of its instances
    may be taken away."""
    count = of.count if isinstance(of, CountedRule) else None
    bound = of.bound if isinstance(of, CountedRule) else of
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


def _begin(body: Body, start: Start, later: bool) -> str:
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

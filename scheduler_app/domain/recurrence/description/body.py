"""The middle of a rule's sentence, and the honest one for a rule that there are no words for."""

from dataclasses import dataclass
from typing import Final

from scheduler_app.domain.recurrence.rules.bound_rule import Start
from scheduler_app.domain.recurrence.rules.rule import Rule

from . import vocabulary as say

_LONGEST: Final = 300  # of a quoted rule; what is longer is no sentence


@dataclass(frozen=True)
class Body:
    """`text` says which days and times. `counted_from`: what INTERVAL counts from, where that has to be said;
    `exact`: it is DTSTART itself, so nothing lies before it. `starts_with_day`: no time of DTSTART's day is
    left out."""

    text: str
    counted_from: str = ""
    exact: bool = False
    starts_with_day: bool = False


def quoted(rule: Rule, start: Start) -> Body:
    """The rule as it is written, where every paraphrase would be harder to read than it, or wrong."""
    text = rule.text(None)
    shown = text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
    return Body(f"As the rule {shown} says", say.moment(start.local), exact=True)

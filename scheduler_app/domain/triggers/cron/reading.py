"""What a cron expression means: the one reading that it has, or a refusal that shows both."""

from dataclasses import dataclass
from typing import Final

from scheduler_app.domain.errors import InvalidField, InvalidRecurrence
from scheduler_app.domain.recurrence import Recurrence
from scheduler_app.domain.triggers.kind import NotUnderstood, Translation, TriggerContext

from .errors import quoted, refused
from .expression import Expression, SecondsAt, read, split
from .rules import rules_of

_BOTH: Final[tuple[SecondsAt, ...]] = ("first", "last")


@dataclass(frozen=True, slots=True)
class Reading:
    """An expression as it was understood, and the RRULE lines that it became."""

    expression: Expression
    recurrence: str


def reading_of(text: str, seconds_at: SecondsAt | None, context: TriggerContext) -> Reading:
    """The reading of `text`; InvalidField where there is none, NotUnderstood where there are two that differ.

    `seconds_at` tells where the seconds stand in six fields. Without it both readings are tried.
    """
    fields = split(text)
    if len(fields) == 5:
        if seconds_at is not None:
            raise InvalidField(
                "cron_seconds",
                "tells where the seconds stand among six fields, and this expression has five; leave it out, "
                "or give null to take an earlier one away",
            )
        return _reading(fields, "first", context)
    if seconds_at is not None:
        return _reading(fields, seconds_at, context)
    found: dict[SecondsAt, Reading] = {}
    problems: dict[SecondsAt, str] = {}
    for at in _BOTH:
        try:
            reading = _reading(fields, at, context)
            parsed(reading.recurrence, context)
            found[at] = reading
        except InvalidField as problem:
            if problem.field not in ("cron", "rrule"):
                raise  # a choice beside the expression is wrong
            problems[at] = problem.message
    if len({reading.recurrence for reading in found.values()}) == 1:
        return next(iter(found.values()))
    if not found:
        told = "; ".join(f"with the seconds {at}, {problem}" for at, problem in problems.items())
        raise refused(f"{quoted(text)} has six fields, and neither reading is valid: {told}")
    raise _ambiguous(text, found, context)


def recurrence_of(expression: Expression, context: TriggerContext) -> str:
    """The RRULE lines that an expression becomes. Raises InvalidField."""
    rules = rules_of(expression, skips_gap=context.gap == "skip")
    return "\n".join(f"RRULE:{rule}" for rule in _possible(rules, context))


def parsed(text: str, context: TriggerContext) -> Recurrence:
    """The recurrence of RRULE lines. Raises InvalidRecurrence."""
    return Recurrence.parse(
        text,
        created_at=context.at,
        timezone=context.timezone,
        gap=context.gap,
        overlap=context.overlap,
    )


def _reading(fields: list[str], seconds_at: SecondsAt, context: TriggerContext) -> Reading:
    expression = read(fields, seconds_at)
    return Reading(expression, recurrence_of(expression, context))


def _possible(rules: list[str], context: TriggerContext) -> list[str]:
    """The rules without those that never fire, such as one for 30 February beside one for Mondays; all of
    them where none fires, for the evaluator to refuse with its proof."""
    if len(rules) == 1:
        return rules
    return [rule for rule in rules if _fires(rule, context)] or rules


def _fires(rule: str, context: TriggerContext) -> bool:
    try:
        parsed(rule, context)
    except InvalidRecurrence:
        return False
    return True


def _ambiguous(text: str, found: dict[SecondsAt, Reading], context: TriggerContext) -> NotUnderstood:
    told = ", or ".join(
        f'"{parsed(reading.recurrence, context).description}" with cron_seconds "{at}"'
        for at, reading in found.items()
    )
    return NotUnderstood(
        "cron",
        f"{quoted(text)} has six fields, and the seconds may be the first or the last: {told}; "
        "give cron_seconds",
        readings=tuple(Translation(recurrence=reading.recurrence) for reading in found.values()),
    )

"""What a cron expression means: the one reading that it has, or a refusal that shows both."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from scheduler_app.domain.errors import InvalidField, InvalidRecurrence
from scheduler_app.domain.recurrence import Recurrence

from .errors import quoted, refused
from .expression import Expression, SecondsAt, read, split
from .rules import rules_of

_BOTH: Final[tuple[SecondsAt, ...]] = ("first", "last")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the schedule says beside the expression; `at` (aware) is when it was given."""

    at: datetime
    timezone: str = "UTC"
    gap: str = "shift"
    overlap: str = "first"

    def recurrence(self, text: str) -> Recurrence:
        """Raises InvalidRecurrence."""
        return Recurrence.parse(
            text, created_at=self.at, timezone=self.timezone, gap=self.gap, overlap=self.overlap
        )


@dataclass(frozen=True, slots=True)
class Reading:
    """An expression as it was understood, and the RRULE lines that it became."""

    expression: Expression
    recurrence: str


def reading_of(text: str, seconds_at: SecondsAt | None, where: Surroundings) -> Reading:
    """The reading of `text`; InvalidField where there is none, or two that differ.

    `seconds_at` tells where the seconds stand in six fields. Without it both readings are tried.
    """
    fields = split(text)
    if len(fields) == 5:
        if seconds_at is not None:
            raise InvalidField(
                "cron_seconds",
                "tells where the seconds stand among six fields, and this expression has five; leave it out",
            )
        return _reading(fields, "first", where)
    if seconds_at is not None:
        return _reading(fields, seconds_at, where)
    found: dict[SecondsAt, Reading] = {}
    problems: dict[SecondsAt, str] = {}
    for at in _BOTH:
        try:
            found[at] = _reading(fields, at, where)
            where.recurrence(found[at].recurrence)
        except InvalidField as problem:
            found.pop(at, None)
            problems[at] = problem.message
    if len({reading.recurrence for reading in found.values()}) == 1:
        return next(iter(found.values()))
    if not found:
        told = "; ".join(f"with the seconds {at}, {problem}" for at, problem in problems.items())
        raise refused(f"{quoted(text)} has six fields, and is refused in both readings: {told}")
    raise _ambiguous(text, found, where)


def _reading(fields: list[str], seconds_at: SecondsAt, where: Surroundings) -> Reading:
    expression = read(fields, seconds_at)
    rules = rules_of(expression, skips_gap=where.gap == "skip")
    return Reading(expression, "\n".join(f"RRULE:{rule}" for rule in _possible(rules, where)))


def _possible(rules: list[str], where: Surroundings) -> list[str]:
    """The rules without those that never fire, such as one for 30 February beside one for Mondays; all of
    them where none fires, for the evaluator to refuse with its proof."""
    if len(rules) == 1:
        return rules
    return [rule for rule in rules if _fires(rule, where)] or rules


def _fires(rule: str, where: Surroundings) -> bool:
    try:
        where.recurrence(rule)
    except InvalidRecurrence:
        return False
    return True


def _ambiguous(text: str, found: dict[SecondsAt, Reading], where: Surroundings) -> InvalidField:
    told = " or ".join(
        f'"{where.recurrence(reading.recurrence).description}" (cron_seconds: "{at}")'
        for at, reading in found.items()
    )
    return refused(f"{quoted(text)} has six fields, which can mean {told}; give cron_seconds")

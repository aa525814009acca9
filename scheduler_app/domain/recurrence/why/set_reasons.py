"""Why a recurrence set fires at an instant, or does not, and which occurrences are nearest to it.

The evaluator goes forwards only, so the last occurrence before an instant is searched by halves.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from scheduler_app.domain.recurrence.rules.bound_rule import Start
from scheduler_app.domain.recurrence.rules.open_days import RolledSet
from scheduler_app.domain.recurrence.rules.recurrence_set import Observance, RecurrenceSet
from scheduler_app.domain.recurrence.timeline import (
    DAY,
    FIRST_SECOND,
    OutOfSteps,
    StepBudget,
    ceil_second,
    floor_second,
    to_datetime,
)
from scheduler_app.domain.recurrence.why.reason import Reason, RecurrenceVerdict
from scheduler_app.domain.recurrence.why.rule_reasons import (
    causes_of,
    closed_on,
    day_in_words,
    fires_at,
    moved_by_calendar,
    on_the_clock,
    rule_reason,
    rule_text,
)

AnySet = RecurrenceSet | RolledSet

_FIRST_REACH: Final = 3600
_FURTHER: Final = 8
#: A calendar moves an occurrence earlier by fewer closed days in a row than this.
_ROLLED: Final = 4_000 * DAY


def last_occurrence_before(of: AnySet, second: int, steps: StepBudget) -> int | None:
    """The last occurrence before a UTC second; None if nothing occurs before it."""
    found, high = _some_before(of, second, steps)
    if found is None:
        return None
    # Nothing lies between `high` and `second`.
    while found + 1 < high:
        middle = (found + 1 + high) // 2
        later = _first_from(of, middle, steps)
        if later is not None and later < second:
            found = later
        else:
            high = middle
    return found


def _some_before(of: AnySet, second: int, steps: StepBudget) -> tuple[int | None, int]:
    """`(an occurrence before a UTC second, a later second, between which and it nothing occurs)`."""
    lowest = _lowest(of)
    reach, high = _FIRST_REACH, second
    while high > lowest:
        low = max(second - reach, lowest)
        found = _first_from(of, low, steps)
        if found is not None and found < second:
            return found, high
        reach, high = reach * _FURTHER, low
    return None, high


def _lowest(of: AnySet) -> int:
    """A UTC second before which nothing occurs."""
    own = of.own if isinstance(of, RolledSet) else of
    first = min([*(rule.bound.start for rule in own.rules), *own.dates[:1]], default=FIRST_SECOND)
    return max(first - _ROLLED if isinstance(of, RolledSet) else first, FIRST_SECOND)


def _first_from(of: AnySet, second: int, steps: StepBudget) -> int | None:
    return next(of.instants(second, steps), None)


class WholeBudget(StepBudget):
    """One budget for everything that an answer needs: what was found does not renew it."""

    __slots__ = ()

    def allow(self, rules: int) -> None:
        """However many rules there are."""

    def found(self) -> None:
        """Costs nothing, and gives nothing back."""


@dataclass(frozen=True, slots=True)
class ExplainedRecurrence:
    """What is asked why."""

    own: RecurrenceSet
    """The recurrence set without a calendar."""
    fires: AnySet
    """What is left of it by the calendar, if there is one: the judge."""
    start: Start
    observed: Observance | None = None


def verdict(
    asked: ExplainedRecurrence, instant: datetime, steps: StepBudget | None = None
) -> RecurrenceVerdict:
    """Whether a recurrence fires at an aware instant, and why not. `steps` is what it may cost.

    Raises InvalidRecurrence when even the occurrence after the instant cannot be found within that.
    """
    steps = steps or WholeBudget()
    second, later = floor_second(instant), ceil_second(instant)
    reasons: tuple[Reason, ...] = ()
    if second != later:
        reasons = (Reason("whole_second", "A recurrence fires at whole seconds, and this has a fraction."),)
    elif next(asked.fires.instants(second, steps), None) != second:
        reasons = tuple(_reasons(asked, second, steps))
    following = next(asked.fires.instants(second + 1, steps), None)
    # Before the search backwards, which may use up all steps.
    causes = () if reasons else tuple(_causes(asked, second, steps))
    try:
        previous, searched = last_occurrence_before(asked.fires, later, steps), True
    except OutOfSteps:
        previous, searched = None, False
    return RecurrenceVerdict(
        not reasons,
        reasons,
        causes,
        None if previous is None else to_datetime(previous),
        None if following is None else to_datetime(following),
        searched,
    )


def _reasons(asked: ExplainedRecurrence, second: int, steps: StepBudget) -> list[Reason]:
    of, start = asked.own, asked.start
    local = second + of.zone.offset(second)
    if asked.observed is not None and next(of.instants(second, steps), None) == second:
        return [_holiday(asked, second, local, steps)]
    found = [reason for rule in of.rules if (reason := rule_reason(rule, second, steps)) is not None]
    if len(found) < len(of.rules) or second in of.dates:
        return _exceptions(of, second, local, steps)
    if of.rules:
        return found
    if len(of.dates) == 1 and of.dates[0] == start.instant:
        return [Reason("DTSTART", f"It fires once, at DTSTART, {on_the_clock(start.local)}.")]
    return [Reason("RDATE", f"No RDATE names {on_the_clock(local)}, and there is no rule.")]


def _exceptions(of: RecurrenceSet, second: int, local: int, steps: StepBudget) -> list[Reason]:
    """What takes away an instant that rules or dates give."""
    found = []
    if second in of.exception_dates:
        found.append(Reason("EXDATE", f"An EXDATE takes {on_the_clock(local)} away."))
    if local // DAY in of.exception_days:
        found.append(Reason("EXDATE", f"An EXDATE takes {day_in_words(local)} away as a whole."))
    for rule in of.exception_rules:
        if fires_at(rule, second, steps):
            text = rule_text(rule.bound)
            found.append(Reason("EXRULE", f"EXRULE:{text} takes {on_the_clock(local)} away.", text))
    return found


def _holiday(asked: ExplainedRecurrence, second: int, local: int, steps: StepBudget) -> Reason:
    """The rules name the instant, and the calendar is closed."""
    observed = asked.observed
    assert observed is not None  # noqa: S101 - the calendar is why we are here
    closed = closed_on(observed, local)
    closed = closed[0].upper() + closed[1:]
    if not isinstance(asked.fires, RolledSet):
        return Reason("holiday", f"{closed}, and on_holiday={observed.on_holiday} leaves it out.")
    way = observed.on_holiday
    target = asked.fires.target(second, steps)
    if target is None:
        return Reason(
            "holiday",
            f"{closed}, and on_holiday={way} moves it to the {way} open day, which does not have its time.",
        )
    new = on_the_clock(target + asked.own.zone.offset(target))
    return Reason("holiday", f"{closed}, and on_holiday={way} moves it to {new}.")


def _causes(asked: ExplainedRecurrence, second: int, steps: StepBudget) -> Iterator[Reason]:
    """Why an instant fires."""
    of, fires = asked.own, asked.fires
    source = fires.source(second) if isinstance(fires, RolledSet) else None
    if source is not None and asked.observed is not None:
        yield moved_by_calendar(asked.observed, source)
    yield from causes_of(of, second, last=asked.start.last_in_overlap, steps=steps)

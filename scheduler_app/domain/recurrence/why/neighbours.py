"""The last occurrence before an instant: the evaluator goes forwards only, so the time before is searched by
halves."""

from typing import Final

from scheduler_app.domain.recurrence.rules.counted_rule import CountedRule
from scheduler_app.domain.recurrence.rules.recurrence_set import RecurrenceSet
from scheduler_app.domain.recurrence.rules.rolling import RolledSet
from scheduler_app.domain.recurrence.rules.step_budget import StepBudget
from scheduler_app.domain.recurrence.timeline import DAY, FIRST_SECOND

AnySet = RecurrenceSet | RolledSet

_FIRST_REACH: Final = 3600
_FURTHER: Final = 8
#: A calendar moves an occurrence earlier by fewer closed days in a row than this.
_ROLLED: Final = 4_000 * DAY


def last_before(of: AnySet, second: int, steps: StepBudget) -> int | None:
    """The last occurrence before a UTC second; None if there is none."""
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
    """`(an occurrence before a UTC second, a later second from which on there is none up to it)`."""
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
    bounds = [(rule.bound if isinstance(rule, CountedRule) else rule).start for rule in own.rules]
    first = min([*bounds, *own.dates[:1]], default=FIRST_SECOND)
    return max(first - _ROLLED if isinstance(of, RolledSet) else first, FIRST_SECOND)


def _first_from(of: AnySet, second: int, steps: StepBudget) -> int | None:
    return next(of.instants(second, steps), None)

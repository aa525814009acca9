"""What may surprise of a rule and a calendar together: that it never fires, or far later than it says."""

from collections.abc import Iterator

from scheduler_app.domain.recurrence.description import vocabulary as say
from scheduler_app.domain.recurrence.rules.closed_days import Observance
from scheduler_app.domain.recurrence.rules.recurrence_set import RecurrenceSet
from scheduler_app.domain.recurrence.rules.rolling import RolledSet
from scheduler_app.domain.recurrence.rules.step_budget import OutOfSteps, StepBudget
from scheduler_app.domain.recurrence.timeline import DAY

_LONG: int = 400 * DAY


def closed_day_warnings(
    written: RecurrenceSet, fires: RecurrenceSet | RolledSet, observed: Observance, now: int
) -> Iterator[str]:
    """The warnings, seen from the UTC second `now`; those that would take too many steps are left out."""
    try:
        own = next(written.instants(now + 1, StepBudget()), None)
        first = next(fires.instants(now + 1, StepBudget()), None)
    except OutOfSteps:
        return
    if own is None:
        return
    if first is None:
        if observed.on_holiday == "uncounted":
            yield (
                f"The calendar {observed.name} leaves this rule no days, or fewer than it counts, so none"
                " will fire; take other days."
            )
        else:
            yield (
                f"Every occurrence falls on a closed day of the calendar {observed.name}, so none will"
                " fire; take other days, or let on_holiday be next or previous."
            )
    elif first - own > _LONG:
        yield (
            f"The calendar {observed.name} closes the days of this rule: the first occurrence is on "
            f"{say.moment(first + written.zone.offset(first))}."
        )

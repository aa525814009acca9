"""A set whose rules do not know the closed days of a calendar: neither BYSETPOS nor COUNT counts them.

So "the third business day of the month" is the third of the month's days that are open.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from scheduler_app.domain.recurrence.timeline import FIRST_DAY, LAST_DAY, LAST_SECOND

from .bound_rule import BoundRule
from .closed_days import Observance, is_closed
from .counted_rule import CountedRule, RuleOfSet
from .days import Days, span
from .recurrence_set import RecurrenceSet
from .step_budget import StepBudget

_LONGEST_PERIOD = 400  # days; more than those of a week-year, and of the days that SKIP moves out of it


@dataclass(frozen=True, eq=False)
class OpenDays(Days):
    """The days of a rule on which a calendar is open."""

    of: Days
    observed: Observance

    def of_year(self, year: int) -> int:
        """As `Days.of_year`."""
        return self.of.of_year(year) & ~self.observed.closed.of_year(year)

    @property
    def reach(self) -> int:
        """As `Days.reach`."""
        return self.of.reach

    @property
    def everything(self) -> bool:
        """Never: a calendar closes some days."""
        return False

    def in_period(self, first: int, last: int) -> tuple[int, int]:
        """As `Days.in_period`."""
        base, days = self.of.in_period(first, last)
        closed = span(self.observed.closed.of_year, base, base + _LONGEST_PERIOD)
        return base, days & ~closed

    def is_closed(self, day: int) -> bool:
        """Whether the calendar leaves out a day that the rule names."""
        return FIRST_DAY <= day <= LAST_DAY and self.of.allows(day) and is_closed(self.observed.closed, day)


@dataclass(frozen=True, eq=False)
class OpenRule(BoundRule):
    """A rule of open days. Other rules were proven to fire when they were given; of this one, it is found out
    once that nothing is left."""

    _over: dict[str, int] = field(
        default_factory=dict, init=False, repr=False
    )  # nothing is left from there on

    def instants(self, second: int, steps: StepBudget, shifted: set[int] | None = None) -> Iterator[int]:
        """As `BoundRule.instants`."""
        last = second - 1
        if second < self._over.get("from", LAST_SECOND + 1):
            for last in super().instants(second, steps, shifted):
                yield last
            self._over["from"] = last + 1


def on_open_days(of: RecurrenceSet, observed: Observance) -> RecurrenceSet:
    """The set with rules that name open days alone; its dates, and what it leaves out, stay."""
    return replace(of, rules=tuple(_on_open_days(rule, observed) for rule in of.rules))


def _on_open_days(rule: RuleOfSet, observed: Observance) -> RuleOfSet:
    if isinstance(rule, CountedRule):
        return CountedRule(_bound(rule.bound, observed), rule.count)
    return _bound(rule, observed)


def _bound(rule: BoundRule, observed: Observance) -> BoundRule:
    days = rule.endless.days
    found = OpenDays(days.filter, days.phase, days.repeats_after, days, observed)
    return OpenRule(rule.rule, rule.start, rule.until, replace(rule.endless, days=found))

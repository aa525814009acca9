"""A recurrence for programs that read RFC 5545 as most do: one rule from its next occurrence on.

Readers differ in what several rules together mean, in EXRULE, in week numbers, in positions within a period
that has begun, in steps of hours across clock changes, in times that clocks leave out. What needs any of
these is shown as instants.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from scheduler_app.domain.recurrence.rule_text import write_time
from scheduler_app.domain.recurrence.rules.bound_rule import CountedRule
from scheduler_app.domain.recurrence.rules.calendar_rule import CalendarRule
from scheduler_app.domain.recurrence.rules.rule import Skip, WrittenTime
from scheduler_app.domain.recurrence.timeline import StepBudget

from .timeline import DAY, LAST_SECOND, ceil_second, local_datetime, to_datetime

if TYPE_CHECKING:
    from .recurrence import Recurrence

#: Occurrences by which the result is compared with the recurrence itself, and dates that it may hold.
COMPARED: Final = 50
MAX_DATES: Final = 500
_FOREVER: Final = timedelta(days=366 * 400)
_GAPS_LOOKED_AT: Final = 20 * 366 * DAY


@dataclass(frozen=True, slots=True)
class StandardRule:
    """What is coming: `rule` (an RRULE's value) from `start` on, with `dates`, without `exceptions`."""

    start: datetime
    """Its first occurrence: naive, on the wall clock of `timezone`."""
    timezone: str
    rule: str
    dates: tuple[datetime, ...] = ()
    """In UTC, as are the exceptions."""
    exceptions: tuple[datetime, ...] = ()

    def text(self) -> str:
        """The same as RFC 5545 lines."""
        stamp = f"{self.start:%Y%m%dT%H%M%S}"
        zone = f":{stamp}Z" if self.timezone == "UTC" else f";TZID={self.timezone}:{stamp}"
        lines = [f"DTSTART{zone}", f"RRULE:{self.rule}"]
        for name, times in (("RDATE", self.dates), ("EXDATE", self.exceptions)):
            if times:
                lines.append(f"{name}:{','.join(f'{each:%Y%m%dT%H%M%SZ}' for each in times)}")
        return "\n".join(lines)


def standard_rule(recurrence: "Recurrence", after: datetime) -> StandardRule | None:
    """What `recurrence` gives from an aware `after` on; None if one rule cannot say it exactly, or where
    nothing is left of its rule.

    Raises InvalidRecurrence where it takes too many steps to tell."""
    of = recurrence._set
    if recurrence.observed is not None or len(of.rules) != 1 or of.exception_rules or of.exception_days:
        return None
    rule, first = of.rules[0], ceil_second(after)
    bound = rule.bound
    parts, zone = bound.rule, of.zone
    unclear = parts.by_week_no or parts.skip is not Skip.OMIT or any(place > 1 for place in parts.by_set_pos)
    if unclear or (
        not zone.fixed and (parts.elapsed or recurrence.gap == "skip" or recurrence.overlap == "last")
    ):
        return None
    steps = StepBudget()
    start = next(rule.instants(first, steps), None)
    if start is None or (isinstance(bound.endless, CalendarRule) and _meets_a_gap(bound.endless, start)):
        return None
    if isinstance(rule, CountedRule):
        parts = replace(parts, count=rule.count - rule.done_before(start, StepBudget()))
    elif bound.until is not None:
        parts = replace(parts, until=WrittenTime(bound.until, utc=True))
    dates = tuple(each for each in of.dates if each >= first)
    exceptions = tuple(sorted(each for each in of.exception_dates if each >= start))
    if len(dates) + len(exceptions) > MAX_DATES or (dates and dates[0] < start):
        return None
    until = None if parts.until is None else write_time(parts.until.second, utc=True)
    found = StandardRule(
        local_datetime(start + zone.offset(start), None).replace(tzinfo=None),
        zone.name,
        parts.text(until),
        tuple(map(to_datetime, dates)),
        tuple(map(to_datetime, exceptions)),
    )
    return found if _gives_the_same(found, recurrence, after) else None


def _meets_a_gap(rule: CalendarRule, start: int) -> bool:
    """Whether clocks leave out a time of the rule within some years of the UTC second `start`: programs take
    such a time for different instants."""
    zone = rule.zone
    if zone.fixed:
        return False
    end = min(start + _GAPS_LOOKED_AT, LAST_SECOND)
    gaps = zone.gaps(start + zone.offset(start), end + zone.offset(end))
    return any(rule.first_reading(begin, after) is not None for begin, after in gaps)


def _gives_the_same(found: StandardRule, recurrence: "Recurrence", after: datetime) -> bool:
    again = type(recurrence).parse(found.text(), created_at=after)
    end = min(after, datetime.max.replace(tzinfo=after.tzinfo) - _FOREVER) + _FOREVER
    return again.between(after, end, COMPARED) == recurrence.between(after, end, COMPARED)

"""Why a recurrence fires at an instant: what names it, and what moved it there."""

from collections.abc import Iterator
from datetime import date

from scheduler_app.domain.recurrence.rules.bound_rule import BoundRule
from scheduler_app.domain.recurrence.rules.calendar_rule import CalendarRule
from scheduler_app.domain.recurrence.rules.closed_days import Observance
from scheduler_app.domain.recurrence.rules.counted_rule import CountedRule, RuleOfSet
from scheduler_app.domain.recurrence.rules.open_days import OpenDays
from scheduler_app.domain.recurrence.rules.recurrence_set import RecurrenceSet
from scheduler_app.domain.recurrence.rules.skipping import SkippingDays
from scheduler_app.domain.recurrence.rules.step_budget import StepBudget
from scheduler_app.domain.recurrence.timeline import DAY
from scheduler_app.domain.recurrence.zones.zone import Zone

from .reason import Reason
from .sentences import MONTHS, day_in_words, on_the_clock, ordinal, part_text, rule_text


def causes_of(of: RecurrenceSet, second: int, *, last: bool, steps: StepBudget) -> Iterator[Reason]:
    """What of a set gives the UTC second `second`, which it fires at: each rule, and the dates. `last`: a
    time that exists twice fires the second time."""
    for rule in of.rules:
        shifted: set[int] = set()
        if next(rule.instants(second, steps, shifted), None) == second:
            yield _of_rule(rule, second, second in shifted)
    if second in of.dates:
        yield _of_date(of, second, last=last)


def moved_by_calendar(observed: Observance, source: int) -> Reason:
    """Of an occurrence that a calendar moved: `source` is the local second at which it would have fired."""
    way = "next" if observed.on_holiday == "next" else "previous"
    return Reason(
        "holiday",
        f"It is the occurrence of {on_the_clock(source)}: {closed_on(observed, source)}, and on_holiday={way}"
        f" moves it to the {way} open day.",
    )


def closed_on(observed: Observance, local: int) -> str:
    """That the calendar is closed on the day of a local second, and why."""
    name = observed.closed.name_of(date.fromordinal(local // DAY))
    named = f" ({name})" if name else ""
    return f"the calendar {observed.name} is closed on {day_in_words(local)}{named}"


def _of_rule(rule: RuleOfSet, second: int, shifted: bool) -> Reason:
    bound = rule.bound if isinstance(rule, CountedRule) else rule
    text, endless = rule_text(bound), bound.endless
    if not isinstance(endless, CalendarRule):
        local = second + endless.zone.offset(second)
        return Reason("RRULE", f"{text} reaches {on_the_clock(local)} in elapsed time.", text)
    found = _clock_change(endless.zone, second, shifted, last=endless.last_in_overlap)
    local = second + endless.zone.offset(second)
    if found is not None:
        return Reason(found.code, found.message, text)
    days = endless.days.of if isinstance(endless.days, OpenDays) else endless.days
    if isinstance(days, SkippingDays):
        missing = days.missing_at(local // DAY)
        if missing is not None:
            return Reason("SKIP", _skipped(bound, local, *missing), text)
    counted = (
        f"; days on which the calendar {endless.days.observed.name} is closed are not counted"
        if isinstance(endless.days, OpenDays)
        else ""
    )
    return Reason("RRULE", f"{text} names {on_the_clock(local)}{counted}.", text)


def _of_date(of: RecurrenceSet, second: int, *, last: bool) -> Reason:
    found = _clock_change(of.zone, second, second in of.shifted_dates, last=last)
    if found is not None:
        return found
    local = on_the_clock(second + of.zone.offset(second))
    return (
        Reason("RDATE", f"A date names {local}.")
        if of.rules
        else Reason("DTSTART", f"It fires once, {local}.")
    )


def _clock_change(zone: Zone, second: int, shifted: bool, *, last: bool) -> Reason | None:
    """What a clock change did to a wall-clock time that fires at a UTC second."""
    local = second + zone.offset(second)
    if shifted:
        written = second + zone.offset(zone.segment(second)[0] - 1)
        return Reason(
            "gap",
            f"It is the occurrence of {on_the_clock(written)}, which does not exist in {zone.name}, where"
            f" clocks are put forward then; gap=shift fires it that much later, at {on_the_clock(local)}.",
        )
    if zone.read(local).kind == "overlap":
        chosen = "last" if last else "first"
        return Reason(
            "overlap",
            f"{on_the_clock(local)} comes twice in {zone.name}, where clocks are put back then, and"
            f" overlap={chosen} takes the {chosen} time, which this is.",
        )
    return None


def _skipped(bound: BoundRule, local: int, number: int, first: int) -> str:
    """That SKIP moved day `number` of the period that begins with day `first`."""
    if bound.rule.by_month_day or not bound.rule.by_year_day:
        period = f"{MONTHS[date.fromordinal(first).month - 1]} {date.fromordinal(first).year}"
        of = "month"
    else:
        period, of = str(date.fromordinal(first).year), "year"
    end = " from the end" if number < 0 else ""
    return (
        f"It is the occurrence of the {ordinal(abs(number))} day of the {of}{end}, which {period} does not"
        f" have: {part_text(bound, 'SKIP')} moves it to {day_in_words(local)}."
    )

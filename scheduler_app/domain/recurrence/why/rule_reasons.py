"""Why one rule does not give an instant."""

from collections.abc import Iterator

from scheduler_app.domain.recurrence.rules.bound_rule import BoundRule
from scheduler_app.domain.recurrence.rules.calendar_rule import CalendarRule
from scheduler_app.domain.recurrence.rules.counted_rule import CountedRule, RuleOfSet
from scheduler_app.domain.recurrence.rules.elapsed_rule import ElapsedRule
from scheduler_app.domain.recurrence.rules.rule import Frequency
from scheduler_app.domain.recurrence.rules.step_budget import StepBudget
from scheduler_app.domain.recurrence.timeline import DAY

from .part_reasons import day_reason, interval_reason, position_reason, time_reason
from .reason import Reason
from .sentences import on_the_clock, part_text, rule_text

_PERIODS = {Frequency.HOURLY: 3600, Frequency.MINUTELY: 60, Frequency.SECONDLY: 1}


def gives(rule: RuleOfSet | CalendarRule | ElapsedRule, second: int, steps: StepBudget) -> bool:
    """Whether the evaluator gives the UTC second."""
    return next(rule.instants(second, steps), None) == second


def rule_reason(rule: RuleOfSet, second: int, steps: StepBudget) -> Reason | None:
    """The first reason for which a rule does not give a UTC second; None if it gives it."""
    if gives(rule, second, steps):
        return None
    bound = rule.bound if isinstance(rule, CountedRule) else rule
    endless = bound.endless
    if not gives(endless, second, steps):
        if isinstance(endless, CalendarRule):
            return _calendar_reason(bound, endless, second)
        return _elapsed_reason(bound, endless, second)
    if bound.until is not None and second > bound.until:
        return Reason("UNTIL", f"The rule ends with {part_text(bound, 'UNTIL')}.", rule_text(bound))
    return Reason(
        "COUNT", f"The rule has ended: {part_text(bound, 'COUNT')} came before it.", rule_text(bound)
    )


def _calendar_reason(bound: BoundRule, rule: CalendarRule, second: int) -> Reason:
    zone = rule.zone
    local = second + zone.offset(second)
    missing = _in_gap(rule, second)
    if missing is not None and rule.skip_gap and not rule.rule.by_set_pos and rule.has_reading(missing):
        return Reason(
            "gap",
            f"{on_the_clock(missing)} does not exist in {zone.name}, where clocks are put forward then, and"
            " gap=skip leaves it out.",
            rule_text(bound),
        )
    if zone.read(local).kind == "overlap" and _names(rule, local):
        chosen = "last" if rule.last_in_overlap else "first"
        return Reason(
            "overlap",
            f"{on_the_clock(local)} comes twice in {zone.name}, where clocks are put back then, and"
            f" overlap={chosen} takes the {chosen} time.",
            rule_text(bound),
        )
    if local < rule.start:
        return _before_start(bound, rule.start)
    found = _left_out(bound, rule, local)
    if missing is not None and missing >= rule.start and found.code == "BYHOUR":
        # A question about 02:15, which clocks leave out, is about that reading, too.
        other = _left_out(bound, rule, missing)
        if other.code != "BYHOUR":
            return Reason(
                other.code,
                f"{found.message} It is also what {on_the_clock(missing)} would be moved to, which does not"
                f" exist in {zone.name}, where clocks are put forward then: {other.message}",
                other.rule,
            )
    return found


def _left_out(bound: BoundRule, rule: CalendarRule, local: int) -> Reason:
    """The first part that leaves a wall-clock time out."""
    time = rule.start % DAY
    implied = {"BYHOUR": time // 3600, "BYMINUTE": time // 60 % 60, "BYSECOND": time % 60}
    return day_reason(bound, local // DAY) or time_reason(bound, local, implied) or position_reason(bound)


def _in_gap(rule: CalendarRule, second: int) -> int | None:
    """The local second that a clock change leaves out and that would be shifted to a UTC second."""
    start, _, offset = rule.zone.segment(second)
    before = rule.zone.offset(start - 1)
    return second + before if before < offset and second < start + offset - before else None


def _names(rule: CalendarRule, local: int) -> bool:
    """Whether the parts name the local second, whatever the clock does then."""
    if not rule.rule.by_set_pos:
        return rule.has_reading(local)
    day, reach = local // DAY, rule.days.reach
    probes = range(day - reach, day + reach + 1)
    return local >= rule.start and any(local in rule.pick(*rule.period(probe)) for probe in probes)


def _elapsed_reason(bound: BoundRule, rule: ElapsedRule, second: int) -> Reason:
    local = second + rule.zone.offset(second)
    if second < rule.start:
        return _before_start(bound, rule.start + rule.zone.offset(rule.start))
    into = (second - rule.first) % rule.step
    period = _PERIODS[rule.rule.freq]
    if into >= period:
        return interval_reason(bound, local)
    # What no part says is DTSTART's place in its period, which runs in elapsed time.
    implied = dict(_implied(rule, period, local, into))
    return day_reason(bound, local // DAY) or time_reason(bound, local, implied) or position_reason(bound)


def _implied(rule: ElapsedRule, period: int, local: int, into: int) -> Iterator[tuple[str, int]]:
    """The values that DTSTART implies for the parts shorter than the period, on the local clock."""
    start = rule.start - rule.first
    parts = rule.rule
    if period == 3600 and not parts.by_minute:
        yield "BYMINUTE", (local // 60 + start // 60 - into // 60) % 60
    if period > 1 and not parts.by_second:
        yield "BYSECOND", (local + start % 60 - into % 60) % 60


def _before_start(bound: BoundRule, start: int) -> Reason:
    return Reason("DTSTART", f"It comes before DTSTART, {on_the_clock(start)}.", rule_text(bound))

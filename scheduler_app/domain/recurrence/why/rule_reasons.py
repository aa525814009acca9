"""Why one rule gives an instant, or does not: the first part that leaves it out, or what moved it there."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from typing import Final

from scheduler_app.domain.recurrence.description.vocabulary import MONTHS, WEEKDAYS, ordinal
from scheduler_app.domain.recurrence.description.vocabulary import date as date_in_words
from scheduler_app.domain.recurrence.rule_text import write_time
from scheduler_app.domain.recurrence.rules.bound_rule import BoundRule, RuleOfSet
from scheduler_app.domain.recurrence.rules.calendar_rule import CalendarRule
from scheduler_app.domain.recurrence.rules.days import DayFilter, SkippingDays
from scheduler_app.domain.recurrence.rules.elapsed_rule import ElapsedRule
from scheduler_app.domain.recurrence.rules.open_days import OpenDays
from scheduler_app.domain.recurrence.rules.recurrence_set import Observance, RecurrenceSet
from scheduler_app.domain.recurrence.rules.rule import DAY_NAMES
from scheduler_app.domain.recurrence.timeline import DAY, StepBudget, first_day, local_datetime, year_of
from scheduler_app.domain.recurrence.why.reason import Reason
from scheduler_app.domain.recurrence.zones import Zone


def on_the_clock(local: int) -> str:
    """A local second in words: Wednesday 3 March 2027, 09:30:00."""
    return f"{day_in_words(local)}, {local_datetime(local, None):%H:%M:%S}"


def day_in_words(local: int) -> str:
    """The day of a local second in words: Wednesday 3 March 2027."""
    return f"{WEEKDAYS[local_datetime(local, None).weekday()]} {date_in_words(local)}"


def rule_text(bound: BoundRule) -> str:
    """The rule as RFC 5545 writes it."""
    until = None if bound.until is None else write_time(bound.until, utc=True)
    return bound.rule.text(until)


def _reason(code: str, message: str, bound: BoundRule) -> Reason:
    """A reason that is about the rule."""
    return Reason(code, message, rule_text(bound))


def part_text(bound: BoundRule, name: str) -> str | None:
    """A part of the rule as it is written, such as `BYDAY=MO`; None if the rule does not have it."""
    return next((part for part in rule_text(bound).split(";") if part.startswith(f"{name}=")), None)


def causes_of(of: RecurrenceSet, second: int, *, last: bool, steps: StepBudget) -> Iterator[Reason]:
    """What of a set gives the UTC second `second`, which it fires at: each rule, and the dates. `last`: a
    time that exists twice fires the second time."""
    for rule in of.rules:
        shifted: set[int] = set()
        if next(rule.instants(second, steps, shifted), None) == second:
            yield _cause_in_rule(rule, second, second in shifted)
    if second in of.dates:
        yield _cause_in_dates(of, second, last=last)


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


def _cause_in_rule(rule: RuleOfSet, second: int, shifted: bool) -> Reason:
    bound = rule.bound
    text, endless = rule_text(bound), bound.endless
    if not isinstance(endless, CalendarRule):
        local = second + endless.zone.offset(second)
        return Reason("RRULE", f"{text} reaches {on_the_clock(local)} in elapsed time.", text)
    found = _cause_in_clock_change(endless.zone, second, shifted, last=endless.last_in_overlap)
    local = second + endless.zone.offset(second)
    if found is not None:
        return Reason(found.code, found.message, text)
    days = endless.days.of if isinstance(endless.days, OpenDays) else endless.days
    if isinstance(days, SkippingDays):
        missing = days.missing_at(local // DAY)
        if missing is not None:
            return Reason("SKIP", _skipped(bound, local, *missing), text)
    counted = ""
    if isinstance(endless.days, OpenDays):
        counted = f"; days on which the calendar {endless.days.observed.name} is closed are not counted"
    return Reason("RRULE", f"{text} names {on_the_clock(local)}{counted}.", text)


def _cause_in_dates(of: RecurrenceSet, second: int, *, last: bool) -> Reason:
    found = _cause_in_clock_change(of.zone, second, second in of.shifted_dates, last=last)
    if found is not None:
        return found
    local = on_the_clock(second + of.zone.offset(second))
    if of.rules:
        return Reason("RDATE", f"A date names {local}.")
    return Reason("DTSTART", f"It fires once, {local}.")


def _cause_in_clock_change(zone: Zone, second: int, shifted: bool, *, last: bool) -> Reason | None:
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


#: The BY parts that name days, in the order of RFC 5545.
_DAY_PARTS: Final = {
    "by_month": "BYMONTH",
    "by_week_no": "BYWEEKNO",
    "by_year_day": "BYYEARDAY",
    "by_month_day": "BYMONTHDAY",
    "by_day": "BYDAY",
}
_TIME_PARTS: Final = (
    ("BYHOUR", "hour", 3600, 24),
    ("BYMINUTE", "minute", 60, 60),
    ("BYSECOND", "second", 1, 60),
)


def interval_reason(bound: BoundRule, local: int) -> Reason:
    """The period of the local second takes no part."""
    unit, interval = bound.rule.freq.unit, bound.rule.interval
    period = f"the {unit} of {day_in_words(local)}" if unit in ("week", "month", "year") else f"this {unit}"
    return _reason(
        "INTERVAL",
        f"INTERVAL={interval} takes one {unit} in {interval}, counted from that of DTSTART, and {period} is"
        " not one of them.",
        bound,
    )


def day_reason(bound: BoundRule, day: int) -> Reason | None:
    """The first part that leaves a local day out; None if the rule allows the day."""
    days = bound.endless.days
    if days.allows(day):
        return None
    year = year_of(day)
    bit = day - first_day(year)
    if days.phase is not None and not days.phase(year) >> bit & 1:
        return interval_reason(bound, day * DAY)
    for name, part in _DAY_PARTS.items():
        alone = _only(days.filter, name)
        if alone.everything or alone.days(year) >> bit & 1:
            continue
        written = part_text(bound, part)
        if written is not None:
            return _reason(part, f"{written} does not name {day_in_words(day * DAY)}.", bound)
        implied = f"{part}={_listed(days.filter, name)}, which does not name {day_in_words(day * DAY)}"
        return _reason(part, f"The rule has no {part}, so DTSTART implies {implied}.", bound)
    if isinstance(days, OpenDays) and days.is_closed(day):
        closed = closed_on(days.observed, day * DAY)
        return _reason(
            "holiday",
            f"{closed[0].upper()}{closed[1:]}, and on_holiday=uncounted does not count that day.",
            bound,
        )
    return None


def time_reason(bound: BoundRule, local: int, implied: dict[str, int]) -> Reason | None:
    """The first of BYHOUR, BYMINUTE and BYSECOND that leaves a local second out, or what DTSTART implies
    where the rule does not have the part: `implied` holds those values by the part's name."""
    rule = bound.rule
    given = {"BYHOUR": rule.by_hour, "BYMINUTE": rule.by_minute, "BYSECOND": rule.by_second}
    for part, unit, seconds, size in _TIME_PARTS:
        value = local // seconds % size
        if given[part]:
            if value not in given[part]:
                return _reason(part, f"{part_text(bound, part)} does not name the {unit} {value}.", bound)
        elif part in implied and value != implied[part]:
            why = f"DTSTART implies {part}={implied[part]}, and not the {unit} {value}"
            return _reason(part, f"The rule has no {part}, so {why}.", bound)
    return None


def position_reason(bound: BoundRule) -> Reason:
    """What the other parts name, and BYSETPOS does not pick."""
    days, of_open = bound.endless.days, ""
    if isinstance(days, OpenDays):
        of_open = f", of those on which the calendar {days.observed.name} is open"
    return _reason(
        "BYSETPOS",
        f"The other parts name it, but {part_text(bound, 'BYSETPOS')} picks other times of the "
        f"{bound.rule.freq.unit}{of_open}.",
        bound,
    )


def _only(day_filter: DayFilter, name: str) -> DayFilter:
    """The filter with one of its parts alone."""
    others = {each: () for each in _DAY_PARTS if each != name}
    return replace(day_filter, **others)  # type: ignore[arg-type]


def _listed(day_filter: DayFilter, name: str) -> str:
    if name == "by_day":
        return ",".join(DAY_NAMES[day.weekday] for day in day_filter.by_day)
    return ",".join(map(str, getattr(day_filter, name)))


def fires_at(rule: RuleOfSet | CalendarRule | ElapsedRule, second: int, steps: StepBudget) -> bool:
    """Whether the evaluator gives the UTC second."""
    return next(rule.instants(second, steps), None) == second


def rule_reason(rule: RuleOfSet, second: int, steps: StepBudget) -> Reason | None:
    """The first reason for which a rule does not give a UTC second; None if it gives it."""
    if fires_at(rule, second, steps):
        return None
    bound, endless = rule.bound, rule.bound.endless
    if not fires_at(endless, second, steps):
        if isinstance(endless, CalendarRule):
            return _calendar_reason(bound, endless, second)
        return _elapsed_reason(bound, endless, second)
    if bound.until is not None and second > bound.until:
        return _reason("UNTIL", f"The rule ends with {part_text(bound, 'UNTIL')}.", bound)
    return _reason("COUNT", f"The rule has ended: {part_text(bound, 'COUNT')} came before it.", bound)


def _calendar_reason(bound: BoundRule, rule: CalendarRule, second: int) -> Reason:
    zone = rule.zone
    local = second + zone.offset(second)
    missing = _in_gap(rule, second)
    if missing is not None and rule.skip_gap and not rule.rule.by_set_pos and rule.has_reading(missing):
        return _reason(
            "gap",
            f"{on_the_clock(missing)} does not exist in {zone.name}, where clocks are put forward then, and"
            " gap=skip leaves it out.",
            bound,
        )
    if zone.read(local).kind == "overlap" and _parts_allow(rule, local):
        chosen = "last" if rule.last_in_overlap else "first"
        return _reason(
            "overlap",
            f"{on_the_clock(local)} comes twice in {zone.name}, where clocks are put back then, and"
            f" overlap={chosen} takes the {chosen} time.",
            bound,
        )
    if local < rule.start:
        return _before_start(bound, rule.start)
    found = _excluding_part(bound, rule, local)
    if missing is not None and missing >= rule.start and found.code == "BYHOUR":
        # A question about 02:15, which clocks leave out, is about that reading, too.
        other = _excluding_part(bound, rule, missing)
        if other.code != "BYHOUR":
            return Reason(
                other.code,
                f"{found.message} It is also what {on_the_clock(missing)} would be moved to, which does not"
                f" exist in {zone.name}, where clocks are put forward then: {other.message}",
                other.rule,
            )
    return found


def _excluding_part(bound: BoundRule, rule: CalendarRule, local: int) -> Reason:
    """The first part that leaves a wall-clock time out."""
    time = rule.start % DAY
    implied = {"BYHOUR": time // 3600, "BYMINUTE": time // 60 % 60, "BYSECOND": time % 60}
    return day_reason(bound, local // DAY) or time_reason(bound, local, implied) or position_reason(bound)


def _in_gap(rule: CalendarRule, second: int) -> int | None:
    """The local second that a clock change leaves out and that would be shifted to a UTC second."""
    start, _, offset = rule.zone.segment(second)
    before = rule.zone.offset(start - 1)
    return second + before if before < offset and second < start + offset - before else None


def _parts_allow(rule: CalendarRule, local: int) -> bool:
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
    period = rule.rule.freq.seconds
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
    return _reason("DTSTART", f"It comes before DTSTART, {on_the_clock(start)}.", bound)

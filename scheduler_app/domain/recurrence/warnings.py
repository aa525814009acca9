"""The warnings of a recurrence: what is accepted and may surprise the person who wrote it."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from itertools import islice
from typing import Final, NamedTuple

from scheduler_app.domain.recurrence.build import Built
from scheduler_app.domain.recurrence.description import vocabulary as say
from scheduler_app.domain.recurrence.rules.bound_rule import BoundRule, CountedRule, RuleOfSet, Start
from scheduler_app.domain.recurrence.rules.calendar_rule import CalendarRule
from scheduler_app.domain.recurrence.rules.elapsed_rule import ElapsedRule
from scheduler_app.domain.recurrence.rules.open_days import RolledSet
from scheduler_app.domain.recurrence.rules.recurrence_set import Observance, RecurrenceSet
from scheduler_app.domain.recurrence.rules.rule import DAY_NAMES, Frequency, Rule, Skip
from scheduler_app.domain.recurrence.timeline import DAY, LAST_SECOND, OutOfSteps, StepBudget, month_spans

_FEW: Final = 4  # with more week numbers than these, one that is missing now and then does not surprise


def missing_day_warnings(rule: Rule, start: date) -> Iterator[str]:
    """Sentences about a MONTHLY or YEARLY rule, which DTSTART's day `start` completes."""
    if rule.freq not in (Frequency.MONTHLY, Frequency.YEARLY):
        return
    yield from _weeks_and_days_of_the_year(rule)
    if not rule.by_set_pos:
        if rule.skip is Skip.OMIT:
            yield from _days_of_the_month(rule, start)
        yield from _weekdays(rule)


def _weeks_and_days_of_the_year(rule: Rule) -> Iterator[str]:
    few = len(rule.by_week_no) <= _FEW
    if 53 in rule.by_week_no and few:
        yield (
            "Only some years have a week 53; in the others the rule does not fire in it. "
            "BYWEEKNO=-1 is the last week of each year."
        )
    if -53 in rule.by_week_no and few:
        yield (
            "Only some years have 53 weeks and so a week -53, their first; in the others the rule does not "
            "fire in it. BYWEEKNO=1 is the first week of each year."
        )
    for day, name in ((366, "BYYEARDAY=-1 is the last day"), (-366, "BYYEARDAY=1 is the first day")):
        if day in rule.by_year_day and rule.skip is Skip.OMIT:
            yield (
                f"Only leap years have a day {day}; in the others the rule does not fire on it. "
                f"{name} of each year."
            )


def _days_of_the_month(rule: Rule, start: date) -> Iterator[str]:
    if rule.by_day:
        return
    implied = not (rule.by_month_day or rule.by_year_day or rule.by_week_no)
    days = (start.day,) if implied else rule.by_month_day
    months = rule.by_month or ((start.month,) if implied and rule.freq == Frequency.YEARLY else ())
    shortest = min(month_spans(False)[month - 1][1] for month in months or (2,))
    gone = [day for day in days if abs(day) > shortest]
    from_begin = max(gone, default=0) > 0
    if not gone or (from_begin and set(range(28, max(gone) + 1)) <= set(days)):
        return  # the 28th and whatever follows it are the last days of each month, and are meant so
    if months == (2,) and gone == [29]:
        yield (
            "29 February exists only in leap years; in the others the rule does not fire. "
            "BYMONTH=2;BYMONTHDAY=-1 is the last day of February."
        )
        return
    which = "month of BYMONTH" if rule.by_month else "month"
    if len(gone) == 1:
        name = f"a day {gone[0]}" if from_begin else f"a day {-gone[0]} from the end"
        missing = "where it is missing the rule does not fire on it"
    else:
        name = f"the days {say.listed([str(day) for day in gone])}"
        missing = "where one is missing the rule does not fire on it"
    instead = "-1 is the last" if from_begin else "1 is the first"
    yield f"Not every {which} has {name}: {missing}. BYMONTHDAY={instead} day of each month."


def _weekdays(rule: Rule) -> Iterator[str]:
    in_months = rule.freq == Frequency.MONTHLY or bool(rule.by_month)
    period, most = ("month", 5) if in_months else ("year", 53)
    for day in rule.by_day:
        number, name, code = abs(day.n or 0), say.WEEKDAYS[day.weekday], DAY_NAMES[day.weekday]
        if number > most:
            yield f"No {period} has a {say.ordinal(number)} {name}; take BYDAY={day.n}{code} out."
        elif number == most:
            end = "-1" if day.n > 0 else "1"
            yield (
                f"Not every {period} has a {say.rank(day.n)} {name}: where it is missing the rule does not "
                f"fire on it. BYDAY={end}{code} is the {say.rank(int(end))} {name} of each {period}."
            )


_AHEAD: Final = 10 * 366 * DAY  # how far clock changes are looked for; the next ones tell


def implied_time_warnings(rule: Rule, start: Start) -> Iterator[str]:
    """What the time of creation fills in, when there is no DTSTART; at most one sentence."""
    time = start.local % DAY
    hour, minute, second = time // 3600, time // 60 % 60, time % 60
    if rule.freq < Frequency.HOURLY and not rule.by_hour:
        if rule.by_minute or rule.by_second:
            yield (
                f"No hour was given, so it fires in hour {hour}, that of the creation; "
                f"add BYHOUR={hour}, or the one that is meant."
            )
        else:
            yield (
                f"No time of day was given, so it fires at {say.clock(time)} ({start.zone.name}), that of "
                f"its creation; add one, such as BYHOUR={hour};BYMINUTE={minute};BYSECOND=0."
            )
    elif rule.freq <= Frequency.HOURLY and rule.by_hour and not rule.by_minute:
        seconds = "" if rule.by_second else f" and second {second}"
        yield (
            f"No minute was given, so it fires at minute {minute}{seconds}, as at its creation; "
            f"add BYMINUTE=0{'' if rule.by_second else ';BYSECOND=0'} for the full hour."
        )
    elif second and (rule.by_hour or rule.by_minute) and not rule.by_second:
        yield (
            f"Without DTSTART and BYSECOND it fires at second {second}, that of the creation; "
            "add BYSECOND=0 for the full minute."
        )


def clock_change_warnings(bound: BoundRule, start: Start, now: int) -> Iterator[str]:
    """Warnings from the UTC second `now` on: elapsed-time steps that drift, local times in a gap."""
    if start.zone.fixed:
        return
    begin = max(start.instant, now)
    end = min(begin + _AHEAD, LAST_SECOND if bound.until is None else bound.until)
    if isinstance(bound.endless, ElapsedRule):
        yield from _drift(bound.rule, bound.endless.step, start, begin, end)
    elif not start.skip_gap and begin < end and not bound.rule.by_set_pos:
        yield from _gap(bound.endless, begin, end)


def _drift(rule: Rule, step: int, start: Start, begin: int, end: int) -> Iterator[str]:
    """A step of whole days, or one that fills a day, reads like a time of day, which it is not."""
    days, rest = divmod(step, DAY)
    if rest and (DAY % step or step % 3600 or step == 3600):
        return
    _, change, _ = start.zone.segment(begin)
    if change > end:
        return
    if days:
        instead = "FREQ=DAILY" + (f";INTERVAL={days}" if days > 1 else "")
    else:
        first = start.local % DAY // 3600
        hours = sorted((first + each) % 24 for each in range(0, 24, step // 3600))
        instead = f"FREQ=DAILY;BYHOUR={','.join(map(str, hours))}"
    day = say.date(change + start.zone.offset(change))
    yield (
        f"{rule.freq.name} with INTERVAL={rule.interval} counts elapsed time: when the clocks of "
        f"{start.zone.name} change, next on {day}, its local time moves. {instead} keeps it."
    )


def _gap(rule: CalendarRule, begin: int, end: int) -> Iterator[str]:
    """The first local time of the rule that a clock change leaves out."""
    zone = rule.zone
    for first, last in zone.gaps(begin + zone.offset(begin), end + zone.offset(end)):
        local = rule.first_reading(first, last)
        if local is not None:
            fires = zone.read(local).early
            yield (
                f"The clocks of {zone.name} skip {say.clock(first % DAY)} to {say.clock(last % DAY)} on "
                f"{say.date(first)}, so {say.clock(local % DAY)} does not exist then and it fires at "
                f"{say.clock((fires + zone.offset(fires)) % DAY)} instead; choose another time, or set gap "
                "to skip to leave it out."
            )
            return


#: Exceptions and counted instances that are looked at; more would make the answer slow.
_LOOKED_AT: Final = 500


def exception_warnings(built: Built) -> list[str]:
    """Sentences about EXDATE. They have a budget of their own: what is too rare to be looked up within it is
    not warned of."""
    steps = StepBudget(parsing=True)
    found: list[str] = []
    try:
        found += islice(_without_effect(built, steps), 1)
        for rule in built.set.rules:
            if isinstance(rule, CountedRule):
                found += _counted(rule, built.set.exception_dates, steps)
    except OutOfSteps:
        pass
    return found


def _without_effect(built: Built, steps: StepBudget) -> Iterator[str]:
    """A sentence for each exception at which nothing occurs."""
    of = built.set
    for exception in sorted(of.exception_dates)[:_LOOKED_AT]:
        if exception in of.dates or any(_next(rule, exception, steps) == exception for rule in of.rules):
            continue
        local = exception + of.zone.offset(exception)
        on_day = _on_day(built, local // DAY, steps)
        hint = "nothing occurs on that day; check it"
        if on_day is not None:
            time = say.clock((on_day + of.zone.offset(on_day)) % DAY)
            hint = f"on that day it fires at {time}; write that time"
        yield f"EXDATE {say.moment(local)} takes nothing away: {hint}."
    for day in sorted(of.exception_days)[:_LOOKED_AT]:
        if _on_day(built, day, steps) is None:
            yield f"EXDATE {say.date(day * DAY)} takes nothing away: nothing occurs on that day; check it."


def _on_day(built: Built, day: int, steps: StepBudget) -> int | None:
    """The first instant of the rules and dates on a local day."""
    of = built.set
    begin, end = of.zone.read(day * DAY).early, of.zone.read((day + 1) * DAY).late
    instants = [_next(rule, begin, steps) for rule in of.rules]
    instants += [next((date for date in of.dates if date >= begin), None)]
    return min((instant for instant in instants if instant is not None and instant < end), default=None)


def _next(rule: RuleOfSet, second: int, steps: StepBudget) -> int | None:
    """The first instant from a UTC second on. The end of a long COUNT is not looked at, because it would have
    to be counted to."""
    too_long = isinstance(rule, CountedRule) and rule.count > _LOOKED_AT
    return next((rule.bound if too_long else rule).instants(second, steps), None)


def _counted(rule: CountedRule, exceptions: frozenset[int], steps: StepBudget) -> Iterator[str]:
    if not exceptions:
        return
    counted = islice(rule.bound.instants(rule.bound.start, steps), min(rule.count, _LOOKED_AT))
    lost = sum(instant in exceptions for instant in counted)
    if lost:
        yield (
            f"EXDATE takes away {lost} of the {rule.count} occurrences that COUNT allows and counts all the "
            f"same. COUNT={rule.count + lost} makes up for {'it' if lost == 1 else 'them'}."
        )


class RecurrenceOutlook(NamedTuple):
    """The first occurrence, and whether all lie in the past; `known` is false where a COUNT is too long to
    tell."""

    first: int | None
    over: bool
    known: bool = True


def outlook(built: Built, now: int, steps: StepBudget) -> RecurrenceOutlook:
    """Seen from the UTC second `now`; InvalidRecurrence when the set takes all of itself away."""
    try:
        first = next(built.set.instants(built.start.instant - DAY, steps), None)
        past = first is not None and first <= now
        return RecurrenceOutlook(first, past and next(built.set.instants(now + 1, steps), None) is None)
    except OutOfSteps:
        # A count too long to be made here says nothing against the rule; a set without COUNT is refused.
        if not any(isinstance(rule, CountedRule) for rule in built.set.rules):
            raise
        return RecurrenceOutlook(None, False, False)


@dataclass(frozen=True)
class Warnings:
    """What the warnings of a recurrence are made from, when somebody asks for them. `start_asked_for`: its
    DTSTART was written by a person; `now`: the UTC second of its creation; `notes`: what is known already."""

    built: Built
    start_asked_for: bool
    now: int
    outlook: RecurrenceOutlook
    notes: tuple[str, ...]

    def sentences(self, *, days_known: bool = True) -> tuple[str, ...]:
        """The warnings as sentences. The search is bounded: a warning that would take longer is left out.

        Where the days depend on a calendar (`days_known` is false), none speaks of the first occurrence or of
        the last.
        """
        built = self.built
        found = list(self.notes)
        for rule in built.set.rules:
            bound = rule.bound
            if bound.until is not None and bound.until < built.start.instant:
                found.append("UNTIL lies before DTSTART, so the rule gives nothing; give a later one.")
            found += missing_day_warnings(bound.rule, date.fromordinal(built.start.local // DAY))
            found += clock_change_warnings(bound, built.start, self.now)
        if days_known:
            found += _of_start(built, self.start_asked_for, self.outlook.first)
        found += exception_warnings(built)
        if days_known and self.outlook.over:
            found.append("All occurrences lie in the past, so none will fire; give a later start or end.")
        elif days_known and self.outlook.known and self.outlook.first is None:
            found.append("There are no occurrences at all; check the end of the rule and its exceptions.")
        return tuple(dict.fromkeys(found))


def _of_start(built: Built, asked_for: bool, first: int | None) -> Iterator[str]:
    """Warnings about DTSTART; `first` is the first occurrence, as far as it is known."""
    rules = [rule.bound for rule in built.set.rules]
    start = built.start.instant
    if not asked_for:
        for bound in rules:
            yield from implied_time_warnings(bound.rule, built.start)
    elif rules and start not in built.set.dates and not any(_fires_at(bound, start) for bound in rules):
        later = "comes later"
        if first is not None and first > start:
            later = f"is on {say.moment(first + built.set.zone.offset(first))}"
        yield (
            f"DTSTART does not satisfy the rule, so it is not an occurrence; the first one {later}. "
            "To fire at DTSTART as well, add it as RDATE."
        )


def _fires_at(bound: BoundRule, second: int) -> bool:
    """Whether a rule fires at the UTC second of DTSTART, whatever its UNTIL. The search for its first
    instance kept to the same budget when the rule was read."""
    return next(bound.endless.instants(second, StepBudget(parsing=True)), None) == second


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

"""Warnings about the time of day: one that was not given, that drifts, or that does not exist on some day."""

from collections.abc import Iterator
from typing import Final

from scheduler_app.domain.recurrence.description import vocabulary as say
from scheduler_app.domain.recurrence.rules.bound_rule import BoundRule, Start
from scheduler_app.domain.recurrence.rules.calendar_rule import CalendarRule
from scheduler_app.domain.recurrence.rules.elapsed_rule import ElapsedRule
from scheduler_app.domain.recurrence.rules.rule import Frequency, Rule
from scheduler_app.domain.recurrence.rules.times_of_day import first_from
from scheduler_app.domain.recurrence.timeline import DAY, LAST_SECOND

_AHEAD: Final = 10 * 366 * DAY  # how far clock changes are looked for; the next ones tell


def unsaid_time(rule: Rule, start: Start) -> Iterator[str]:
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


def moved_by_clock_changes(bound: BoundRule, start: Start, now: int) -> Iterator[str]:
    """Warnings from the UTC second `now` on: elapsed-time steps that drift, local times in a gap."""
    if start.zone.fixed:
        return
    begin = max(start.instant, now)
    end = min(begin + _AHEAD, LAST_SECOND if bound.until is None else bound.until)
    if isinstance(bound.endless, ElapsedRule):
        yield from _drift(bound.rule, bound.endless.step, start, begin, end)
    elif not start.skip_gap and begin < end:
        yield from _gap(bound.endless, begin, end)


def _drift(rule: Rule, step: int, start: Start, begin: int, end: int) -> Iterator[str]:
    """A step of whole days, or one that fills a day, reads as a time of day and is none."""
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
        local = _reading_between(rule, first, last)
        if local is not None:
            fires = zone.read(local).early
            yield (
                f"The clocks of {zone.name} skip {say.clock(first % DAY)} to {say.clock(last % DAY)} on "
                f"{say.date(first)}, so {say.clock(local % DAY)} does not exist then and it fires at "
                f"{say.clock((fires + zone.offset(fires)) % DAY)} instead; choose another time, or set gap "
                "to skip to leave it out."
            )
            return


def _reading_between(rule: CalendarRule, first: int, last: int) -> int | None:
    """The first wall-clock second from `first` to before `last` on a day and at a time of the rule."""
    if rule.rule.by_set_pos:
        return None
    for day in range(first // DAY, last // DAY + 1):
        index = first_from(rule.times, max(first - day * DAY, 0))
        if index < len(rule.times):
            local = day * DAY + rule.times[index]
            if local < last and rule.days.allows(day):
                return local
    return None

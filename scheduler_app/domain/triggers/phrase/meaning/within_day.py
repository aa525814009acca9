"""Repeats within a day: steps of elapsed time, or by the clock where days or hours are chosen."""

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

from scheduler_app.domain.triggers.kind import Translation
from scheduler_app.domain.triggers.phrase.clauses import (
    Clause,
    MonthDays,
    Months,
    Nth,
    On,
    PastHour,
    Period,
    Repeat,
    Start,
    Until,
    WeekdayAndDay,
    Weekdays,
    Window,
    WorkingHours,
    YearlyDates,
)
from scheduler_app.domain.triggers.phrase.moments import NamedDay, Time
from scheduler_app.domain.triggers.phrase.rules import Plan, text_of
from scheduler_app.domain.triggers.phrase.words import SECONDS_OF

from .bag import Bag
from .clock_times import take_window
from .day_rules import numbers
from .left_out import take_left_out
from .named_days import named_days
from .outcome import Moment, Refused
from .plan import Steps, end_of, finished
from .span import start_instant

_DAY_SECONDS = 86_400
_ALL_DAY = (0, _DAY_SECONDS - 1)
_WORKING = Weekdays((0, 1, 2, 3, 4))
#: More steps within one day would need more rules than a recurrence may have.
_MAX_STEPS = 86_400
_LONGEST_STEP = 1_000 * _DAY_SECONDS


def within_the_day(bag: Bag, steps: Steps, past: PastHour | None, moment: Moment) -> Translation:
    """Repeats by hours, minutes or seconds: in elapsed time, or by the clock on chosen days or hours."""
    if (working := bag.take(WorkingHours)) is not None:
        ways = [[Window(Time(first), Time(last)), *_unless_days(bag)] for first, last in ((9, 17), (8, 18))]
        raise bag.ambiguity(working, ways, "which hours are meant? Say for example “between 9 and 17”")
    left_out = take_left_out(bag, moment)
    window = bag.take(Window)
    start, until = bag.take(Start), bag.take(Until)
    chosen = bag.has(Weekdays, MonthDays, Nth, Months, YearlyDates, Period, WeekdayAndDay, On)
    if bag.has(On):
        _ask_about_the_day(bag, moment)
    by_the_clock = past is not None and steps.short not in (None, Repeat(1, "hour"))
    if by_the_clock and window is not None:
        raise Refused("so many hours apart, the hours between which it is meant do not say which; name them")
    free = not chosen and window is None and left_out is None and not by_the_clock
    if free and steps.long in (None, Repeat(1, "day")):
        return _elapsed(bag, steps.short, past, (start, until), moment)
    if start is not None and (start.time or start.at):
        raise Refused(
            "a time of the beginning does not go together with days or hours; say “between … and …”"
        )
    seconds = _clock_steps(bag, steps.short, past, window)
    if left_out is not None:
        seconds = [second for second in seconds if left_out.keeps(second)]
    long = steps.long
    if chosen and window is not None and _passes_midnight(seconds):
        raise Refused(
            "hours over midnight on chosen days: it is not clear to which day those after midnight belong"
        )
    named = named_days(bag, long, moment, start)
    return finished(bag, named, named.apart(long), seconds, left_out, (start, until), moment)


def _unless_days(bag: Bag) -> list[Clause]:
    return [] if bag.has(Weekdays, MonthDays, Nth, YearlyDates, On) else [_WORKING]


def _ask_about_the_day(bag: Bag, moment: Moment) -> None:
    on = bag.take(On)
    if on is not None and len(on.days) == 1:
        day = on.days[0]
        options: list[list[Clause]] = [[Start(day, Time(0)), Until(day)]]
        if isinstance(day, NamedDay) and not day.which:
            options.append([Weekdays((day.weekday,))])
        raise bag.ambiguity(on, options, "that day once, or every such day?")
    raise Refused("one day does not go together with what repeats")


def _clock_steps(bag: Bag, short: Repeat | None, past: PastHour | None, window: Window | None) -> list[int]:
    """Seconds since midnight at which it happens within the hours that are meant."""
    first, last = _ALL_DAY if window is None else take_window(bag, window)
    if past is not None:
        step = 1 if short is None else short.count
        hours = [hour * 3_600 + minute * 60 for hour in range(0, 24, step) for minute in past.minutes]
        return [second for second in hours if _inside(second, first, last)]
    assert short is not None  # noqa: S101 - one of the two is why we are here
    step = short.count * SECONDS_OF[short.unit]
    if window is None and _DAY_SECONDS % step:
        raise Refused(
            "this interval does not divide a day, so that it is not clear when it begins on each; say "
            "between which hours"
        )
    length = last - first if last > first else last - first + _DAY_SECONDS
    if step > length or length // step > _MAX_STEPS:
        raise Refused("the interval is longer than the hours between which it is meant")
    return [(first + ahead) % _DAY_SECONDS for ahead in range(0, length + 1, step)]


def _passes_midnight(seconds: list[int]) -> bool:
    """Whether the hours go on after midnight."""
    return any(later < earlier for earlier, later in pairwise(seconds))


def _inside(second: int, first: int, last: int) -> bool:
    return first <= second <= last if first < last else second >= first or second <= last


def _elapsed(
    bag: Bag,
    short: Repeat | None,
    past: PastHour | None,
    span: tuple[Start | None, Until | None],
    moment: Moment,
) -> Translation:
    """Steps of elapsed time, which no day and no hour restricts."""
    start, until = span
    if past is not None:
        body, step = f"FREQ=HOURLY;BYMINUTE={numbers(past.minutes)};BYSECOND=0", timedelta()
        interval = 1
    else:
        assert short is not None  # noqa: S101 - one of the two is why we are here
        length = short.count * SECONDS_OF[short.unit]
        if length > _LONGEST_STEP:
            raise Refused("the interval is too long; at most 1000 days", (str(short.count),))
        unit = next(unit for unit in ("hour", "minute", "second") if length % SECONDS_OF[unit] == 0)
        body, interval = f"FREQ={unit.upper()}LY", length // SECONDS_OF[unit]
        step = timedelta(seconds=length)
    first = _first_step(bag, start, step, moment) if past is None or start is not None else None
    clock = None if until is None else until.at
    end, total = end_of(bag, until, clock, first if start is not None else None, moment)
    bag.check_empty()
    exact = first if past is None else None
    plan = Plan(
        (body,),
        interval,
        exact_start=exact,
        first=first if past is not None else None,
        until=end,
        total=total,
    )
    return Translation(recurrence=text_of(plan, moment))


def _first_step(bag: Bag, start: Start | None, step: timedelta, moment: Moment) -> datetime:
    if start is None:
        return moment.at.replace(microsecond=0) + step
    clock = start.at
    if start.day is not None and clock is None and start.time is None:
        now = moment.now
        found = start_instant(bag, start, moment, None)
        if found <= moment.at + timedelta(seconds=1):
            return found.replace(microsecond=0)
        options = [[replace(start, at=Time(0))], [replace(start, at=Time(now.hour, now.minute, now.second))]]
        raise bag.ambiguity(start, options, "at what time of that day does it begin?")
    return start_instant(bag, start, moment, clock).replace(microsecond=0)

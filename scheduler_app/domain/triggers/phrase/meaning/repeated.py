"""What repeats: the days, the times of day or the steps, the beginning and the end, put into one plan."""

from dataclasses import replace
from typing import Final

from scheduler_app.domain.triggers.kind import Translation
from scheduler_app.domain.triggers.phrase.clauses import (
    Clause,
    Except,
    For,
    MonthDays,
    Months,
    Nth,
    Often,
    On,
    OnEach,
    PartOfDay,
    PastHour,
    Period,
    Repeat,
    Start,
    Times,
    Total,
    Until,
    WeekdayAndDay,
    Weekdays,
    Window,
    WithinMonth,
    WorkingHours,
    YearlyDates,
)
from scheduler_app.domain.triggers.phrase.moments import Day, DayNumber, EasterDay, NamedDay, Time
from scheduler_app.domain.triggers.phrase.words import SECONDS_OF

from .bag import Bag
from .calendar_days import fixed, next_easter_days
from .clock_times import take_times
from .left_out import take_left_out
from .named_days import named_days
from .outcome import Moment, Refused, Several
from .plan import Steps, finished
from .within_day import within_the_day

_DAY_SECONDS: Final = 86_400
_EASTERS: Final = 10
_MIDNIGHT: Final = "The phrase names no time of day: it fires at 00:00; say for example “at 9:00”."


def repeats(clauses: tuple[Clause, ...]) -> bool:
    """Whether something in a phrase says that it happens again."""
    return any(
        isinstance(
            clause, Repeat | Often | Weekdays | Period | YearlyDates | PastHour | Window | WorkingHours | Nth
        )
        or (isinstance(clause, MonthDays) and (clause.every or len(clause.days) > 1))
        or (isinstance(clause, WeekdayAndDay) and clause.repeated)
        or (isinstance(clause, PartOfDay) and clause.daily)
        or (isinstance(clause, Months) and len(clause.months) > 1)
        for clause in clauses
    )


def repeated(bag: Bag, moment: Moment) -> Translation:
    """The recurrence of clauses that repeat."""
    _check_total(bag)
    _check_listed(bag)
    _check_movable(bag, moment)
    _check_within(bag)
    steps = _steps(bag)
    past = bag.take(PastHour)
    if past is not None and not past.of_every_hour and steps.short is None:
        raise Refused("minutes past the hour need “every hour”, or an hour")
    if _names_each_step(bag, steps):
        steps.short, steps.long = None, Repeat(1, "day")
    if steps.short is None and past is None:
        return _daily(bag, steps, moment)
    if past is not None and steps.short is not None:
        steps.short = _hours(past, steps.short)
    return within_the_day(bag, steps, past, moment)


def _hours(past: PastHour, step: Repeat) -> Repeat:
    """So many hours; every 3 hours at :20 goes by the clock, from 0:20 on."""
    hours, rest = divmod(step.count * SECONDS_OF[step.unit], 3_600)
    if rest or (hours > 1 and past.of_every_hour and not past.of_the_hour):
        raise Refused("minutes past the hour need “every hour”")
    if 24 % hours:
        raise Refused("so many hours do not divide a day; say at which hours")
    return Repeat(hours, "hour")


def _names_each_step(bag: Bag, steps: Steps) -> bool:
    """Whether times of day say what an interval says already: every 8 hours at 6, 14 and 22."""
    times = [time for one in bag.clauses if isinstance(one, Times) for time in one.times]
    if steps.short is None or steps.long is not None or len(times) < 2 or bag.mentions(Window, WorkingHours):
        return False
    step = steps.short.count * SECONDS_OF[steps.short.unit]
    even = (times[0].seconds + step * index for index in range(len(times)))
    return step * len(times) == _DAY_SECONDS and [time.seconds for time in times] == list(even)


def _check_total(bag: Bag) -> None:
    """Twice, with two times of day: on each of the days, or in all?"""
    total = next((one for one in bag.clauses if isinstance(one, Total)), None)
    times = sum(len(one.times) for one in bag.clauses if isinstance(one, Times))
    if total is not None and total.times == times > 1:
        raise bag.ambiguity(
            total, [[]], f"{times} times on each of the days, or in all? For all of them give an “until”"
        )


def _check_listed(bag: Bag) -> None:
    """Several days without "every": the next ones alone, or every week, month or year from now on?"""
    for one in bag.clauses:
        again: Clause
        days: tuple[Day, ...]
        if isinstance(one, YearlyDates) and not one.every and len(one.dates) > 1:
            again, days, unit = replace(one, every=True), one.dates, "year"
        elif isinstance(one, MonthDays) and not one.every and len(one.days) > 1:
            again, unit = replace(one, every=True), "month"
            days = tuple(DayNumber(day) for day in one.days)
        elif isinstance(one, Weekdays) and one.listed:
            again, unit = replace(one, listed=False), "week"
            days = tuple(NamedDay(day) for day in one.days)
        else:
            continue
        others = tuple(other for other in bag.clauses if other is not one)
        bounded = any(isinstance(other, Start | Until | For | Total | Except) for other in others)
        if not (bounded or repeats(others) or _names_months(others)):
            why = f"these days once, or every {unit}? Say “every”, or the date of each"
            raise bag.ambiguity(one, [[again], [OnEach(days)]], why)


def _check_movable(bag: Bag, moment: Moment) -> None:
    """Easter comes on another date each year, and no rule names it: the next one, or a list of dates."""
    on = next((one for one in bag.clauses if isinstance(one, On)), None)
    day = on.days[0] if on is not None else None
    yearly = Repeat(1, "year")
    if isinstance(day, EasterDay) and yearly in bag.clauses:
        rest = tuple(one for one in bag.clauses if one not in (on, yearly))
        dates = tuple(map(fixed, next_easter_days(day, moment.today, _EASTERS)))
        why = "Easter comes on another date each year, and no rule can name it: give its dates"
        raise Several(why, [(*rest, OnEach(dates)), (*rest, On((day,)))])


def _check_within(bag: Bag) -> None:
    """Between the 10th and the 20th: of every month, or of the coming one?"""
    within = next((one for one in bag.clauses if isinstance(one, WithinMonth)), None)
    if within is None or within.every or bag.mentions(Period, Months):
        return
    if any(isinstance(one, Repeat) and one.unit == "month" for one in bag.clauses):
        return
    dates: list[Clause] = [Start(DayNumber(within.days[0])), Until(DayNumber(within.days[-1]))]
    options: list[list[Clause]] = [[replace(within, every=True)], dates]
    raise bag.ambiguity(within, options, "on these days of every month, or of the coming one alone?")


def _names_months(clauses: tuple[Clause, ...]) -> bool:
    return any(isinstance(one, Months) and len(one.months) > 1 for one in clauses)


def _steps(bag: Bag) -> Steps:
    steps = Steps()
    while (found := bag.take(Repeat)) is not None:
        if found.doubtful:
            plain = replace(found, doubtful=False)
            raise bag.ambiguity(
                found,
                [[plain], [Often(2, found.unit)]],
                f"every {found.count} {found.unit}s, or twice in one?",
            )
        if found.count < 1:
            raise Refused("an interval is at least 1", (str(found.count),))
        which = "short" if found.unit in SECONDS_OF else "long"
        if getattr(steps, which) is not None:
            raise Refused("two intervals are given; give one")
        setattr(steps, which, found)
    _often(bag, steps)
    part = next((clause for clause in bag.clauses if isinstance(clause, PartOfDay) and clause.daily), None)
    if part is not None and steps.long is None:
        steps.long = Repeat(1, "day")
    return steps


def _often(bag: Bag, steps: Steps) -> None:
    """Once a week is every week; twice a day must name two times."""
    asked = bag.take(Often)
    if asked is None:
        return
    named = {
        "day": sum(len(one.times) for one in bag.clauses if isinstance(one, Times)),
        "week": sum(len(one.days) for one in bag.clauses if isinstance(one, Weekdays)),
        "month": sum(
            len(one.days) if isinstance(one, MonthDays) else len(one.positions)
            for one in bag.clauses
            if isinstance(one, MonthDays | Nth)
        ),
        "year": sum(len(one.dates) for one in bag.clauses if isinstance(one, YearlyDates)),
        "hour": sum(len(one.minutes) for one in bag.clauses if isinstance(one, PastHour)),
    }.get(asked.unit, 0)
    if asked.times != named and not (asked.times == 1 and named == 0):
        often = f"{asked.times} times {'an' if asked.unit == 'hour' else 'a'} {asked.unit}"
        if named == 0:
            raise bag.ambiguity(asked, _evenly(asked), f"{often}: say when each of them is")
        why = f"{often} does not fit what is named; name as many"
        raise bag.ambiguity(asked, [[replace(asked, times=named)]], why)
    which = "short" if asked.unit in SECONDS_OF else "long"
    if getattr(steps, which) is not None:
        raise Refused("two intervals are given; give one")
    setattr(steps, which, Repeat(1, asked.unit))


def _evenly(asked: Often) -> list[list[Clause]]:
    """Twice a day may mean every 12 hours; a week and a month have no such even parts but these."""
    seconds = {"minute": 60, "hour": 3_600, "day": 86_400}.get(asked.unit, 0)
    if seconds and seconds % asked.times == 0:
        return [[Repeat(seconds // asked.times, "second")]]
    if asked.times == 2 and asked.unit == "week":
        return [[Weekdays((0, 3))], [Weekdays((1, 4))]]
    return [[MonthDays((1, 15), True)]] if asked.times == 2 and asked.unit == "month" else []


def _daily(bag: Bag, steps: Steps, moment: Moment) -> Translation:
    """Repeats by days; what it does within a day is a list of times."""
    left_out = take_left_out(bag, moment)
    if bag.has(Window, WorkingHours):
        raise Refused("hours “between” need an interval, for example “every 30 minutes”")
    start, until = bag.take(Start), bag.take(Until)
    times = _times_of_days(bag, start, until)
    seconds = [time.seconds for time in times] or [0]
    named = named_days(bag, steps.long, moment, start)
    if left_out is not None and left_out.of_the_day:
        if not any(not left_out.keeps(second) for second in seconds):
            raise Refused("the time that is left out is none of the times that are given")
        seconds = [second for second in seconds if left_out.keeps(second)]
    apart = named.apart(steps.long)
    warnings = () if times else (_MIDNIGHT,)
    return finished(bag, named, apart, seconds, left_out, (start, until), moment, warnings)


def _times_of_days(bag: Bag, start: Start | None, until: Until | None) -> tuple[Time, ...]:
    """The times of day, of which one may stand behind the beginning or the end."""
    tails = [one.at for one in (start, until) if one is not None and one.at is not None]
    if start is not None and start.time is not None and start.day is None:
        tails.append(start.time)
    if until is not None and until.time is not None:
        raise Refused("an end at a time of day needs an interval in hours or minutes, or a date alone")
    if not tails:
        return take_times(bag)
    if len(tails) > 1 or bag.has(Times):
        raise Refused("several times of day are given in different places; give them together, after “at”")
    inner = Bag((Times((tails[0],)), *(clause for clause in bag.clauses if isinstance(clause, PartOfDay))))
    bag.take(PartOfDay)
    if tails[0].bare and tails[0].hour <= 6 and not inner.has(PartOfDay):
        raise Refused("say the time of day in full, for example 05:00 or 5pm")
    return take_times(inner)

"""What repeats: the days, the times of day or the steps, the beginning and the end, put into one plan."""

from dataclasses import replace
from typing import Final

from scheduler_app.domain.triggers.kind import Translation
from scheduler_app.domain.triggers.phrase.clauses import (
    Clause,
    For,
    MonthDays,
    Months,
    Nth,
    Often,
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
    WorkingHours,
    YearlyDates,
)
from scheduler_app.domain.triggers.phrase.moments import Time
from scheduler_app.domain.triggers.phrase.words import SECONDS_OF

from .bag import Bag
from .clock_times import take_times
from .left_out import take_left_out
from .named_days import named_days
from .outcome import Moment, Refused
from .plan import Steps, finished
from .within_day import within_the_day

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
    _check_dates(bag)
    steps = _steps(bag)
    past = bag.take(PastHour)
    if (
        past is not None
        and not past.of_every_hour
        and (steps.short is None or steps.short != Repeat(1, "hour"))
    ):
        raise Refused("minutes past the hour need “every hour”, or an hour")
    if steps.short is None and past is None:
        return _daily(bag, steps, moment)
    if past is not None and steps.short not in (None, Repeat(1, "hour")):
        raise Refused("minutes past the hour need “every hour”")
    return within_the_day(bag, steps, past, moment)


def _check_total(bag: Bag) -> None:
    """Twice, with two times of day: on each of the days, or in all?"""
    total = next((one for one in bag.clauses if isinstance(one, Total)), None)
    times = sum(len(one.times) for one in bag.clauses if isinstance(one, Times))
    if total is not None and total.times == times > 1:
        raise bag.ambiguity(
            total, [[]], f"{times} times on each of the days, or in all? For all of them give an “until”"
        )


def _check_dates(bag: Bag) -> None:
    """1, 8 and 15 December: of this year, or of every year? Days of several months repeat."""
    dated = next((one for one in bag.clauses if isinstance(one, YearlyDates)), None)
    if dated is None or len(dated.dates) == 1 or len({each.month for each in dated.dates}) > 1:
        return
    others = tuple(one for one in bag.clauses if one is not dated)
    if repeats(others) or any(isinstance(one, Start | Until | For | Total) for one in others):
        return
    raise bag.ambiguity(
        dated,
        [[Repeat(1, "year"), dated]],
        "the days of this year alone, or of every year? Make a schedule for each day, or say “every year”",
    )


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
            raise Refused(f"{often}: say when each of them is")
        raise Refused(f"{often} does not fit what is named; name as many")
    which = "short" if asked.unit in SECONDS_OF else "long"
    if getattr(steps, which) is not None:
        raise Refused("two intervals are given; give one")
    setattr(steps, which, Repeat(1, asked.unit))


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

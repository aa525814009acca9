"""What repeats: the days, the times of day or the steps, the beginning and the end, put into one plan.

Repeats within a day are steps of elapsed time, or go by the clock where days or hours are chosen.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final

from scheduler_app.domain.recurrence.timeline import DAY
from scheduler_app.domain.triggers.phrase.clause_bag import (
    AmbiguousPhrase,
    ClauseBag,
    PhraseContext,
    PhraseRefused,
)
from scheduler_app.domain.triggers.phrase.clauses import (
    Clause,
    Day,
    DayNumber,
    EasterDay,
    ExceptClause,
    ForClause,
    MonthDaysClause,
    MonthsClause,
    NamedDay,
    NthClause,
    OftenClause,
    OnClause,
    OnEachClause,
    PartOfDayClause,
    PastHourClause,
    PeriodClause,
    RepeatClause,
    RepeatingClause,
    StartClause,
    Time,
    TimesClause,
    TotalClause,
    UntilClause,
    WeekdayAndDayClause,
    WeekdaysClause,
    WindowClause,
    WithinMonthClause,
    WorkingHoursClause,
    YearlyDatesClause,
)
from scheduler_app.domain.triggers.phrase.dates import (
    is_fixed_day,
    next_easter_days,
    start_instant,
    take_times,
    take_window,
)
from scheduler_app.domain.triggers.phrase.plan import Steps, end_of, finished_plan, is_within, take_left_out
from scheduler_app.domain.triggers.phrase.repeated_days import named_days
from scheduler_app.domain.triggers.phrase.rules import Plan, numbers, text_of
from scheduler_app.domain.triggers.phrase.words import SECONDS_OF
from scheduler_app.domain.triggers.translation import Translation

_ALL_DAY = (0, DAY - 1)
_WORKING = WeekdaysClause((0, 1, 2, 3, 4))
_LONGEST_STEP = 1_000 * DAY


def within_the_day(
    bag: ClauseBag, steps: Steps, past: PastHourClause | None, moment: PhraseContext
) -> Translation:
    """Repeats by hours, minutes or seconds: in elapsed time, or by the clock on chosen days or hours."""
    if (working := bag.take(WorkingHoursClause)) is not None:
        has_days = bag.has(WeekdaysClause, MonthDaysClause, NthClause, YearlyDatesClause, OnClause)
        days = [] if has_days else [_WORKING]
        ways = [[WindowClause(Time(first), Time(last)), *days] for first, last in ((9, 17), (8, 18))]
        raise bag.ambiguity(working, ways, "which hours are meant? Say for example “between 9 and 17”")
    left_out = take_left_out(bag, moment)
    window = bag.take(WindowClause)
    start, until = bag.take(StartClause), bag.take(UntilClause)
    chosen = bag.has(
        WeekdaysClause,
        MonthDaysClause,
        NthClause,
        MonthsClause,
        YearlyDatesClause,
        PeriodClause,
        WeekdayAndDayClause,
        OnClause,
    )
    if bag.has(OnClause):
        _ask_about_the_day(bag, moment)
    by_the_clock = past is not None and steps.short not in (None, RepeatClause(1, "hour"))
    if by_the_clock and window is not None:
        raise PhraseRefused(
            "so many hours apart, the hours between which it is meant do not say which; name them"
        )
    free = not (chosen or window is not None or bag.mentions(ExceptClause) or by_the_clock)
    if free and steps.long in (None, RepeatClause(1, "day")):
        return _elapsed(bag, steps.short, past, (start, until), moment)
    if start is not None and (start.time or start.at):
        raise PhraseRefused(
            "a time of the beginning does not go together with days or hours; say “between … and …”"
        )
    every = _clock_steps(bag, steps.short, past, window)
    seconds = [second for second in every if left_out.keeps(second)]
    if chosen and window is not None and any(later < earlier for earlier, later in pairwise(seconds)):
        raise PhraseRefused(
            "hours over midnight on chosen days: it is not clear to which day those after midnight belong"
        )
    named = named_days(bag, steps.long, moment, start)
    return finished_plan(bag, named, steps.long, seconds, left_out, (start, until), moment)


def _ask_about_the_day(bag: ClauseBag, moment: PhraseContext) -> None:
    on = bag.take(OnClause)
    if on is not None and len(on.days) == 1:
        day = on.days[0]
        options: list[list[Clause]] = [[StartClause(day, Time(0)), UntilClause(day)]]
        if isinstance(day, NamedDay) and not day.which:
            options.append([WeekdaysClause((day.weekday,))])
        raise bag.ambiguity(on, options, "that day once, or every such day?")
    raise PhraseRefused("one day does not go together with what repeats")


def _clock_steps(
    bag: ClauseBag, short: RepeatClause | None, past: PastHourClause | None, window: WindowClause | None
) -> list[int]:
    """Seconds since midnight at which it happens within the hours that are meant."""
    first, last = _ALL_DAY if window is None else take_window(bag, window)
    if past is not None:
        step = 1 if short is None else short.count
        hours = [hour * 3_600 + minute * 60 for hour in range(0, 24, step) for minute in past.minutes]
        return [second for second in hours if is_within(second, first, last)]
    assert short is not None  # noqa: S101 - one of the two is why we are here
    step = short.count * SECONDS_OF[short.unit]
    if window is None and DAY % step:
        raise PhraseRefused(
            "this interval does not divide a day, so that it is not clear when it begins on each; say "
            "between which hours"
        )
    length = last - first if last > first else last - first + DAY
    if step > length:
        raise PhraseRefused("the interval is longer than the hours between which it is meant")
    return [(first + ahead) % DAY for ahead in range(0, length + 1, step)]


def _elapsed(
    bag: ClauseBag,
    short: RepeatClause | None,
    past: PastHourClause | None,
    span: tuple[StartClause | None, UntilClause | None],
    moment: PhraseContext,
) -> Translation:
    """Steps of elapsed time, which no day and no hour restricts."""
    start, until = span
    if past is not None:
        body, interval, step = f"FREQ=HOURLY;BYMINUTE={numbers(past.minutes)};BYSECOND=0", 1, timedelta()
    else:
        assert short is not None  # noqa: S101 - one of the two is why we are here
        length = short.count * SECONDS_OF[short.unit]
        if length > _LONGEST_STEP:
            raise PhraseRefused("the interval is too long; at most 1000 days", (str(short.count),))
        unit = next(unit for unit in ("hour", "minute", "second") if length % SECONDS_OF[unit] == 0)
        body, interval = f"FREQ={unit.upper()}LY", length // SECONDS_OF[unit]
        step = timedelta(seconds=length)
    first = _first_step(bag, start, step, moment) if past is None or start is not None else None
    clock = None if until is None else until.at
    end, total = end_of(bag, until, clock, first if start is not None else None, moment)
    bag.check_empty()
    exact, not_before = (first, None) if past is None else (None, first)
    plan = Plan((body,), interval, exact_start=exact, first=not_before, until=end, total=total)
    return Translation(recurrence=text_of(plan, moment))


def _first_step(
    bag: ClauseBag, start: StartClause | None, step: timedelta, moment: PhraseContext
) -> datetime:
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


_EASTERS: Final = 10
_MIDNIGHT: Final = "The phrase names no time of day: it fires at 00:00; say for example “at 9:00”."


def has_repetition(clauses: tuple[Clause, ...]) -> bool:
    """Whether something in a phrase says that it happens again."""
    return any(
        isinstance(clause, RepeatingClause)
        or (isinstance(clause, MonthDaysClause) and (clause.every or len(clause.days) > 1))
        or (isinstance(clause, WeekdayAndDayClause) and clause.repeated)
        or (isinstance(clause, PartOfDayClause) and clause.daily)
        or (isinstance(clause, MonthsClause) and len(clause.months) > 1)
        for clause in clauses
    )


def repeated_times(bag: ClauseBag, moment: PhraseContext) -> Translation:
    """The recurrence of clauses that repeat."""
    _check_total(bag)
    _check_listed(bag)
    _check_movable(bag, moment)
    _check_within(bag)
    steps = _steps(bag)
    past = bag.take(PastHourClause)
    if past is not None and not past.of_every_hour and steps.short is None:
        raise PhraseRefused("minutes past the hour need “every hour”, or an hour")
    if _names_each_step(bag, steps):
        steps.short, steps.long = None, RepeatClause(1, "day")
    if steps.short is None and past is None:
        return _daily(bag, steps, moment)
    if past is not None and steps.short is not None:
        steps.short = _hours(past, steps.short)
    return within_the_day(bag, steps, past, moment)


def _hours(past: PastHourClause, step: RepeatClause) -> RepeatClause:
    """A step of whole hours; every 3 hours at :20 goes by the clock, from 0:20 on."""
    hours, rest = divmod(step.count * SECONDS_OF[step.unit], 3_600)
    if rest or (hours > 1 and past.of_every_hour and not past.of_the_hour):
        raise PhraseRefused("minutes past the hour need “every hour”")
    if 24 % hours:
        raise PhraseRefused("so many hours do not divide a day; say at which hours")
    return RepeatClause(hours, "hour")


def _names_each_step(bag: ClauseBag, steps: Steps) -> bool:
    """Whether times of day say what an interval says already: every 8 hours at 6, 14 and 22."""
    times = [time for one in bag.all(TimesClause) for time in one.times]
    windowed = bag.mentions(WindowClause, WorkingHoursClause)
    if steps.short is None or steps.long is not None or len(times) < 2 or windowed:
        return False
    step = steps.short.count * SECONDS_OF[steps.short.unit]
    even = (times[0].seconds + step * index for index in range(len(times)))
    return step * len(times) == DAY and [time.seconds for time in times] == list(even)


def _check_total(bag: ClauseBag) -> None:
    """Twice, with two times of day: on each of the days, or in all?"""
    total = bag.find(TotalClause)
    times = sum(len(one.times) for one in bag.all(TimesClause))
    if total is not None and total.times == times > 1:
        why = f"{times} times on each of the days, or in all? For all of them give an “until”"
        raise bag.ambiguity(total, [[]], why)


def _check_listed(bag: ClauseBag) -> None:
    """Several days without "every": the next ones alone, or every week, month or year from now on?"""
    for one in bag.clauses:
        again: Clause
        days: tuple[Day, ...]
        if isinstance(one, YearlyDatesClause) and not one.every and len(one.dates) > 1:
            again, days, unit = replace(one, every=True), one.dates, "year"
        elif isinstance(one, MonthDaysClause) and not one.every and len(one.days) > 1:
            again, unit = replace(one, every=True), "month"
            days = tuple(DayNumber(day) for day in one.days)
        elif isinstance(one, WeekdaysClause) and one.listed:
            again, unit = replace(one, listed=False), "week"
            days = tuple(NamedDay(day) for day in one.days)
        else:
            continue
        others = tuple(other for other in bag.clauses if other is not one)
        bounded = bag.mentions(StartClause, UntilClause, ForClause, TotalClause, ExceptClause)
        if not (bounded or has_repetition(others)):
            why = f"these days once, or every {unit}? Say “every”, or the date of each"
            raise bag.ambiguity(one, [[again], [OnEachClause(days)]], why)


def _check_movable(bag: ClauseBag, moment: PhraseContext) -> None:
    """Easter comes on another date each year, and no rule names it: the next one, or a list of dates."""
    on = bag.find(OnClause)
    day = on.days[0] if on is not None else None
    yearly = RepeatClause(1, "year")
    if isinstance(day, EasterDay) and yearly in bag.clauses:
        rest = tuple(one for one in bag.clauses if one not in (on, yearly))
        dates = tuple(map(is_fixed_day, next_easter_days(day, moment.today, _EASTERS)))
        why = "Easter comes on another date each year, and no rule can name it: give its dates"
        raise AmbiguousPhrase(why, [(*rest, OnEachClause(dates)), (*rest, OnClause((day,)))])


def _check_within(bag: ClauseBag) -> None:
    """Between the 10th and the 20th: of every month, or of the coming one?"""
    within = bag.find(WithinMonthClause)
    monthly = bag.mentions(PeriodClause, MonthsClause) or any(
        one.unit == "month" for one in bag.all(RepeatClause)
    )
    if within is None or within.every or monthly:
        return
    dates: list[Clause] = [StartClause(DayNumber(within.days[0])), UntilClause(DayNumber(within.days[-1]))]
    options: list[list[Clause]] = [[replace(within, every=True)], dates]
    raise bag.ambiguity(within, options, "on these days of every month, or of the coming one alone?")


def _steps(bag: ClauseBag) -> Steps:
    steps = Steps()
    while (found := bag.take(RepeatClause)) is not None:
        if found.doubtful:
            plain = replace(found, doubtful=False)
            why = f"every {found.count} {found.unit}s, or twice in one?"
            raise bag.ambiguity(found, [[plain], [OftenClause(2, found.unit)]], why)
        if found.count < 1:
            raise PhraseRefused("an interval is at least 1", (str(found.count),))
        steps.add(found)
    _often(bag, steps)
    if steps.long is None and any(part.daily for part in bag.all(PartOfDayClause)):
        steps.long = RepeatClause(1, "day")
    return steps


def _often(bag: ClauseBag, steps: Steps) -> None:
    """Once a week is every week; twice a day must name two times."""
    asked = bag.take(OftenClause)
    if asked is None:
        return
    places: dict[str, list[object]] = {
        "day": [time for one in bag.all(TimesClause) for time in one.times],
        "week": [day for one in bag.all(WeekdaysClause) for day in one.days],
        "month": [
            *(day for one in bag.all(MonthDaysClause) for day in one.days),
            *(position for one in bag.all(NthClause) for position in one.positions),
        ],
        "year": [date for one in bag.all(YearlyDatesClause) for date in one.dates],
        "hour": [minute for one in bag.all(PastHourClause) for minute in one.minutes],
    }
    named = len(places.get(asked.unit, ()))
    if asked.times != named and not (asked.times == 1 and named == 0):
        often = f"{asked.times} times {'an' if asked.unit == 'hour' else 'a'} {asked.unit}"
        if named == 0:
            raise bag.ambiguity(asked, _evenly(asked), f"{often}: say when each of them is")
        why = f"{often} does not fit what is named; name as many"
        raise bag.ambiguity(asked, [[replace(asked, times=named)]], why)
    steps.add(RepeatClause(1, asked.unit))


def _evenly(asked: OftenClause) -> list[list[Clause]]:
    """Twice a day may mean every 12 hours; a week and a month have no such even parts but these."""
    seconds = {"minute": 60, "hour": 3_600, "day": 86_400}.get(asked.unit, 0)
    if seconds and seconds % asked.times == 0:
        return [[RepeatClause(seconds // asked.times, "second")]]
    if asked.times == 2 and asked.unit == "week":
        return [[WeekdaysClause((0, 3))], [WeekdaysClause((1, 4))]]
    return [[MonthDaysClause((1, 15), True)]] if asked.times == 2 and asked.unit == "month" else []


def _daily(bag: ClauseBag, steps: Steps, moment: PhraseContext) -> Translation:
    """Repeats by days; what it does within a day is a list of times."""
    left_out = take_left_out(bag, moment)
    if bag.has(WindowClause, WorkingHoursClause):
        raise PhraseRefused("hours “between” need an interval, for example “every 30 minutes”")
    start, until = bag.take(StartClause), bag.take(UntilClause)
    times = _times_of_days(bag, start, until)
    seconds = [time.seconds for time in times] or [0]
    named = named_days(bag, steps.long, moment, start)
    if left_out.times or left_out.windows:
        kept = [second for second in seconds if left_out.keeps(second)]
        if kept == seconds:
            raise PhraseRefused("the time that is left out is none of the times that are given")
        seconds = kept
    warnings = () if times else (_MIDNIGHT,)
    return finished_plan(bag, named, steps.long, seconds, left_out, (start, until), moment, warnings)


def _times_of_days(bag: ClauseBag, start: StartClause | None, until: UntilClause | None) -> tuple[Time, ...]:
    """The times of day, of which one may stand behind the beginning or the end."""
    tails = [one.at for one in (start, until) if one is not None and one.at is not None]
    if start is not None and start.time is not None and start.day is None:
        tails.append(start.time)
    if until is not None and until.time is not None:
        raise PhraseRefused("an end at a time of day needs an interval in hours or minutes, or a date alone")
    if not tails:
        return take_times(bag)
    if len(tails) > 1 or bag.has(TimesClause):
        raise PhraseRefused(
            "several times of day are given in different places; give them together, after “at”"
        )
    inner = ClauseBag((TimesClause((tails[0],)), *bag.all(PartOfDayClause)))
    bag.take(PartOfDayClause)
    if tails[0].bare and tails[0].hour <= 6 and not inner.has(PartOfDayClause):
        raise PhraseRefused("say the time of day in full, for example 05:00 or 5pm")
    return take_times(inner)

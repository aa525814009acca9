"""What repeats: the days, the times of day or the steps, the beginning and the end, put into one plan."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from ..clauses import (
    DAY,
    For,
    MonthDays,
    Months,
    NamedDay,
    Nth,
    Often,
    On,
    PartOfDay,
    PastHour,
    Period,
    Repeat,
    Roll,
    Start,
    Time,
    Times,
    Total,
    Until,
    WeekdayAndDay,
    Weekdays,
    Window,
    WorkingHours,
    YearlyDates,
    Clause,
    Date,
)
from ..rules import DayRule, Plan, bodies, text_of
from ..words import SECONDS_OF
from . import day_rules
from .bag import Bag
from .clock_times import take_times, take_window
from .day_rules import NamedDays, by_month, numbers
from .left_out import LeftOut, take_left_out, weekday_rule
from .outcome import Meaning, Moment, Refused
from .span import end_after, start_instant, until_instant

_DAY_SECONDS = 86_400
_ALL_DAY = (0, _DAY_SECONDS - 1)
_WORKING = Weekdays((0, 1, 2, 3, 4))


def repeats(clauses: tuple[Clause, ...]) -> bool:
    """Whether something in a phrase says that it happens again."""
    return any(
        isinstance(clause, Repeat | Often | Weekdays | Period | YearlyDates | PastHour | Window | WorkingHours | Nth)
        or (isinstance(clause, MonthDays) and (clause.every or len(clause.days) > 1))
        or (isinstance(clause, WeekdayAndDay) and clause.repeated)
        or (isinstance(clause, PartOfDay) and clause.daily)
        or (isinstance(clause, Months) and len(clause.months) > 1)
        for clause in clauses
    )


@dataclass
class Steps:
    """The units in which a phrase repeats: shorter than a day, and from a day on."""

    short: Repeat | None = None
    long: Repeat | None = None


def repeated(bag: Bag, moment: Moment) -> Meaning:
    """The recurrence of clauses that repeat."""
    steps = _steps(bag)
    past = bag.take(PastHour)
    if past is not None and not past.of_every_hour and (steps.short is None or steps.short != Repeat(1, "hour")):
        raise Refused("minutes past the hour need “every hour”, or an hour")
    if steps.short is None and past is None:
        return _daily(bag, steps, moment)
    if past is not None and steps.short not in (None, Repeat(1, "hour")):
        raise Refused("minutes past the hour need “every hour”")
    return _within_the_day(bag, steps, past, moment)


def _steps(bag: Bag) -> Steps:
    steps = Steps()
    while (found := bag.take(Repeat)) is not None:
        if found.doubtful:
            plain = replace(found, doubtful=False)
            bag.split(found, [[plain], [Often(2, found.unit)]], f"every {found.count} {found.unit}s, or twice in one?")
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
        if named == 0:
            raise Refused(f"{asked.times} times a {asked.unit}: say when each of them is")
        raise Refused(f"{asked.times} times a {asked.unit} does not fit what is named; name as many")
    which = "short" if asked.unit in SECONDS_OF else "long"
    if getattr(steps, which) is not None:
        raise Refused("two intervals are given; give one")
    setattr(steps, which, Repeat(1, asked.unit))


def _daily(bag: Bag, steps: Steps, moment: Moment) -> Meaning:
    """Repeats by days; what it does within a day is a list of times."""
    left_out = take_left_out(bag, moment)
    if bag.has(Window, WorkingHours):
        raise Refused("hours “between” need an interval, for example “every 30 minutes”")
    start, until = bag.take(Start), bag.take(Until)
    times = _times_of_days(bag, start, until)
    seconds = [time.seconds for time in times] or [0]
    named = _named_days(bag, steps.long, moment, start)
    if left_out is not None and left_out.of_the_day:
        if not any(not left_out.keeps(second) for second in seconds):
            raise Refused("the time that is left out is none of the times that are given")
        seconds = [second for second in seconds if left_out.keeps(second)]
    return _finished(bag, named, _interval(bag, steps.long, named), seconds, left_out, (start, until), moment)


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


def _interval(bag: Bag, step: Repeat | None, named: NamedDays) -> int:
    return named.interval if step is None else max(named.interval, step.count)


def _within_the_day(bag: Bag, steps: Steps, past: PastHour | None, moment: Moment) -> Meaning:
    """Repeats by hours, minutes or seconds: in elapsed time, or by the clock where days or hours are chosen."""
    if (working := bag.take(WorkingHours)) is not None:
        ways = [[Window(Time(first), Time(last)), *_unless_days(bag)] for first, last in ((9, 17), (8, 18))]
        bag.split(working, ways, "which hours are meant? Say for example “between 9 and 17”")
    left_out = take_left_out(bag, moment)
    window = bag.take(Window)
    start, until = bag.take(Start), bag.take(Until)
    chosen = bag.has(Weekdays, MonthDays, Nth, Months, YearlyDates, Period, WeekdayAndDay, On)
    if bag.has(On):
        _ask_about_the_day(bag, moment)
    if not chosen and window is None and left_out is None and steps.long in (None, Repeat(1, "day")):
        return _elapsed(bag, steps.short, past, (start, until), moment)
    if start is not None and (start.time or start.at):
        raise Refused("a time of the beginning does not go together with days or hours; say “between … and …”")
    seconds = _clock_steps(bag, steps.short, past, window)
    if left_out is not None:
        seconds = [second for second in seconds if left_out.keeps(second)]
    long = steps.long
    named = _named_days(bag, long, moment, start)
    return _finished(bag, named, _interval(bag, long, named), seconds, left_out, (start, until), moment)


def _unless_days(bag: Bag) -> list[Clause]:
    return [] if bag.has(Weekdays, MonthDays, Nth, YearlyDates, On) else [_WORKING]


def _ask_about_the_day(bag: Bag, moment: Moment) -> None:
    on = bag.take(On)
    if on is not None and len(on.days) == 1:
        day = on.days[0]
        options: list[list[Clause]] = [[Start(day, Time(0)), Until(day)]]
        if isinstance(day, NamedDay) and not day.which:
            options.append([Weekdays((day.weekday,))])
        bag.split(on, options, "that day once, or every such day?")
    raise Refused("one day does not go together with what repeats")


def _clock_steps(bag: Bag, short: Repeat | None, past: PastHour | None, window: Window | None) -> list[int]:
    """Seconds since midnight at which it happens within the hours that are meant."""
    first, last = _ALL_DAY if window is None else take_window(bag, window)
    if past is not None:
        hours = [hour * 3_600 + minute * 60 for hour in range(24) for minute in past.minutes]
        return [second for second in hours if _inside(second, first, last)]
    assert short is not None  # noqa: S101 - one of the two is why we are here
    step = short.count * SECONDS_OF[short.unit]
    if window is None and _DAY_SECONDS % step:
        raise Refused(
            "this interval does not divide a day, so that it is not clear when it begins on each; say between "
            "which hours"
        )
    length = last - first if last > first else last - first + _DAY_SECONDS
    if step > length or length // step > 1_440 * 60:
        raise Refused("the interval is longer than the hours between which it is meant")
    return [(first + ahead) % _DAY_SECONDS for ahead in range(0, length + 1, step)]


def _inside(second: int, first: int, last: int) -> bool:
    return first <= second <= last if first < last else second >= first or second <= last


def _elapsed(
    bag: Bag, short: Repeat | None, past: PastHour | None, span: tuple[Start | None, Until | None], moment: Moment
) -> Meaning:
    """Steps of elapsed time, which no day and no hour restricts."""
    start, until = span
    if past is not None:
        body, step = f"FREQ=HOURLY;BYMINUTE={numbers(past.minutes)};BYSECOND=0", timedelta()
        interval = 1
    else:
        assert short is not None  # noqa: S101 - one of the two is why we are here
        body, interval = f"FREQ={short.unit.upper()}LY", short.count
        if interval > 10**8:
            raise Refused("the interval is too long", (str(interval),))
        step = timedelta(seconds=interval * SECONDS_OF[short.unit])
    first = _first_step(bag, start, step, moment) if past is None or start is not None else None
    clock = None if until is None else until.at
    end, total = _end(bag, until, clock, first if start is not None else None, moment)
    bag.check_empty()
    exact = first if past is None else None
    plan = Plan((body,), interval, exact_start=exact, first=first if past is not None else None, until=end, total=total)
    return Meaning(recurrence=text_of(plan, moment))


def _first_step(bag: Bag, start: Start | None, step: timedelta, moment: Moment) -> datetime:
    if start is None:
        return moment.at.replace(microsecond=0) + step
    clock = start.at
    if start.day is not None and clock is None and start.time is None:
        now = moment.at
        found = start_instant(bag, start, moment, None)
        if found <= moment.at + timedelta(seconds=1):
            return found.replace(microsecond=0)
        options = [[replace(start, at=Time(0))], [replace(start, at=Time(now.hour, now.minute, now.second))]]
        bag.split(start, options, "at what time of that day does it begin?")
    return start_instant(bag, start, moment, clock).replace(microsecond=0)


def _end(
    bag: Bag, until: Until | None, clock: Time | None, start: datetime | None, moment: Moment
) -> tuple[datetime | None, int | None]:
    length, total = bag.take(For), bag.take(Total)
    if sum(one is not None for one in (until, length, total)) > 1:
        raise Refused("two ends are given; give one")
    if total is not None and not 1 <= total.times <= 100_000:
        raise Refused("a number of times is from 1 to 100000", (str(total.times),))
    if until is not None:
        return until_instant(bag, until, moment, clock), None
    if length is not None:
        return end_after(length, start, moment), None
    return None, None if total is None else total.times


def _named_days(bag: Bag, step: Repeat | None, moment: Moment, start: Start | None) -> NamedDays:
    """The one way in which a phrase names its days."""
    unit = "day" if step is None else step.unit
    months_asked, period = bag.take(Months), bag.take(Period)
    months = () if months_asked is None else months_asked.months
    weekdays, numbered, nth = bag.take(Weekdays), bag.take(MonthDays), bag.take(Nth)
    thirteenth, dated, on = bag.take(WeekdayAndDay), bag.take(YearlyDates), bag.take(On)
    roll = bag.take(Roll)
    if sum(one is not None for one in (weekdays, numbered, nth, thirteenth, dated, on)) > 1:
        raise Refused("the days are named in two ways; name them in one, or make two schedules")
    if on is not None:
        weekdays, dated = _single_day(on, step)
    if roll is not None and numbered is None and nth is None:
        raise Refused("“or the business day …” needs a day of the month before it")
    if period is not None and numbered is None and nth is None:
        raise Refused(f"say on which day of the {period.unit}")
    if weekdays is not None:
        return _weekdays(bag, weekdays, step, months, moment)
    scope, interval = _scope(bag, step, period, months)
    if numbered is not None:
        within = day_rules.quarter_months(1) if scope == "quarter" else months
        if scope == "year" and not months:
            raise Refused("say of which month the day is")
        if scope == "month" or months or scope == "quarter":
            found = day_rules.monthly(numbered.days, within, roll, moment)
            return _apart(found, interval, scope if not months else "month")
    if nth is not None:
        return _ordinals(bag, nth, scope, interval, months, roll, moment, step)
    if thirteenth is not None:
        return day_rules.friday_the_13th(thirteenth, months)
    if dated is not None:
        if months or unit not in ("day", "year") or (unit == "day" and step is not None and step.count > 1):
            raise Refused("dates do not go together with other units or months")
        return _apart(day_rules.yearly(dated, "YEARLY"), 1 if step is None else step.count, "year")
    return _only_units(bag, step, months, moment, start)


def _single_day(on: On, step: Repeat | None) -> tuple[Weekdays | None, YearlyDates | None]:
    """ "every week on friday", "every year on december 25": the day repeats because its unit does."""
    day = on.days[0]
    if len(on.days) == 1 and step is not None:
        if step.unit == "week" and isinstance(day, NamedDay) and not day.which:
            return Weekdays((day.weekday,)), None
        if step.unit == "year" and isinstance(day, Date) and day.year is None and day.weekday is None:
            return None, YearlyDates((day,))
    raise Refused("one day does not go together with what repeats; say “every”, or leave the interval out")


def _weekdays(
    bag: Bag, weekdays: Weekdays, step: Repeat | None, months: tuple[int, ...], moment: Moment
) -> NamedDays:
    if step is not None and (step.unit not in ("week", "day") or (step.unit == "day" and step.count > 1)):
        raise Refused("days of the week go together with weeks only")
    if weekdays.step > 1:
        if step is not None and step.count > 1:
            raise Refused("two intervals are given; give one")
        if len(weekdays.days) == 5:
            ways: list[list[Clause]] = [[Weekdays((0, 2, 4))], [Weekdays(weekdays.days), Repeat(2, "week")]]
            bag.split(weekdays, ways, "Monday, Wednesday, Friday, or all weekdays of every other week?")
    found = day_rules.weekly(weekdays, months, moment)
    return _apart(found, weekdays.step, "week")


def _scope(
    bag: Bag, step: Repeat | None, period: Period | None, months: tuple[int, ...]
) -> tuple[str, int]:
    """The unit in which ordinals and numbers count, and how many of them lie between two."""
    if period is not None and step is not None:
        if step.unit != period.unit or (step.count > 1 and period.step > 1):
            raise Refused("two units are named; name one")
        return step.unit, max(step.count, period.step)
    if period is not None:
        return period.unit, period.step
    if step is not None and step.unit in ("month", "quarter", "year"):
        return step.unit, step.count
    if step is not None and step.unit in ("day", "week") and (months or step.count > 1 or step.unit == "week"):
        return step.unit, step.count
    return "month", 1


def _ordinals(
    bag: Bag,
    nth: Nth,
    scope: str,
    interval: int,
    months: tuple[int, ...],
    roll: Roll | None,
    moment: Moment,
    step: Repeat | None,
) -> NamedDays:
    if scope not in ("month", "quarter", "year"):
        raise Refused("the ordinal needs a month, a quarter or a year")
    if nth.joint:
        bag.split(nth, [[replace(nth, joint=False)]], "the ordinal may belong to both days or to the first; repeat it")
    unscoped = not months and step is None and not bag.mentions(Period)
    number, what = nth.positions[0]
    if unscoped and nth.every and len(nth.positions) == 1 and number > 1 and isinstance(what, int):
        ways: list[list[Clause]] = [
            [replace(nth, every=False), Period("month")],
            [Weekdays((what,)), Repeat(number, "week")],
        ]
        bag.split(nth, ways, "of the month, or so many weeks apart?")
    if unscoped and not (nth.every and all(abs(one) == 1 and isinstance(day, int) for one, day in nth.positions)):
        bag.split(nth, [[nth, Period("month")]], "say of which month, quarter or year")
    if roll is not None:
        if nth.positions not in (((1, DAY),), ((-1, DAY),)) or scope != "month":
            raise Refused("“or the business day …” needs a day of the month before it")
        return _apart(day_rules.monthly((number,), months, roll, moment), interval, scope)
    return _apart(day_rules.ordinal(nth, scope, months, moment), interval, "month" if months else scope)


def _apart(found: NamedDays, count: int, unit: str) -> NamedDays:
    """Day rules so many units apart."""
    if count == 1:
        return found
    freqs = {"week": "WEEKLY", "month": "MONTHLY", "year": "YEARLY"}
    freq = freqs.get(unit)
    if freq is None or any(rule.freq != freq for rule in found.rules):
        raise Refused("so many of these units cannot be skipped; name the months")
    if unit == "month" and any(name == "BYMONTH" for rule in found.rules for name, _ in rule.parts):
        raise Refused("several months apart and named months do not go together")
    return NamedDays(found.rules, found.on_holiday, count)


def _only_units(
    bag: Bag, step: Repeat | None, months: tuple[int, ...], moment: Moment, start: Start | None
) -> NamedDays:
    """Every so many days; longer units need a day, unless the beginning gives it."""
    if step is None or step.unit == "day":
        if step is None and not months and not bag.mentions(Window, PastHour, Repeat, Times):
            raise Refused("say how often")
        count = 1 if step is None else step.count
        if months and count > 1:
            raise Refused("several days apart and named months do not go together")
        return NamedDays((DayRule("DAILY", by_month(months)),), None, count)
    if months and step.unit != "year":
        raise Refused("say on which day")
    if start is not None and start.day is not None and not months and step.unit != "quarter":
        freq = {"week": "WEEKLY", "month": "MONTHLY", "year": "YEARLY"}[step.unit]
        first = start_instant(bag, start, moment, None).astimezone(moment.zone).date()
        if first.day > 28 and step.unit != "week":
            raise Refused("not every month has that day; say which day of the month is meant")
        return NamedDays((DayRule(freq, _parts_of(step.unit, first)),), None, step.count)
    today = moment.today
    ways: dict[str, list[list[Clause]]] = {
        "week": [[Weekdays((0,))], [Weekdays((today.weekday(),))], [Weekdays(((today.weekday() + 1) % 7,))]],
        "month": [[MonthDays((1,), True)], [MonthDays((today.day,), True)]],
        "quarter": [[MonthDays((1,), True)], [Nth(((-1, DAY),))]],
        "year": [[YearlyDates((Date(1, 1),))], [YearlyDates((Date(today.month, today.day),))]],
    }
    bag.ask_more(ways[step.unit], f"say on which day of the {step.unit}")


def _parts_of(unit: str, first: "datetime | object") -> tuple[tuple[str, str], ...]:
    from datetime import date

    assert isinstance(first, date)  # noqa: S101
    if unit == "week":
        return (("BYDAY", day_rules.days_of((first.weekday(),))),)
    if unit == "month":
        return (("BYMONTHDAY", str(first.day)),)
    return (("BYMONTH", str(first.month)), ("BYMONTHDAY", str(first.day)))


def _finished(
    bag: Bag,
    named: NamedDays,
    interval: int,
    seconds: list[int],
    left_out: LeftOut | None,
    span: tuple[Start | None, Until | None],
    moment: Moment,
) -> Meaning:
    start, until = span
    first = None if start is None or start.day is None else start_instant(bag, start, moment, None)
    end, total = _end(bag, until, None, first, moment)
    bag.check_empty()
    if not seconds:
        raise Refused("everything is left out; nothing remains")
    rules = named.rules
    excluded: list[DayRule] = []
    if left_out is not None:
        rules, excluded = _without(rules, interval, left_out)
    plan = Plan(
        bodies(rules, seconds),
        interval,
        bodies(excluded, seconds) if excluded else (),
        tuple(sorted(left_out.days)) if left_out is not None else (),
        first=first,
        until=end,
        total=total,
    )
    return Meaning(recurrence=text_of(plan, moment), on_holiday=named.on_holiday)


def _without(
    rules: tuple[DayRule, ...], interval: int, left_out: LeftOut
) -> tuple[tuple[DayRule, ...], list[DayRule]]:
    """The rules without what is left out, and what EXRULE must take away."""
    excluded = list(left_out.rules)
    if left_out.months:
        rules = tuple(_without_months(rule, left_out.months) for rule in rules)
    if left_out.weekdays:
        listed = all(rule.freq in ("DAILY", "WEEKLY") for rule in rules) and (interval == 1 or rules[0].freq == "WEEKLY")
        if listed:
            rules = tuple(_without_weekdays(rule, left_out.weekdays) for rule in rules)
        else:
            excluded.append(weekday_rule(left_out.weekdays))
    return rules, excluded


def _without_months(rule: DayRule, months: set[int]) -> DayRule:
    parts = dict(rule.parts)
    known = {int(month) for month in parts.pop("BYMONTH", "1,2,3,4,5,6,7,8,9,10,11,12").split(",")}
    if not known & months:
        raise Refused("the month that is left out is none of those that are named")
    if known <= months:
        raise Refused("every month is left out; nothing remains")
    return DayRule(rule.freq, (*by_month(tuple(known - months)), *parts.items()))


def _without_weekdays(rule: DayRule, days: set[int]) -> DayRule:
    parts = dict(rule.parts)
    codes = {day_rules.days_of((day,)) for day in days}
    known = parts.pop("BYDAY", "MO,TU,WE,TH,FR,SA,SU").split(",")
    if not codes & set(known):
        raise Refused("the day that is left out is none of those that are named")
    kept = [code for code in known if code not in codes]
    if not kept:
        raise Refused("every day is left out; nothing remains")
    return DayRule("WEEKLY", (*parts.items(), ("BYDAY", ",".join(kept))))

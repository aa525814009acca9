"""On which days a phrase repeats: the one way in which it names them, and how many units they are apart."""

from dataclasses import replace
from datetime import date

from scheduler_app.domain.triggers.phrase import rules
from scheduler_app.domain.triggers.phrase.clause_bag import (
    AmbiguousPhrase,
    ClauseBag,
    PhraseContext,
    PhraseRefused,
)
from scheduler_app.domain.triggers.phrase.clauses import (
    BUSINESS_DAY,
    DAY,
    Clause,
    Date,
    MonthDaysClause,
    MonthsClause,
    NamedDay,
    NthClause,
    OnClause,
    PeriodClause,
    RepeatClause,
    RollClause,
    StartClause,
    WeekdayAndDayClause,
    WeekdaysClause,
    WeeksClause,
    WithinMonthClause,
    YearlyDatesClause,
)
from scheduler_app.domain.triggers.phrase.dates import start_instant
from scheduler_app.domain.triggers.phrase.rules import DayRule, NamedDays, by_month

_FREQS = {"week": "WEEKLY", "month": "MONTHLY", "year": "YEARLY"}


def named_days(
    bag: ClauseBag, step: RepeatClause | None, moment: PhraseContext, start: StartClause | None
) -> NamedDays:
    """The one way in which a phrase names its days."""
    unit = "day" if step is None else step.unit
    months_asked, period = bag.take(MonthsClause), bag.take(PeriodClause)
    months = () if months_asked is None else months_asked.months
    weekdays, numbered, nth = bag.take(WeekdaysClause), bag.take(MonthDaysClause), bag.take(NthClause)
    thirteenth, dated, on = bag.take(WeekdayAndDayClause), bag.take(YearlyDatesClause), bag.take(OnClause)
    roll, inside, weeks = bag.take(RollClause), bag.take(WithinMonthClause), bag.take(WeeksClause)
    if sum(one is not None for one in (weekdays, numbered, nth, thirteenth, dated, on)) > 1:
        raise PhraseRefused("the days are named in two ways; name them in one, or make two schedules")
    if months_asked is not None and months_asked.quarters and weekdays is None and step is None:
        raise _which_of_the_quarter(bag, months_asked)
    if on is not None and weeks is None:
        weekdays, dated = _single_day(on, step)
    if roll is not None and numbered is None and nth is None:
        raise PhraseRefused("“or the business day …” needs a day of the month before it")
    if roll is not None and roll.direction == "nearest" and moment.calendar and not roll.weekday:
        ways: list[list[Clause]] = [[replace(roll, direction="previous")], [replace(roll, direction="next")]]
        raise bag.ambiguity(roll, ways, "with a calendar, say the business day before or the one after")
    if weeks is not None:
        if any(one is not None for one in (numbered, nth, thirteenth, dated, inside, months_asked)):
            raise PhraseRefused("weeks of the year go together with days of the week only")
        if step is not None and (step.count > 1 or step.unit not in ("day", "week", "year")):
            raise PhraseRefused("weeks of the year go together with every year only")
        if period not in (None, PeriodClause("year")):
            raise PhraseRefused("weeks are numbered within the year only")
        return rules.in_weeks(weekdays if on is None else _single_weekday(on), weeks)
    if inside is not None:
        if any(one is not None for one in (numbered, nth, thirteenth, dated, on)):
            raise PhraseRefused("the days are named in two ways; name them in one, or make two schedules")
        if (step is not None and step.count > 1) or (period is not None and period != PeriodClause("month")):
            raise PhraseRefused("days between two days of the month go together with every month only")
        return rules.within_month(weekdays, inside, months, moment)
    if period is not None and numbered is None and nth is None and (weekdays is None or period.step > 1):
        raise PhraseRefused(f"say on which day of the {period.unit}")
    if weekdays is not None:
        return _weekdays(bag, weekdays, step, months, moment)
    scope, interval = _scope(step, period, months)
    if numbered is not None:
        within = rules.QUARTER_STARTS if scope == "quarter" else months
        if scope == "year" and not months:
            raise PhraseRefused("say of which month the day is")
        if months or scope in ("month", "quarter"):
            found = rules.monthly(numbered.days, within, roll, moment)
            return _apart(found, interval, scope if not months else "month")
        raise PhraseRefused("a day of the month does not go together with several days or weeks")
    if nth is not None:
        return _ordinals(bag, nth, scope, interval, months, roll, moment, step)
    if thirteenth is not None:
        if step is not None and step.count > 1 and step.unit != "month":
            raise PhraseRefused(
                "a day that is both of the week and of the month goes together with months only"
            )
        return rules.friday_the_13th(thirteenth, months)
    if dated is not None:
        if months or unit not in ("day", "year") or (unit == "day" and step is not None and step.count > 1):
            raise PhraseRefused("dates do not go together with other units or months")
        return _apart(rules.yearly(dated, "YEARLY"), 1 if step is None else step.count, "year")
    return _only_units(bag, step, months, moment, start)


def _which_of_the_quarter(bag: ClauseBag, asked: MonthsClause) -> AmbiguousPhrase:
    """The first Monday in Q1: of the quarter, or of each of its months? In Q1 alone: each day?"""
    named = bag.mentions(MonthDaysClause, NthClause, WeekdayAndDayClause, YearlyDatesClause, OnClause)
    firsts = MonthsClause(tuple(month for month in asked.months if month in rules.QUARTER_STARTS))
    of_each: list[Clause] = [replace(asked, quarters=False)]
    options: list[list[Clause]] = [[firsts], of_each] if named else [[*of_each, RepeatClause(1, "day")]]
    why = "say on which days of the quarter, such as “every Monday in Q1”, or name the month"
    return bag.ambiguity(asked, options, why)


def _single_day(
    on: OnClause, step: RepeatClause | None
) -> tuple[WeekdaysClause | None, YearlyDatesClause | None]:
    """ "every week on friday", "every year on december 25": the day repeats because its unit does."""
    day = on.days[0]
    if len(on.days) == 1 and step is not None:
        if step.unit == "week" and isinstance(day, NamedDay) and not day.which:
            return WeekdaysClause((day.weekday,)), None
        if step.unit == "year" and isinstance(day, Date) and day.year is None and day.weekday is None:
            return None, YearlyDatesClause((day,))
    raise PhraseRefused(
        "one day does not go together with what repeats; say “every”, or leave the interval out"
    )


def _single_weekday(on: OnClause) -> WeekdaysClause:
    """ "every year on monday of week 12"."""
    day = on.days[0]
    if len(on.days) > 1 or not isinstance(day, NamedDay) or day.which:
        raise PhraseRefused("weeks of the year go together with days of the week only")
    return WeekdaysClause((day.weekday,))


def _weekdays(
    bag: ClauseBag,
    weekdays: WeekdaysClause,
    step: RepeatClause | None,
    months: tuple[int, ...],
    moment: PhraseContext,
) -> NamedDays:
    if step is not None and (step.unit not in ("week", "day") or (step.unit == "day" and step.count > 1)):
        raise PhraseRefused("days of the week go together with weeks only")
    if weekdays.step > 1:
        if step is not None and step.count > 1:
            raise PhraseRefused("two intervals are given; give one")
        if len(weekdays.days) == 5:
            ways: list[list[Clause]] = [
                [WeekdaysClause((0, 2, 4))],
                [WeekdaysClause(weekdays.days), RepeatClause(2, "week")],
            ]
            why = "Monday, Wednesday, Friday, or all weekdays of every other week?"
            raise bag.ambiguity(weekdays, ways, why)
    return _apart(rules.weekly(weekdays, months, moment), weekdays.step, "week")


def _scope(
    step: RepeatClause | None, period: PeriodClause | None, months: tuple[int, ...]
) -> tuple[str, int]:
    """The unit in which ordinals and numbers count, and how many of them lie between two."""
    if months and any(one is not None and one.unit == "quarter" for one in (period, step)):
        raise PhraseRefused("quarters and named months do not go together")
    if months and period is not None and (period.unit != "month" or period.step > 1):
        raise PhraseRefused("the months are named in two ways; name them in one")
    if period is not None and step is not None:
        if step.unit != period.unit or (step.count > 1 and period.step > 1):
            raise PhraseRefused("two units are named; name one")
        return step.unit, max(step.count, period.step)
    if period is not None:
        return period.unit, period.step
    if step is None or (step == RepeatClause(1, "day") and not months):
        return "month", 1
    return step.unit, step.count


def _ordinals(
    bag: ClauseBag,
    nth: NthClause,
    scope: str,
    interval: int,
    months: tuple[int, ...],
    roll: RollClause | None,
    moment: PhraseContext,
    step: RepeatClause | None,
) -> NamedDays:
    if scope not in ("month", "quarter", "year"):
        raise PhraseRefused("the ordinal needs a month, a quarter or a year")
    if nth.joint:
        why = "the ordinal may belong to both days or to the first; repeat it"
        raise bag.ambiguity(nth, [[replace(nth, joint=False)]], why)
    unscoped = not months and step is None and not bag.mentions(PeriodClause)
    number, what = nth.positions[0]
    if unscoped and nth.every and len(nth.positions) == 1 and number > 1 and isinstance(what, int):
        ways: list[list[Clause]] = [
            [nth, PeriodClause("month")],
            [WeekdaysClause((what,)), RepeatClause(number, "week")],
        ]
        raise bag.ambiguity(nth, ways, "of the month, or so many weeks apart?")
    if unscoped and not (
        nth.every and all(abs(one) == 1 and isinstance(day, int) for one, day in nth.positions)
    ):
        options: list[list[Clause]] = [[nth, PeriodClause("month")]]
        of_week = nth.every and nth.positions in (((1, BUSINESS_DAY),), ((-1, BUSINESS_DAY),))
        if of_week and not moment.calendar:
            # A calendar may close the first or the last weekday of a week, and no rule of one day says that.
            options.append([WeekdaysClause((0 if number == 1 else 4,)), RepeatClause(1, "week")])
        raise bag.ambiguity(nth, options, "say of which week, month, quarter or year")
    business = tuple(place for place in nth.positions if place[1] == BUSINESS_DAY)
    if moment.calendar and 0 < len(business) < len(nth.positions):
        others = tuple(place for place in nth.positions if place not in business)
        either = [[replace(nth, positions=places)] for places in (business, others)]
        why = "with a calendar, business days and other days need two schedules"
        raise bag.ambiguity(nth, either, why)
    if roll is not None:
        if nth.positions not in (((1, DAY),), ((-1, DAY),)) or scope != "month":
            raise PhraseRefused("“or the business day …” needs a day of the month before it")
        return _apart(rules.monthly((number,), months, roll, moment), interval, scope)
    return _apart(rules.ordinal(nth, scope, months, moment), interval, "month" if months else scope)


def _apart(found: NamedDays, count: int, unit: str) -> NamedDays:
    """The day rules, with `count` units from one to the next."""
    if count == 1:
        return found
    freq = _FREQS.get(unit)
    if freq is None or any(rule.freq != freq for rule in found.rules):
        raise PhraseRefused("so many of these units cannot be skipped; name the months")
    if unit == "month" and any(name == "BYMONTH" for rule in found.rules for name, _ in rule.parts):
        raise PhraseRefused("several months apart and named months do not go together")
    return replace(found, interval=count)


def _only_units(
    bag: ClauseBag,
    step: RepeatClause | None,
    months: tuple[int, ...],
    moment: PhraseContext,
    start: StartClause | None,
) -> NamedDays:
    """Every few days; longer units need a day, unless the beginning gives it."""
    if step is None or step.unit == "day":
        count = 1 if step is None else step.count
        if months and count > 1:
            raise PhraseRefused("several days apart and named months do not go together")
        return NamedDays((DayRule("DAILY", by_month(months)),), None, count)
    if months and step.unit != "year":
        raise PhraseRefused("say on which day")
    if start is not None and start.day is not None and not months and step.unit != "quarter":
        first = start_instant(bag, start, moment, None).astimezone(moment.zone).date()
        if first.day > 28 and step.unit != "week":
            raise PhraseRefused("not every month has that day; say which day of the month is meant")
        return NamedDays((DayRule(_FREQS[step.unit], _parts_of(step.unit, first)),), None, step.count)
    today = moment.today
    ways: dict[str, list[list[Clause]]] = {
        "week": [
            [WeekdaysClause((0,))],
            [WeekdaysClause((today.weekday(),))],
            [WeekdaysClause(((today.weekday() + 1) % 7,))],
        ],
        "month": [[MonthDaysClause((1,))], [MonthDaysClause((today.day,))]],
        "quarter": [[MonthDaysClause((1,))], [NthClause(((-1, DAY),))]],
        "year": [[YearlyDatesClause((Date(1, 1),))], [YearlyDatesClause((Date(today.month, today.day),))]],
    }
    raise bag.missing(ways[step.unit], f"say on which day of the {step.unit}")


def _parts_of(unit: str, first: date) -> tuple[tuple[str, str], ...]:
    if unit == "week":
        return (("BYDAY", rules.days_of((first.weekday(),))),)
    if unit == "month":
        return (("BYMONTHDAY", str(first.day)),)
    return (("BYMONTH", str(first.month)), ("BYMONTHDAY", str(first.day)))

"""The days of a rule in words: what BYMONTH, BYMONTHDAY, BYDAY, BYYEARDAY and BYWEEKNO leave together, and
where SKIP moves a day that its month or year does not have.
"""

from dataclasses import dataclass, replace
from typing import Final

from dateutil.rrule import weekday

from scheduler_app.domain.recurrence.description import vocabulary as say
from scheduler_app.domain.recurrence.rules.days import DayFilter
from scheduler_app.domain.recurrence.rules.rule import Frequency, Rule, Skip
from scheduler_app.domain.recurrence.timeline import month_spans

_DATES: Final = 4  # up to this many days of named months are written out one by one
_LEAP: Final = ", in leap years,"
_WEEK_OF_MONTH: Final[dict[tuple[int, ...], int]] = {
    (1, 2, 3, 4, 5, 6, 7): 1,
    (8, 9, 10, 11, 12, 13, 14): 2,
    (15, 16, 17, 18, 19, 20, 21): 3,
    (22, 23, 24, 25, 26, 27, 28): 4,
    (-7, -6, -5, -4, -3, -2, -1): -1,
}


@dataclass(frozen=True)
class DayWords:
    """Days in the places of a sentence: at its beginning ("Every month on the 5th"), after "Every second year
    on" ("the 5th of every month"), after "Every second month on" ("the 5th"), after "only on" ("the 5th of
    every month"), and after times ("on the 5th of every month")."""

    lead: str
    on: str
    in_month: str
    only: str
    after: str


def leading(lead: str) -> DayWords:
    """Words that can only begin a sentence or follow times."""
    return DayWords(lead, lead, lead, lead, say.lower_first(lead).rstrip(","))


def each(days: str, only: str | None = None) -> DayWords:
    """Days that come every week, or are tested one by one: "Every " is put before them."""
    every = f"every {days}"
    return DayWords(f"Every {days}", every, every, only or days, every.rstrip(","))


def monthly(days: str, gone: str = "") -> DayWords:
    """Days of the month; `gone` is what `missing` says of them."""
    of = f"{days} of every month{gone}"
    return DayWords(f"Every month on {days}{gone}", of, days + gone, of, f"on {of}".rstrip(","))


def yearly(days: str) -> DayWords:
    """Days of the year."""
    return DayWords(f"Every year on {days}", days, days, days, f"every year on {days}".rstrip(","))


def day_words(of: DayFilter, moved: str = "") -> DayWords:
    """The words for the days that `of` allows, when every month and year takes part. `moved` says where
    days of the month go that are missing."""
    of = simplified_filter(of)
    if moved:
        of = replace(of, by_day=())  # `moved` says it: the weekday is that of the day moved to
    kinds = [bool(of.by_year_day), bool(of.by_week_no), bool(of.by_month_day), any(d.n for d in of.by_day)]
    if sum(kinds) > 1:
        return _all_of(of)
    if (of.by_year_day and (of.by_month or of.by_day)) or (of.by_week_no and of.by_month):
        return _all_of(of)
    if of.by_year_day:
        return yearly(_year_days(of.by_year_day) + (moved or missing_day_words(of)))
    if of.by_week_no:
        return yearly(_in_weeks(of) + missing_day_words(of))
    if of.by_month_day:
        return _weekdays_on(of) if of.by_day else _month_days(of, moved)
    if any(day.n for day in of.by_day):
        return _numbered(of)
    return _weekdays(of)


def simplified_filter(of: DayFilter) -> DayFilter:
    """The same days with fewer parts: what allows everything is left out, and what another part holds."""
    weekly = {day.weekday for day in of.by_day if not day.n}
    most = 5 if of.days_in_month else 53
    by_day = tuple(
        day for day in of.by_day if not day.n or (day.weekday not in weekly and abs(day.n) <= most)
    )
    if len(weekly) == 7:
        by_day = ()
    by_month_day = of.by_month_day
    if by_day and not any(day.n for day in by_day) and len(by_day) == 1 and of.days_in_month:
        number = _WEEK_OF_MONTH.get(by_month_day)
        if number is not None:
            by_month_day, by_day = (), (weekday(by_day[0].weekday, number),)
    return replace(
        of,
        by_month=() if len(of.by_month) == 12 else of.by_month,
        by_month_day=() if set(range(1, 32)) <= set(by_month_day) else by_month_day,
        by_day=by_day,
    )


def constraints(of: DayFilter) -> list[str]:
    """What a day must be, one clause for each part."""
    found = []
    if of.by_day:
        found.append(any_weekday(of))
    if of.by_month_day:
        found.append(f"{_of_month(of.by_month_day, 'or')} of the month")
    if of.by_year_day:
        found.append(_year_days(of.by_year_day, "or"))
    if of.by_week_no:
        found.append(f"in {_weeks(of, 'or')}")
    if of.by_month:
        found.append(f"in {say.months(of.by_month, 'or')}")
    return found


def _all_of(of: DayFilter) -> DayWords:
    """Days that must be several things at once, each of which is named."""
    return each(f"day that is {say.all_of(constraints(of))},")


def _weekdays(of: DayFilter) -> DayWords:
    inside = f" {say.in_months(of.by_month)}" if of.by_month else ""
    if not of.by_day:
        return each(f"day{inside}", f"days {say.in_months(of.by_month)}" if of.by_month else None)
    names = say.weekdays(day.weekday for day in of.by_day)
    if " to " in names:
        return DayWords(*([names + inside] * 5))
    return each(names + inside)


def _month_days(of: DayFilter, moved: str) -> DayWords:
    days = _of_month(of.by_month_day)
    if not moved:
        of = replace(of, by_month=tuple(month for month in of.by_month if _reaches(month, of.by_month_day)))
    gone = moved or missing_day_words(of)
    if not of.by_month:
        return monthly(days, gone)
    exist = not gone or gone == _LEAP
    if exist and min(of.by_month_day) > 0 and len(of.by_month) * len(of.by_month_day) <= _DATES:
        dates = [f"{day} {say.MONTHS[month - 1]}" for month in of.by_month for day in of.by_month_day]
        return yearly(say.listed(dates) + gone)
    return yearly(f"{days} of {say.months(of.by_month)}{gone}")


def _reaches(month: int, days: tuple[int, ...]) -> bool:
    """Whether a month ever has one of the days."""
    return any(abs(day) <= month_spans(True)[month - 1][1] for day in days)


def _numbered(of: DayFilter) -> DayWords:
    days = say.listed(_ranked_weekdays(of.by_day, "and"))
    gone = missing_day_words(of)
    if of.by_month:
        return yearly(f"{days} of {say.months(of.by_month)}{gone}")
    if of.days_in_month:
        return monthly(days, gone)
    return yearly(f"{days} of the year{gone}")


def _ranked_weekdays(days: tuple[weekday, ...], last: str) -> list[str]:
    """`every Monday`, `the first Tuesday`, `the second and fourth Friday`."""
    names = [f"every {say.WEEKDAYS[day.weekday]}" for day in days if not day.n]
    numbered = [day for day in days if day.n]
    if len({day.weekday for day in numbered}) == 1:
        ranks = say.ranks([day.n for day in numbered], last)
        return [*names, f"the {ranks} {say.WEEKDAYS[numbered[0].weekday]}"]
    # As they come in a month: the first ones before the last ones.
    numbered.sort(key=lambda day: (day.n < 0, day.n, day.weekday))
    return names + [f"the {say.rank(day.n)} {say.WEEKDAYS[day.weekday]}" for day in numbered]


def _weekdays_on(of: DayFilter) -> DayWords:
    """Weekdays that fall on certain days of the month: `Friday the 13th`."""
    names = say.weekdays(day.weekday for day in of.by_day)
    days = of.by_month_day
    inside = f" {say.in_months(of.by_month)}" if of.by_month else ""
    month = say.months(of.by_month) if of.by_month else "the month"
    if len(days) == 1 and days[0] > 0 and len(of.by_day) == 1:
        text = f"{names} the {say.ordinal(days[0])}{inside}"
    elif len(spans := say.runs(days)) == 1 and days[0] > 0 and len(days) > 1:
        (low, high) = spans[0]
        text = f"{names} from the {say.ordinal(low)} to the {say.ordinal(high)} of {month}"
    elif len(spans) == 1 and days[-1] == -1 and len(days) > 1:
        text = f"{names} in the last {len(days)} days of {month}"
    else:
        any_of = say.weekdays((day.weekday for day in of.by_day), "or")
        which = f"day from {any_of}" if " to " in any_of else any_of
        text = f"{which} that is {_of_month(days, 'or')} of {month},"
    return each(text)


def _in_weeks(of: DayFilter) -> str:
    days = say.weekdays(day.weekday for day in of.by_day) if of.by_day else "every day"
    return f"{days} of {_weeks(of)}"


def _weeks(of: DayFilter, last: str = "and") -> str:
    """`week 20`, `weeks 1 and 20`, `the last week`, and the day that weeks begin on if it is not Monday."""
    numbered = tuple(number for number in of.by_week_no if number > 0)
    names = []
    if numbered:
        step = say.even_step(numbered)
        if len(numbered) > 3 and step > 1:
            ranked = "second" if step == 2 else say.ordinal(step)
            names.append(f"every {ranked} week from week {numbered[0]} to week {numbered[-1]}")
        else:
            plural = "s" if len(numbered) > 1 and last == "and" else ""
            names.append(f"week{plural} {say.numbers(numbered, last)}")
    names += [f"the {say.rank(number)} week" for number in of.by_week_no if number < 0]
    begin = f" (weeks begin on {say.WEEKDAYS[of.week_start]})" if of.week_start else ""
    return f"{say.listed(names, last)} of the year{begin}"


def _year_days(days: tuple[int, ...], last: str = "and") -> str:
    """`days 100 and 200 of the year`, `the last day of the year`."""
    if min(days) > 0:
        plural = "s" if len(days) > 1 and last == "and" else ""
        return f"day{plural} {say.numbers(days, last)} of the year"
    names = [f"day {day}" if day > 0 else f"the {say.rank(day)} day" for day in days]
    names.sort(key=lambda name: name.startswith("the"))
    return f"{say.listed(names, last)} of the year"


def _of_month(days: tuple[int, ...], last: str = "and") -> str:
    """`the 1st, the 15th and the last day`, `the 1st to the 7th`,
    `every second day from the 1st to the 31st`."""
    positive = tuple(day for day in days if day > 0)
    step = say.even_step(positive)
    if step > 1 and len(positive) > _DATES and last == "and":
        every = "second" if step == 2 else say.ordinal(step)
        names = [f"every {every} day from the {say.ordinal(positive[0])} to the {say.ordinal(positive[-1])}"]
    else:
        names = [
            f"the {say.ordinal(low)}" if low == high else f"the {say.ordinal(low)} to the {say.ordinal(high)}"
            for low, high in say.runs(positive)
        ]
    negative = sorted((day for day in days if day < 0), reverse=True)
    if len(negative) > 2 and negative == list(range(-1, -len(negative) - 1, -1)):
        names.append(f"the last {len(negative)} days")
    else:
        names += [f"the {say.rank(day)} day" for day in reversed(negative)]
    return say.listed(names, last)


def any_weekday(of: DayFilter) -> str:
    """`a Monday or a Friday`, `Monday to Friday`, `the first Monday of the month`."""
    weekly = [day.weekday for day in of.by_day if not day.n]
    period = "month" if of.days_in_month else "year"
    names = [f"a {say.WEEKDAYS[day]}" for day in weekly]
    if weekly == [0, 1, 2, 3, 4]:
        names = ["a weekday (Monday to Friday)"]
    numbered = tuple(day for day in of.by_day if day.n)
    if numbered:
        names += [f"{name} of the {period}" for name in _ranked_weekdays(numbered, "or")]
    return say.listed(names, "or")


def missing_day_words(of: DayFilter) -> str:
    """`, where there is a 31st,` for days that some of the months or years do not have; else nothing."""
    if (of.by_month == (2,) and of.by_month_day in ((29,), (-29,))) or of.by_year_day in ((366,), (-366,)):
        return _LEAP
    shortest = min(month_spans(False)[month - 1][1] for month in of.by_month or range(1, 13))
    rare = [day for day in of.by_month_day if abs(day) > shortest]
    rare += [day for day in of.by_year_day if abs(day) == 366]
    rare += [number for number in of.by_week_no if abs(number) == 53]
    rare += [day.n for day in of.by_day if abs(day.n or 0) == (5 if of.days_in_month else 53)]
    if len(rare) == 1 and rare[0] in of.by_month_day and rare[0] > 0:
        return f", where there is a {say.ordinal(rare[0])},"
    return ", where they exist," if len(rare) > 1 else ", where there is one," if rare else ""


#: By the direction, and whether the days are counted from the end.
_OF_MONTH: Final = {
    (Skip.BACKWARD, False): "the last day",
    (Skip.FORWARD, False): "the 1st of the next month",
    (Skip.BACKWARD, True): "the last day of the month before",
    (Skip.FORWARD, True): "the 1st",
}
_OF_YEAR: Final = {
    (Skip.BACKWARD, False): "the last day",
    (Skip.FORWARD, False): "1 January of the next year",
    (Skip.BACKWARD, True): "31 December of the year before",
    (Skip.FORWARD, True): "1 January",
}


def moved_words(rule: Rule, of: DayFilter) -> str | None:
    """`, or the last day where it is missing,`; empty where SKIP moves nothing, None if there are no words
    for what it does."""
    days, places = (of.by_month_day, _OF_MONTH) if of.by_month_day else (of.by_year_day, _OF_YEAR)
    rare = [day for day in days if abs(day) > 28]
    if rule.skip is Skip.OMIT or rule.freq > Frequency.MONTHLY or not (rare and missing_day_words(of)):
        return ""
    from_end = rare[0] < 0
    others = of.by_week_no or (of.by_year_day if of.by_month_day else of.by_month)
    if others or any((day < 0) != from_end for day in rare) or any(day.n for day in of.by_day):
        return None
    words = f", or {places[rule.skip, from_end]} where it is missing,"
    return f"{words} if that is {any_weekday(of)}," if of.by_day else words

"""Which dates a single day can mean, seen from today."""

from calendar import monthrange
from dataclasses import replace
from datetime import date, timedelta

from scheduler_app.domain.triggers.phrase.clauses import DAY, Clause, On, Start, Until
from scheduler_app.domain.triggers.phrase.moments import (
    Date,
    Day,
    DayNumber,
    DaysAway,
    EasterDay,
    Later,
    MonthOfYear,
    NamedDay,
    NthDay,
    NumericDate,
)
from scheduler_app.domain.triggers.phrase.words import MONTHS_OF

from .bag import Bag
from .outcome import Refused

_LAST_YEAR = 9_998
_SATURDAY = 5


def fixed(day: date) -> Date:
    """A day about which there is nothing left to ask."""
    return Date(day.month, day.day, day.year)


def date_of(bag: Bag, clause: Clause, day: Day, today: date) -> date:
    """The date that `day` of `clause` means; raises Several when there are two, with the clause replaced."""
    try:
        choices = dates_of(day, today)
    except Refused as wrong:
        if not isinstance(day, Date) or day.weekday is None:
            raise
        either: tuple[Day, ...] = (replace(day, weekday=None), NamedDay(day.weekday))
        raise bag.ambiguity(clause, [[_with_day(clause, one)] for one in either], wrong.message) from None
    if len(choices) == 1:
        return choices[0]
    raise bag.ambiguity(
        clause, [[_with_day(clause, fixed(choice))] for choice in choices], "the day can be read in two ways"
    )


def _with_day(clause: Clause, day: Day) -> Clause:
    if isinstance(clause, On):
        return On((day,))
    assert isinstance(clause, Start | Until)  # noqa: S101
    return replace(clause, day=day)


def dates_of(day: Day, today: date) -> list[date]:
    """The dates that a day can mean, the likelier first; Refused when there is none."""
    if isinstance(day, DaysAway):
        return [today + timedelta(day.days)]
    if isinstance(day, NamedDay):
        return _named(day, today)
    if isinstance(day, Date):
        return [_date(day, today)]
    if isinstance(day, NumericDate):
        return _numeric(day, today)
    if isinstance(day, DayNumber):
        return [_numbered(day, today)]
    if isinstance(day, MonthOfYear):
        return [_date(Date(day.month, 1, day.year), today)]
    if isinstance(day, NthDay):
        return [_nth(day, today)]
    if isinstance(day, EasterDay):
        return [next_easter_days(day, today, 1)[0]]
    if isinstance(day, Later):
        return _later(day, today)
    return _ends(day.unit, today)


def _named(day: NamedDay, today: date) -> list[date]:
    ahead = (day.weekday - today.weekday()) % 7
    if day.which == "next":
        if day.weekday > today.weekday():
            return [today + timedelta(ahead), today + timedelta(ahead + 7)]
        return [today + timedelta(ahead or 7)]
    if day.which == "next week":
        monday_first = today + timedelta(7 - today.weekday() + day.weekday)
        sunday_first = today + timedelta(7 - (today.weekday() + 1) % 7 + (day.weekday + 1) % 7)
        return sorted({monday_first, sunday_first})
    return [today + timedelta(ahead)]


def _date(day: Date, today: date) -> date:
    years = [day.year] if day.year is not None else range(today.year, today.year + 9)
    for year in years:
        found = make(year, day.month, day.day)
        if found is None or (day.year is None and found < today):
            continue
        if day.weekday is not None and found.weekday() != day.weekday:
            raise Refused(f"{found:%-d %B %Y} is a {found:%A}; give the day or the date that is meant")
        return found
    raise Refused("there is no such date; give one that exists")


def make(year: int, month: int, day: int) -> date | None:
    """The date, or None when there is none."""
    if not (1 <= year <= _LAST_YEAR and 1 <= month <= 12):
        return None
    return date(year, month, day) if 1 <= day <= monthrange(year, month)[1] else None


def _numeric(day: NumericDate, today: date) -> list[date]:
    found = {
        _date(Date(day.second, day.first, day.year), today),
        _date(Date(day.first, day.second, day.year), today),
    }
    return sorted(found)


def _numbered(day: DayNumber, today: date) -> date:
    first = today.replace(day=1)
    if day.month:
        month = months_later(first, 1 if day.month == "next" else 0)
        found = make(month.year, month.month, day.day)
        if found is None:
            raise Refused(f"{day.month} month has no day {day.day}")
        return found
    for ahead in range(4):
        month = months_later(first, ahead)
        found = make(month.year, month.month, day.day)
        if found is not None and found >= today:
            return found
    raise Refused(f"there is no day {day.day} in the next months")


def months_later(day: date, months: int) -> date:
    """The same day so many months later, or the last day of that month where it is shorter."""
    index = day.year * 12 + day.month - 1 + months
    year, month = index // 12, index % 12 + 1
    if year > _LAST_YEAR:
        raise Refused("that lies beyond the year 9998")
    return date(year, month, min(day.day, monthrange(year, month)[1]))


def _nth(day: NthDay, today: date) -> date:
    if isinstance(day.month, int):
        first = date(day.year or today.year, day.month, 1)
    else:
        first = months_later(today.replace(day=1), 1 if day.month == "next" else 0)
    days = [first + timedelta(ahead) for ahead in range(monthrange(first.year, first.month)[1])]
    if isinstance(day.what, int):
        days = [each for each in days if each.weekday() == day.what]
    elif day.what != DAY:
        days = [each for each in days if each.weekday() < _SATURDAY]
    if abs(day.number) > len(days):
        raise Refused("that month has no such day")
    return days[day.number - 1 if day.number > 0 else day.number]


def next_easter_days(day: EasterDay, today: date, count: int) -> list[date]:
    """The coming days that lie so many days after Easter Sunday; the one of a year where that is named."""
    if day.year is not None:
        return [_easter_sunday(day.year) + timedelta(day.days)]
    years = range(today.year, today.year + count + 1)
    found = (_easter_sunday(year) + timedelta(day.days) for year in years)
    return [each for each in found if each >= today][:count]


def _easter_sunday(year: int) -> date:
    """By the Gregorian calendar: the Sunday after the first ecclesiastical full moon from 21 March on."""
    if not 1583 <= year <= _LAST_YEAR:
        raise Refused("Easter is known from 1583 on")
    century, golden = year // 100, year % 19
    ahead = (19 * golden + century - century // 4 - (8 * century + 13) // 25 + 15) % 30
    # No full moon comes later than 18 April, and none twice on one day in 19 years.
    late = ahead == 29 or (ahead == 28 and golden > 10)
    full_moon = date(year, 3, 21) + timedelta(ahead - late)
    return full_moon + timedelta(7 - (full_moon.weekday() + 1) % 7)


def _later(day: Later, today: date) -> list[date]:
    bases = dates_of(day.day, today)
    if day.day == NamedDay(today.weekday()):
        bases = [today, today + timedelta(7)]
    if abs(day.count) > 10_000:
        raise Refused("this is too far away")
    days = {"day": 1, "week": 7}.get(day.unit)
    if days is not None:
        return [base + timedelta(days * day.count) for base in bases]
    return [months_later(base, MONTHS_OF[day.unit] * day.count) for base in bases]


def _ends(unit: str, today: date) -> list[date]:
    if unit == "day":
        return [today]
    if unit == "week":
        ahead = 4 - today.weekday()
        sunday = today + timedelta(6 - today.weekday())
        return [today + timedelta(ahead), sunday] if ahead >= 0 else [sunday]
    length = MONTHS_OF[unit]
    first = date(today.year, (today.month - 1) // length * length + 1, 1)
    return [months_later(first, length) - timedelta(1)]

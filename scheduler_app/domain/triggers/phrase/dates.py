"""Which dates and times of day a phrase can mean, seen from today, and when what repeats begins and ends.

5 alone may be 05:00 or 17:00, and "in the evening" settles it.
"""

from calendar import monthrange
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from itertools import pairwise

from scheduler_app.domain.triggers.phrase.clause_bag import ClauseBag, PhraseContext, PhraseRefused
from scheduler_app.domain.triggers.phrase.clauses import (
    DAY,
    Clause,
    Date,
    Day,
    DayNumber,
    DaysAway,
    EasterDay,
    ForClause,
    Later,
    MonthOfYear,
    NamedDay,
    NthDay,
    NumericDate,
    OnClause,
    PartOfDayClause,
    StartClause,
    Time,
    TimesClause,
    UntilClause,
    WindowClause,
)
from scheduler_app.domain.triggers.phrase.words import DAYS_OF, MONTHS_OF, SECONDS_OF

_LAST_YEAR = 9_998
_SATURDAY = 5


def is_fixed_day(day: date) -> Date:
    """A day about which there is nothing left to ask."""
    return Date(day.month, day.day, day.year)


def date_of(bag: ClauseBag, clause: Clause, day: Day, today: date) -> date:
    """The date that `day` of `clause` means. Raises AmbiguousPhrase, with the clause replaced, if there are
    two such dates."""
    try:
        choices = dates_of(day, today)
    except PhraseRefused as wrong:
        if not isinstance(day, Date) or day.weekday is None:
            raise
        either: tuple[Day, ...] = (replace(day, weekday=None), NamedDay(day.weekday))
        raise bag.ambiguity(clause, [[_with_day(clause, one)] for one in either], wrong.message) from None
    if len(choices) == 1:
        return choices[0]
    options = [[_with_day(clause, is_fixed_day(choice))] for choice in choices]
    raise bag.ambiguity(clause, options, "the day can be read in two ways")


def _with_day(clause: Clause, day: Day) -> Clause:
    if isinstance(clause, OnClause):
        return OnClause((day,))
    assert isinstance(clause, StartClause | UntilClause)  # noqa: S101
    return replace(clause, day=day)


def dates_of(day: Day, today: date) -> list[date]:
    """The dates that a day can mean, the likelier first. Raises PhraseRefused if there is no such date."""
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
        return next_easter_days(day, today, 1)
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
        found = date_or_none(year, day.month, day.day)
        if found is None or (day.year is None and found < today):
            continue
        if day.weekday is not None and found.weekday() != day.weekday:
            raise PhraseRefused(f"{found:%-d %B %Y} is a {found:%A}; give the day or the date that is meant")
        return found
    raise PhraseRefused("there is no such date; give one that exists")


def date_or_none(year: int, month: int, day: int) -> date | None:
    """The date; None if it does not exist."""
    if not (1 <= year <= _LAST_YEAR and 1 <= month <= 12):
        return None
    return date(year, month, day) if 1 <= day <= monthrange(year, month)[1] else None


def _numeric(day: NumericDate, today: date) -> list[date]:
    either = Date(day.second, day.first, day.year), Date(day.first, day.second, day.year)
    return sorted({_date(one, today) for one in either})


def _numbered(day: DayNumber, today: date) -> date:
    if day.month:
        month = months_later(today, 1 if day.month == "next" else 0)
        found = date_or_none(month.year, month.month, day.day)
        if found is None:
            raise PhraseRefused(f"{day.month} month has no day {day.day}")
        return found
    for ahead in range(4):
        month = months_later(today, ahead)
        found = date_or_none(month.year, month.month, day.day)
        if found is not None and found >= today:
            return found
    raise PhraseRefused(f"there is no day {day.day} in the next months")


def months_later(day: date, months: int) -> date:
    """The same day `months` later, or the last day of that month where it is shorter."""
    index = day.year * 12 + day.month - 1 + months
    year, month = index // 12, index % 12 + 1
    if year > _LAST_YEAR:
        raise PhraseRefused("that lies beyond the year 9998")
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
        raise PhraseRefused("that month has no such day")
    return days[day.number - 1 if day.number > 0 else day.number]


def next_easter_days(day: EasterDay, today: date, count: int) -> list[date]:
    """The next `count` of these days, or the one of the year that is named."""
    if day.year is not None:
        return [_easter_sunday(day.year) + timedelta(day.days)]
    years = range(today.year, today.year + count + 1)
    found = (_easter_sunday(year) + timedelta(day.days) for year in years)
    return [each for each in found if each >= today][:count]


def _easter_sunday(year: int) -> date:
    """By the Gregorian calendar: the Sunday after the first ecclesiastical full moon from 21 March on."""
    if not 1583 <= year <= _LAST_YEAR:
        raise PhraseRefused("Easter is known from 1583 on")
    century, golden = year // 100, year % 19
    ahead = (19 * golden + century - century // 4 - (8 * century + 13) // 25 + 15) % 30
    # No full moon comes later than 18 April, and none twice on one day in 19 years.
    late = ahead == 29 or (ahead == 28 and golden > 10)
    full_moon = date(year, 3, 21) + timedelta(ahead - late)
    return full_moon + timedelta(7 - (full_moon.weekday() + 1) % 7)


def units_later(day: date, count: int, unit: str) -> date:
    """The day that many days, weeks, months, quarters or years later."""
    if unit in DAYS_OF:
        return day + timedelta(DAYS_OF[unit] * count)
    return months_later(day, MONTHS_OF[unit] * count)


def _later(day: Later, today: date) -> list[date]:
    bases = dates_of(day.day, today)
    if day.day == NamedDay(today.weekday()):
        bases = [today, today + timedelta(7)]
    if abs(day.count) > 10_000:
        raise PhraseRefused("this is too far away")
    return [units_later(base, day.count, day.unit) for base in bases]


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


#: Hours alone up to this one are as likely of the afternoon; later ones are read on the 24-hour clock.
_VAGUE = 6
_NOON = 12
_RANGES = {
    "morning": frozenset(range(12)),
    "afternoon": frozenset(range(12, 19)),
    "evening": frozenset(range(16, 24)),
    "night": frozenset((*range(18, 24), *range(6))),
}


def take_times(bag: ClauseBag) -> tuple[Time, ...]:
    """The definite times of day of a phrase; empty when it names none."""
    asked = bag.take(TimesClause)
    part = bag.take(PartOfDayClause)
    if asked is None:
        if part is not None:
            raise PhraseRefused(
                f"“{part.part}” is no time of day; say at what time, for example “at 7”", (part.part,)
            )
        return ()
    if part is not None:
        return tuple(_in_part(time, part.part) for time in asked.times)
    ways = _readings(asked.times)
    if len(ways) > 1:
        raise bag.ambiguity(
            asked,
            [[TimesClause(way)] for way in ways],
            "an hour without am or pm can be read in two ways; say 05:00, 5am or 5pm",
            ask=False,
        )
    return ways[0]


def _in_part(time: Time, part: str) -> Time:
    hour = time.hour
    if not time.sure and hour <= _NOON:
        if part == "night":
            hour = hour + 12 if 6 <= hour < _NOON else hour % _NOON
        elif part != "morning":
            hour = hour % _NOON + 12
    if hour not in _RANGES[part] or (part == "morning" and time.hour == _NOON):
        raise PhraseRefused(f"{time.hour}:{time.minute:02} is not in the {part}; leave one of the two out")
    return replace(time, hour=hour)


def _definite(time: Time, *, later: bool = False) -> Time:
    hour = time.hour % _NOON + 12 if later and time.hour < _NOON else time.hour
    return replace(time, hour=hour, bare=False, sure=True)


def _readings(times: tuple[Time, ...]) -> list[tuple[Time, ...]]:
    bare = [time for time in times if time.bare]
    as_written = tuple(_definite(time) if time.bare else time for time in times)
    if not bare or any(not time.sure and (time.hour > _NOON or time.hour == 0) for time in times):
        return [as_written]
    with_meridiem = [time for time in times if time.sure]
    if with_meridiem:
        later = with_meridiem[-1].hour >= _NOON
        inherited = tuple(_definite(time, later=later) if time.bare else time for time in times)
        return _distinct(as_written, inherited)
    if not any(time.hour <= _VAGUE for time in bare):
        return [as_written]
    rising = all(first.seconds < second.seconds for first, second in pairwise(times))
    shifted = tuple(
        _definite(time, later=rising or time.hour <= _VAGUE) if time.bare else time for time in times
    )
    return _distinct(as_written, shifted)


def _distinct(first: tuple[Time, ...], second: tuple[Time, ...]) -> list[tuple[Time, ...]]:
    same = [time.seconds for time in first] == [time.seconds for time in second]
    return [first] if same else [first, second]


def take_window(bag: ClauseBag, window: WindowClause) -> tuple[int, int]:
    """The first and the last second of the day of a window; the last is smaller when it is after midnight."""
    ways = _windows(window.first, window.last)
    if len(ways) > 1:
        raise bag.ambiguity(
            window,
            [[WindowClause(first, last)] for first, last in ways],
            "the hours can be read in two ways; say am or pm, or 17:00",
        )
    first, last = ways[0]
    if first.seconds == last.seconds:
        raise PhraseRefused("the two times of day are the same; give two")
    return first.seconds, last.seconds


def _windows(first: Time, last: Time) -> list[tuple[Time, Time]]:
    early, late = _definite(first), _definite(last)
    afternoon, evening = _definite(first, later=True), _definite(last, later=True)
    if first.bare and last.sure:
        same_half = afternoon if last.hour >= _NOON else early
        if same_half.seconds >= last.seconds or same_half == early:
            return [(early, late)]
        return [(same_half, late)] if first.hour <= _VAGUE else [(early, late), (same_half, late)]
    if last.bare and first.sure:
        after = [end for end in (late, evening) if end.seconds > first.seconds]
        return [(early, end) for end in dict.fromkeys(after)] or [(early, late)]
    if first.bare and last.bare:
        if last.seconds <= first.seconds:
            return [(early, evening), (afternoon, late)]
        return [(early, late), (afternoon, evening)] if first.hour <= _VAGUE else [(early, late)]
    if last.seconds < first.seconds < _NOON * 3_600 and not last.sure:
        return [(early, evening), (early, late)]
    return [(early, late)]


_SECOND = timedelta(seconds=1)


def _at(time_: Time) -> time:
    if time_.bare and time_.hour <= 6:
        raise PhraseRefused("say the time of the beginning or the end in full, for example 05:00 or 5pm")
    return time_.clock


def next_time(time_: Time, moment: PhraseContext) -> datetime:
    """The next instant with that time of day."""
    found = moment.local(datetime.combine(moment.today, _at(time_)))
    if found <= moment.at:
        found = moment.local(datetime.combine(moment.today + timedelta(1), _at(time_)))
    return found


def start_instant(bag: ClauseBag, start: StartClause, moment: PhraseContext, clock: Time | None) -> datetime:
    """From when on; `clock` is the time of day that goes with its day, midnight if that is None.

    A beginning of today or without a day is not before the present; one that names a past year is.
    """
    if start.day is None:
        assert start.time is not None  # noqa: S101 - the grammar reads a day or a time
        return next_time(start.time, moment)
    day = date_of(bag, start, start.day, moment.today)
    if start.week:
        day -= timedelta(day.weekday())
    at = start.time or clock
    found = moment.local(datetime.combine(day, time() if at is None else _at(at)))
    return found if day < moment.today else max(found, moment.at + _SECOND)


def until_instant(bag: ClauseBag, until: UntilClause, moment: PhraseContext, clock: Time | None) -> datetime:
    """Up to when, inclusive; a day without a time counts as a whole."""
    if until.day is None:
        assert until.time is not None  # noqa: S101 - the grammar reads a day or a time
        return next_time(until.time, moment)
    if isinstance(until.day, MonthOfYear):
        _ask_which_end(bag, until, until.day, moment)
    day = date_of(bag, until, until.day, moment.today)
    at = until.time or clock
    return moment.local(datetime.combine(day, time(23, 59, 59) if at is None else _at(at)))


def _ask_which_end(bag: ClauseBag, until: UntilClause, month: MonthOfYear, moment: PhraseContext) -> None:
    first = date_of(bag, UntilClause(month), month, moment.today)
    if month.year is None and first <= moment.today:
        first = months_later(first, 12)
    before, end = first - timedelta(1), months_later(first, 1) - timedelta(1)
    options = [[UntilClause(is_fixed_day(day), until.time, until.at)] for day in (before, end)]
    raise bag.ambiguity(until, options, "the month may be meant with its days or without; say the last day")


def end_after(length: ForClause, start: datetime | None, moment: PhraseContext) -> datetime:
    """The last instant of that length of time from the start, or from now."""
    base = moment.at if start is None else start
    if length.unit in SECONDS_OF:
        found = base + timedelta(seconds=_bounded(length.count * SECONDS_OF[length.unit], 10**10))
    else:
        size, most = (DAYS_OF, 100_000) if length.unit in DAYS_OF else (MONTHS_OF, 3_000)
        _bounded(size[length.unit] * length.count, most)
        local = base.astimezone(moment.zone)
        later = units_later(local.date(), length.count, length.unit)
        found = moment.local(datetime.combine(later, local.time()))
    # Counted from a beginning that is itself an occurrence, the end is the first one too many.
    return found if start is None else found - _SECOND


def _bounded(count: int, limit: int) -> int:
    if not 0 < count <= limit:
        raise PhraseRefused("so long is too long, or no time at all")
    return count

"""A single instant: "in 10 minutes", "tomorrow at noon", "on friday at 17:00", "at 9am"."""

from datetime import date, datetime, time, timedelta
from typing import NoReturn

from scheduler_app.domain.triggers.kind import Translation
from scheduler_app.domain.triggers.phrase.clauses import (
    DAY,
    After,
    Clause,
    MonthDays,
    Nth,
    On,
    Once,
    PartOfDay,
    Period,
    Times,
    WeekdayAndDay,
)
from scheduler_app.domain.triggers.phrase.moments import Date, DayNumber, DaysAway, EndOf, NamedDay, Time
from scheduler_app.domain.triggers.phrase.words import MONTHS_OF, SECONDS_OF

from .bag import Bag
from .calendar_days import date_of, fixed, months_later
from .clock_times import take_times
from .outcome import Moment, Refused, Several

_DAYS_OF = {"day": 1, "week": 7}


def once(bag: Bag, moment: Moment) -> Translation:
    """The instant that the clauses name; Refused when it is past or none."""
    bag.take(Once)
    after = bag.take(After)
    on = bag.take(On)
    numbered = bag.take(MonthDays)
    thirteenth = bag.take(WeekdayAndDay)
    tonight = on == On((DaysAway(0),)) and bag.has(PartOfDay)
    times = take_times(bag)
    bag.check_empty()
    if len(times) > 1:
        raise Refused("several times on one day need “every day”, or a schedule for each")
    at = times[0] if times else None
    if sum(one is not None for one in (after, on, numbered, thirteenth)) > 1:
        raise Refused("two days are named; name one")
    if after is not None:
        return Translation(instant=_later(after, at, moment))
    if on is not None and tonight and at is not None and at.hour < 6:
        # The hours after midnight of this night are tomorrow's.
        return Translation(instant=_coming([moment.today + timedelta(1)], at, moment))
    if on is not None:
        return Translation(instant=_on(bag, on, at, moment))
    if numbered is not None:
        return Translation(instant=_on(bag, On((DayNumber(numbered.days[0]),)), at, moment))
    if thirteenth is not None:
        return Translation(
            instant=_coming(_thirteenths(thirteenth, moment.today), _needed(bag, at, moment), moment)
        )
    if at is None:
        raise Refused("say when: a time of day, a day, or how often")
    return Translation(instant=_coming([moment.today, moment.today + timedelta(1)], at, moment))


def _later(after: After, at: Time | None, moment: Moment) -> datetime:
    if after.unit in SECONDS_OF:
        if at is not None:
            raise Refused("a time of day does not go together with so many hours or minutes from now")
        seconds = after.count * SECONDS_OF[after.unit]
        # "Now" is the next whole second: what is scheduled lies in the future.
        return _checked(moment, seconds if seconds else 1)
    days = _DAYS_OF.get(after.unit)
    if after.count < 1 or after.count > 100_000:
        raise Refused("this is too far away, or not in the future")
    day = (
        moment.today + timedelta(days * after.count)
        if days is not None
        else months_later(moment.today, MONTHS_OF[after.unit] * after.count)
    )
    clock = moment.now.time().replace(tzinfo=None) if at is None else _clock(at)
    return moment.local(datetime.combine(day, clock))


def _checked(moment: Moment, seconds: int) -> datetime:
    if not 0 < seconds <= 100 * 366 * 86_400:
        raise Refused("this is too far away, or not in the future")
    return moment.at + timedelta(seconds=seconds)


def _clock(at: Time) -> time:
    return time(at.hour, at.minute, at.second)


def _needed(bag: Bag, at: Time | None, moment: Moment) -> Time:
    """The time of day, which a single callback must have: at what time “tomorrow” is, nobody can know."""
    if at is not None:
        return at
    now = moment.now
    options = [(Times((Time(0),)),), (Times((Time(now.hour, now.minute, now.second),)),)]
    raise bag.missing(options, "no time of day is given; say at what time")


def _on(bag: Bag, on: On, at: Time | None, moment: Moment) -> datetime:
    if len(on.days) > 1:
        raise bag.ambiguity(on, [[On((day,))] for day in on.days], "one of several days is meant; say which")
    day = on.days[0]
    if isinstance(day, EndOf) and not (day.this and day.unit != "week"):
        options: list[list[Clause]] = [
            [On((fixed(date_of(bag, on, day, moment.today)),))],
            [Nth(((-1, DAY),)), Period(day.unit)],
        ]
        if day.unit in ("month", "quarter", "year"):
            raise bag.ambiguity(on, options, "the end of this one, or of every one? Say the date, or “every”")
        raise bag.ambiguity(on, options[:1], "say the day")
    found = date_of(bag, on, day, moment.today)
    at = _needed(bag, at, moment)
    if at == Time(0, sure=True):
        _ask_which_midnight(bag, on, found)
    candidates = [found]
    if isinstance(day, NamedDay) and day.which in ("", "coming"):
        candidates.append(found + timedelta(7))
    elif isinstance(day, Date) and day.year is None and found == moment.today:
        candidates.append(months_later(found, 12))
    elif isinstance(day, DayNumber) and not day.month:
        candidates.append(months_later(found, 1))
    return _coming(candidates, at, moment)


def _ask_which_midnight(bag: Bag, on: On, day: date) -> NoReturn:
    """Midnight of a day may be its beginning or its end."""
    rest = tuple(clause for clause in bag.clauses if clause != on and not isinstance(clause, Times))
    options = [(*rest, On((fixed(which),)), Times((Time(0),))) for which in (day, day + timedelta(1))]
    raise Several("midnight may be the beginning or the end of that day; say 00:00 and the date", options)


def _thirteenths(wanted: WeekdayAndDay, today: date) -> list[date]:
    """The coming days of that number that fall on that weekday: within 14 months there is one, but for the
    end of the month, which may take some years."""
    found = []
    for ahead in range(12 * 12):
        month = months_later(today.replace(day=1), ahead)
        try:
            day = month.replace(day=wanted.day)
        except ValueError:
            continue
        if day >= today and day.weekday() == wanted.weekday:
            found.append(day)
        if len(found) == 2:
            break
    return found


def _coming(days: list[date], at: Time, moment: Moment) -> datetime:
    """The first of several days at a time that is still to come."""
    for day in days:
        found = moment.local(datetime.combine(day, _clock(at)))
        if found > moment.at:
            return found
    raise Refused("this lies in the past; say when it is to happen")

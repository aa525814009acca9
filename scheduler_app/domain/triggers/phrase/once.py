"""A single time: "in 10 minutes", "tomorrow at noon", "on friday at 17:00", "at 9am"."""

from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import NoReturn

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.triggers.phrase.clause_bag import (
    AmbiguousPhrase,
    ClauseBag,
    PhraseContext,
    PhraseRefused,
)
from scheduler_app.domain.triggers.phrase.clauses import (
    BUSINESS_DAY,
    DAY,
    AfterClause,
    AtClause,
    Clause,
    Date,
    Day,
    DayNumber,
    DaysAway,
    EndOf,
    ForClause,
    MonthDaysClause,
    NamedDay,
    NthClause,
    NthDay,
    OnceClause,
    OnClause,
    OnEachClause,
    PartOfDayClause,
    PeriodClause,
    RepeatClause,
    RollClause,
    Time,
    TimesClause,
    TotalClause,
    WeekdayAndDayClause,
)
from scheduler_app.domain.triggers.phrase.dates import (
    date_of,
    date_or_none,
    dates_of,
    is_fixed_day,
    months_later,
    take_times,
    units_later,
)
from scheduler_app.domain.triggers.phrase.rules import dates_text
from scheduler_app.domain.triggers.phrase.words import SECONDS_OF
from scheduler_app.domain.triggers.run_at import at_local_time
from scheduler_app.domain.triggers.translation import Translation

_MAX_DATES = 100
_PAST = "this lies in the past; say when it is to happen"


def single_time(bag: ClauseBag, moment: PhraseContext) -> Translation:
    """The instant or the local time that the clauses name. Raises PhraseRefused if it is past, or missing."""
    bag.take(OnceClause)
    after = bag.take(AfterClause)
    on = bag.take(OnClause)
    numbered = bag.take(MonthDaysClause)
    thirteenth = bag.take(WeekdayAndDayClause)
    tonight = on == OnClause((DaysAway(0),)) and bag.has(PartOfDayClause)
    each, stamp = bag.take(OnEachClause), bag.take(AtClause)
    times = take_times(bag)
    named = [one for one in (after, on, numbered, thirteenth) if one is not None]
    _ask_how_often(bag, numbered, times, moment)
    bag.check_empty()
    if each is not None and not named:
        return _on_each(bag, each, times, moment)
    if len(times) > 1:
        raise PhraseRefused("several times on one day need “every day”, or a schedule for each")
    at = times[0] if times else None
    if len(named) + (each is not None) > 1:
        raise PhraseRefused("two days are named; name one")
    if stamp is not None:
        if times or named or each is not None:
            raise PhraseRefused("an instant with its offset needs no other day or time")
        if stamp.instant <= moment.at:
            raise PhraseRefused(_PAST)
        return Translation(instant=stamp.instant)
    if after is not None and after.unit in SECONDS_OF:
        return Translation(instant=_elapsed(after, at, moment))
    if after is not None:
        return _at(_later(after, at, moment), moment)
    if on is not None and tonight and at is not None and at.hour < 6:
        # The hours after midnight of this night are tomorrow's.
        return _at(_first_coming([moment.today + timedelta(1)], at, moment), moment)
    if on is not None:
        return _at(_on(bag, on, at, moment), moment)
    if numbered is not None:
        return _at(_on(bag, OnClause((DayNumber(numbered.days[0]),)), at, moment), moment)
    if thirteenth is not None:
        days = _thirteenths(thirteenth, moment.today)
        return _at(_first_coming(days, _needed(bag, at, moment), moment), moment)
    if at is None:
        raise PhraseRefused("say when: a time of day, a day, or how often")
    return _at(_first_coming([moment.today, moment.today + timedelta(1)], at, moment), moment)


def _ask_how_often(
    bag: ClauseBag, numbered: MonthDaysClause | None, times: tuple[Time, ...], moment: PhraseContext
) -> None:
    """For the next 5 days at 8:00; on the 15th or the next business day: each of them, or the coming one?"""
    if (
        bag.has(ForClause, TotalClause)
        and times
        and not bag.mentions(OnClause, MonthDaysClause, OnEachClause, AtClause, AfterClause)
    ):
        raise bag.missing([[RepeatClause(1, "day")]], "say how often, such as “every day”")
    roll = bag.find(RollClause)
    if roll is not None and numbered is not None:
        rest = tuple(one for one in bag.clauses if one not in (roll, numbered))
        day = dates_of(DayNumber(numbered.days[0]), moment.today)[0]
        options = [
            (*rest, replace(numbered, every=True), roll),
            (*rest, OnClause((is_fixed_day(_rolled(day, roll)),))),
        ]
        raise AmbiguousPhrase("of every month, or of the coming one? Say “every month”, or the date", options)


def _rolled(day: date, roll: RollClause) -> date:
    """A day, or the nearest one from Monday to Friday before it, after it, or on either side."""
    back, ahead = max(day.weekday() - 4, 0), (7 - day.weekday()) % 7 if day.weekday() > 4 else 0
    if roll.direction == "nearest":
        return day - timedelta(back) if back <= ahead else day + timedelta(ahead)
    return day - timedelta(back) if roll.direction == "previous" else day + timedelta(ahead)


def _at(local: datetime, moment: PhraseContext) -> Translation:
    """A local time, which stays one: new zone data move it."""
    try:
        return at_local_time("phrase", local, moment, names_zone=moment.names_zone)
    except InvalidField as error:
        raise PhraseRefused(error.message) from None


def _elapsed(after: AfterClause, at: Time | None, moment: PhraseContext) -> datetime:
    """The instant that lies the given hours, minutes or seconds of elapsed time from now."""
    if at is not None:
        raise PhraseRefused("a time of day does not go together with so many hours or minutes from now")
    # "Now" is the next whole second: what is scheduled lies in the future.
    seconds = after.count * SECONDS_OF[after.unit] or 1
    if not 0 < seconds <= 100 * 366 * 86_400:
        raise PhraseRefused("this is too far away, or not in the future")
    return moment.at + timedelta(seconds=seconds)


def _later(after: AfterClause, at: Time | None, moment: PhraseContext) -> datetime:
    """The local time that lies the given days, weeks, months or years from now."""
    if after.count < 1 or after.count > 100_000:
        raise PhraseRefused("this is too far away, or not in the future")
    clock = moment.now.time().replace(microsecond=0) if at is None else at.clock
    return datetime.combine(units_later(moment.today, after.count, after.unit), clock)


def _needed(bag: ClauseBag, at: Time | None, moment: PhraseContext) -> Time:
    """The time of day, which a single callback must have: at what time “tomorrow” is, nobody can know."""
    if at is not None:
        return at
    now = moment.now
    options = [(TimesClause((Time(0),)),), (TimesClause((Time(now.hour, now.minute, now.second),)),)]
    raise bag.missing(options, "no time of day is given; say at what time")


def _on(bag: ClauseBag, on: OnClause, at: Time | None, moment: PhraseContext) -> datetime:
    if len(on.days) > 1:
        options: list[list[Clause]] = [[OnClause((day,))] for day in on.days]
        raise bag.ambiguity(on, options, "one of several days is meant; say which")
    day = on.days[0]
    if isinstance(day, EndOf) and not (day.this and day.unit != "week"):
        options = [
            [OnClause((is_fixed_day(date_of(bag, on, day, moment.today)),))],
            [NthClause(((-1, DAY),)), PeriodClause(day.unit)],
        ]
        if day.unit in ("month", "quarter", "year"):
            raise bag.ambiguity(on, options, "the end of this one, or of every one? Say the date, or “every”")
        raise bag.ambiguity(on, options[:1], "say the day")
    found = date_of(bag, on, day, moment.today)
    if moment.calendar and isinstance(day, NthDay) and day.what == BUSINESS_DAY:
        why = "a calendar does not move a single day; give its date"
        raise bag.ambiguity(on, [[OnClause((is_fixed_day(found),))]], why)
    at = _needed(bag, at, moment)
    if at == Time(0, sure=True):
        _ask_which_midnight(bag, on, found)
    return _first_coming(_this_or_later(day, found, moment), at, moment)


def _this_or_later(day: Day, found: date, moment: PhraseContext) -> list[date]:
    """The date that was found for a day, and the one to take where its time of day is past."""
    if isinstance(day, NamedDay) and day.which in ("", "coming"):
        return [found, found + timedelta(7)]
    if isinstance(day, Date) and day.year is None and found == moment.today:
        return [found, months_later(found, 12)]
    if isinstance(day, DayNumber) and not day.month:
        return [found, months_later(found, 1)]
    return [found]


def _on_each(
    bag: ClauseBag, each: OnEachClause, times: tuple[Time, ...], moment: PhraseContext
) -> Translation:
    """Local times on each of several days, which stay local times."""
    times = times or (_needed(bag, None, moment),)
    found: set[datetime] = set()
    for day in each.days:
        choices = dates_of(day, moment.today)
        if len(choices) > 1:
            raise PhraseRefused("one of the days can be read in two ways; give its date")
        days = _this_or_later(day, choices[0], moment)
        found |= {_first_coming(days, at, moment) for at in times}
    if len(found) > _MAX_DATES:
        raise PhraseRefused(f"these are more than {_MAX_DATES} dates; make several schedules")
    single = [_at(local, moment) for local in sorted(found)]
    warnings = tuple(dict.fromkeys(warning for one in single for warning in one.warnings))
    if len(single) == 1:
        return single[0]
    return Translation(dates_text(sorted(found), moment), warnings=warnings)


def _ask_which_midnight(bag: ClauseBag, on: OnClause, day: date) -> NoReturn:
    """Midnight of a day may be its beginning or its end."""
    rest = tuple(clause for clause in bag.clauses if clause != on and not isinstance(clause, TimesClause))
    either = [OnClause((is_fixed_day(which),)) for which in (day, day + timedelta(1))]
    why = "midnight may be the beginning or the end of that day; say 00:00 and the date"
    raise AmbiguousPhrase(why, [(*rest, one, TimesClause((Time(0),))) for one in either])


def _thirteenths(wanted: WeekdayAndDayClause, today: date) -> list[date]:
    """The coming days of that number that fall on that weekday: within 14 months there is one, but for the
    end of the month, which may take some years."""
    found = []
    for ahead in range(12 * 12):
        month = months_later(today.replace(day=1), ahead)
        day = date_or_none(month.year, month.month, wanted.day)
        if day is not None and day >= today and day.weekday() == wanted.weekday:
            found.append(day)
        if len(found) == 2:
            break
    return found


def _first_coming(days: list[date], at: Time, moment: PhraseContext) -> datetime:
    """The local time on the first of several days on which it is still to come."""
    for day in days:
        found = datetime.combine(day, at.clock)
        if moment.local(found) > moment.at:
            return found
    raise PhraseRefused(_PAST)

"""The beginning and the end of what repeats, as instants."""

from datetime import datetime, time, timedelta

from scheduler_app.domain.triggers.phrase.clauses import For, Start, Until
from scheduler_app.domain.triggers.phrase.moments import MonthOfYear, Time
from scheduler_app.domain.triggers.phrase.words import MONTHS_OF, SECONDS_OF

from .bag import Bag
from .calendar_days import date_of, fixed, months_later
from .outcome import Moment, Refused

_SECOND = timedelta(seconds=1)


def _at(time_: Time) -> time:
    if time_.bare and time_.hour <= 6:
        raise Refused("say the time of the beginning or the end in full, for example 05:00 or 5pm")
    return time(time_.hour, time_.minute, time_.second)


def next_time(time_: Time, moment: Moment) -> datetime:
    """The next instant with that time of day."""
    found = moment.local(datetime.combine(moment.today, _at(time_)))
    if found <= moment.at:
        found = moment.local(datetime.combine(moment.today + timedelta(1), _at(time_)))
    return found


def start_instant(bag: Bag, start: Start, moment: Moment, clock: Time | None) -> datetime:
    """From when on; `clock` is the time of day that goes with its day, midnight if there is none.

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


def until_instant(bag: Bag, until: Until, moment: Moment, clock: Time | None) -> datetime:
    """Up to when, inclusive; a day without a time counts as a whole."""
    if until.day is None:
        assert until.time is not None  # noqa: S101 - the grammar reads a day or a time
        return next_time(until.time, moment)
    if isinstance(until.day, MonthOfYear):
        _ask_which_end(bag, until, until.day, moment)
    day = date_of(bag, until, until.day, moment.today)
    at = until.time or clock
    return moment.local(datetime.combine(day, time(23, 59, 59) if at is None else _at(at)))


def _ask_which_end(bag: Bag, until: Until, month: MonthOfYear, moment: Moment) -> None:
    first = date_of(bag, Until(month), month, moment.today)
    if month.year is None and first <= moment.today:
        first = months_later(first, 12)
    before, end = first - timedelta(1), months_later(first, 1) - timedelta(1)
    options = [[Until(fixed(day), until.time, until.at)] for day in (before, end)]
    raise bag.ambiguity(until, options, "the month may be meant with its days or without; say the last day")


def end_after(length: For, start: datetime | None, moment: Moment) -> datetime:
    """The last instant of so long from the start, or from now."""
    base = moment.at if start is None else start
    if length.unit in SECONDS_OF:
        found = base + timedelta(seconds=_bounded(length.count * SECONDS_OF[length.unit], 10**10))
    else:
        day = base.astimezone(moment.zone).date()
        days = {"day": 1, "week": 7}.get(length.unit)
        if days is not None:
            later = day + timedelta(_bounded(days * length.count, 100_000))
        else:
            later = months_later(day, _bounded(MONTHS_OF[length.unit] * length.count, 3_000))
        clock = base.astimezone(moment.zone).time()
        found = moment.local(datetime.combine(later, clock))
    # Counted from a beginning that is itself an occurrence, the end is the first one too many.
    return found if start is None else found - _SECOND


def _bounded(count: int, limit: int) -> int:
    if not 0 < count <= limit:
        raise Refused("so long is too long, or no time at all")
    return count

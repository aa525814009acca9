"""Phrases that join two schedules by "and": "mondays at 9 and fridays at 17"."""

from dataclasses import replace

from .clauses import (
    Clause,
    InZone,
    MonthDays,
    Nth,
    On,
    Once,
    PartOfDay,
    PastHour,
    Period,
    Repeat,
    Times,
    WeekdayAndDay,
    Weekdays,
    Window,
    YearlyDates,
)
from .meaning.repeated import repeats
from .moments import Date, DayNumber, NamedDay
from .reading import Read
from .reading.days import yearly_dates
from .words import SECONDS_OF

MAX_SEGMENTS = 4
_DAYS = (Weekdays, MonthDays, Nth, YearlyDates, Repeat, On, WeekdayAndDay)
_WHOLE = (*_DAYS, Times, PastHour, Window, Period)


def segments(clauses: tuple[Read, ...]) -> list[tuple[Clause, ...]] | None:
    """The parts that each have days of their own, with times of their own or those of all; None when the
    phrase has no such parts."""
    return _with_their_times(clauses) or _with_the_same_times(clauses)


def _with_the_same_times(clauses: tuple[Read, ...]) -> list[tuple[Clause, ...]] | None:
    """ "every friday and on the last day of the month at 9": days of several kinds, and the times of all."""
    if not clauses or not all(isinstance(read.clause, _WHOLE) for read in clauses):
        return None
    edge = next((read for read in (clauses[-1], clauses[0]) if isinstance(read.clause, Times)), None)
    rest = [read for read in clauses if read is not edge]
    parts: list[list[Clause]] = [[]]
    for read in rest:
        if read.joined and any(isinstance(one, _DAYS) for one in parts[-1]):
            parts.append([])
        parts[-1].append(read.clause)
    if edge is None or any(isinstance(read.clause, Times) for read in rest):
        return None
    if not 1 < len(parts) <= MAX_SEGMENTS or not all(repeats(tuple(part)) for part in parts):
        return None
    return [(*part, edge.clause) for part in parts]


def _with_their_times(clauses: tuple[Read, ...]) -> list[tuple[Clause, ...]] | None:
    parts: list[list[Clause]] = [[]]
    for read in clauses:
        if read.joined and _is_whole(parts[-1]):
            parts.append([])
        if not isinstance(read.clause, _WHOLE):
            return None
        parts[-1].append(read.clause)
    if not 1 < len(parts) <= MAX_SEGMENTS or not all(_is_whole(part) for part in parts):
        return None
    if not repeats(tuple(parts[0])):
        return None  # "monday at 9 and tuesday at 10" may be two single days
    return [tuple(_repeating(one) for one in part) for part in parts]


def _is_whole(part: list[Clause]) -> bool:
    """Whether it says on which days, and when on them."""
    days = any(isinstance(one, _DAYS) and not _is_short(one) for one in part)
    return days and any(isinstance(one, Times | PastHour) or _is_short(one) for one in part)


def _is_short(clause: Clause) -> bool:
    """Whether it is an interval within a day."""
    return isinstance(clause, Repeat) and clause.unit in SECONDS_OF


def single_days(clauses: tuple[Read, ...]) -> list[tuple[Clause, ...]] | None:
    """The parts of "monday at 9 and tuesday at 10", each a single day with its time; None where there are no
    such parts, or where one of them repeats."""
    shared: list[Clause] = [one.clause for one in clauses if isinstance(one.clause, InZone | Once)]
    rest = [one for one in clauses if one.clause not in shared]
    times = [one for one in rest if isinstance(one.clause, Times)]
    if len(times) == 1 and times[0] in (rest[0], rest[-1]):
        shared.append(times[0].clause)  # the times of all
        rest.remove(times[0])
    parts: list[list[Clause]] = [[]]
    for one in rest:
        if one.joined and (len(times) == 1 or any(isinstance(each, Times) for each in parts[-1])):
            parts.append([])
        parts[-1].append(one.clause)
    if not 1 < len(parts) <= MAX_SEGMENTS or not times:
        return None
    whole = [(*part, *shared) for part in parts]
    for part in whole:
        kinds = sorted(type(one).__name__ for one in part if not isinstance(one, InZone | Once | PartOfDay))
        if kinds not in (["On", "Times"], ["MonthDays", "Times"]) or repeats(part):
            return None
    return whole


def each_time(parts: list[tuple[Clause, ...]]) -> list[tuple[Clause, ...]] | None:
    """The same days from now on: every week, month or year; None where one of them comes only once."""
    again = [tuple(_again(one) for one in part) for part in parts]
    return again if all(repeats(part) for part in again) else None


def _again(clause: Clause) -> Clause:
    if isinstance(clause, MonthDays):
        return replace(clause, every=True)
    if isinstance(clause, On) and len(clause.days) == 1:
        day = clause.days[0]
        if isinstance(day, Date) and yearly_dates((day,)):
            return YearlyDates((day,), every=True)
        if isinstance(day, DayNumber) and not day.month:
            return MonthDays((day.day,), every=True)
    return _repeating(clause)


def _repeating(clause: Clause) -> Clause:
    """ "every monday at 9 and friday at 17": the second day repeats as the first one does."""
    if isinstance(clause, On) and len(clause.days) == 1:
        day = clause.days[0]
        if isinstance(day, NamedDay) and not day.which:
            return Weekdays((day.weekday,))
    return clause

"""Phrases that join two schedules by "and": "mondays at 9 and fridays at 17"."""

from .clauses import (
    Clause,
    MonthDays,
    Nth,
    On,
    PastHour,
    Period,
    Repeat,
    Times,
    WeekdayAndDay,
    Weekdays,
    YearlyDates,
)
from .meaning.repeated import repeats
from .moments import NamedDay
from .reading import Read

MAX_SEGMENTS = 4
_DAYS = (Weekdays, MonthDays, Nth, YearlyDates, Repeat, On, WeekdayAndDay)
_WHOLE = (*_DAYS, Times, Period)


def segments(clauses: tuple[Read, ...]) -> list[tuple[Clause, ...]] | None:
    """The parts that each have days and times of their own; None when the phrase has no such parts."""
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
    return any(isinstance(one, _DAYS) for one in part) and any(
        isinstance(one, Times | PastHour) for one in part
    )


def _repeating(clause: Clause) -> Clause:
    """ "every monday at 9 and friday at 17": the second day repeats as the first one does."""
    if isinstance(clause, On) and len(clause.days) == 1:
        day = clause.days[0]
        if isinstance(day, NamedDay) and not day.which:
            return Weekdays((day.weekday,))
    return clause

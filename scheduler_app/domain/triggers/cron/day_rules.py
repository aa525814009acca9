"""Which days a cron expression names, as parts of recurrence rules.

A rule takes the intersection of its parts, so each thing that the two day fields can ask for is one
combination of months, days of the month and weekdays, or a few: "the weekday nearest to the 15th" is the
15th from Monday to Friday, Friday the 14th, and Monday the 16th.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from .day_fields import MonthDays, Weekdays
from .errors import refused
from .expression import Expression

_MONDAY: Final = 0
_FRIDAY: Final = 4
WORKING: Final = (0, 1, 2, 3, 4)
_YEAR: Final = tuple(range(1, 13))
_FEBRUARY: Final = (2,)
_WITHOUT_FEBRUARY: Final = tuple(month for month in _YEAR if month != 2)
_OF_30_DAYS: Final = (4, 6, 9, 11)
_OF_31_DAYS: Final = (1, 3, 5, 7, 8, 10, 12)
# Counted from the end of the year, 27 February of a leap year and 26 February of another are day -309: beside
# the day of the month, such a number tells whether the year is a leap year.
_LEAP_FEBRUARY_27: Final = -309
_LEAP_FEBRUARY_28: Final = -308
_COMMON_FEBRUARY_26: Final = -309


class _Piece(NamedTuple):
    """Weekdays on one day of some months; with `year_day` in leap years only, or in others only."""

    months: tuple[int, ...]
    month_day: int
    weekdays: tuple[int, ...]
    year_day: int = 0


@dataclass(frozen=True, slots=True)
class DayRule:
    """Days that satisfy every part; an empty part allows all. `weekdays` are `(rank, weekday)`: rank 0 for
    those of every week, 1 for the first of the month, -1 for the last; Monday is 0."""

    months: tuple[int, ...] = ()
    month_days: tuple[int, ...] = ()
    weekdays: tuple[tuple[int, int], ...] = ()
    year_days: tuple[int, ...] = ()
    position: int = 0
    """1 or -1: only the first or the last of these days in each month."""

    @property
    def ranked(self) -> bool:
        """Whether a weekday counts in its month."""
        return any(rank for rank, _ in self.weekdays)


def day_rules(of: Expression, *, ranks: bool, positions: bool) -> list[DayRule]:
    """Rules whose days together are those of `of`, for rules that may rank weekdays (BYDAY=2MO) and pick by
    position (BYSETPOS), or not. Empty: no day satisfies both day fields."""
    months = () if len(of.months.numbers) == len(_YEAR) else of.months.numbers
    anything = [DayRule(months)]
    if of.both_days:
        if of.month_days.everything and of.weekdays.everything:
            return anything
        if of.weekdays.everything:
            return _of_month(of.month_days, months, positions)
        if of.month_days.everything:
            return _of_week(of.weekdays, months, ranks)
        return _merged(
            found
            for left in _of_month(of.month_days, months, False)
            for right in _of_week(of.weekdays, months, ranks)
            for found in _both(left, right)
        )
    if of.month_days.everything or of.weekdays.everything:
        return anything
    return _of_month(of.month_days, months, positions) + _of_week(of.weekdays, months, ranks)


def _of_month(days: MonthDays, months: tuple[int, ...], positions: bool) -> list[DayRule]:
    plain = [DayRule(months, days.numbers)] if days.numbers else []
    nearest = list(days.nearest)
    picked = []
    if positions and days.nearest == (1,):
        picked.append(DayRule(months, (), _every(*WORKING), position=1))
        nearest = []
    if positions and days.last_weekday:
        picked.append(DayRule(months, (), _every(*WORKING), position=-1))
    found = [rule for day in nearest for rule in _nearest(day, months)]
    if days.last_weekday and not positions:
        found += [
            DayRule(months, (-1,), _every(*WORKING)),
            DayRule(months, (-3, -2), _every(_FRIDAY)),
        ]
    return plain + picked + _merged(found)


def _nearest(day: int, given: tuple[int, ...]) -> Iterator[DayRule]:
    """The weekday nearest to a day of each month that has it, within that month."""
    pieces = [
        _Piece(_YEAR, day, WORKING),
        *_before_saturday(day),
        # Only a day that is not the last of its month has a next one.
        *([_Piece(_YEAR, day + 1, (_MONDAY,))] if day < 31 else []),
        *_before_last_sunday(day),
    ]
    for piece in pieces:
        months = tuple(month for month in given or _YEAR if month in piece.months)
        if months:
            year_days = (piece.year_day,) if piece.year_day else ()
            yield DayRule(
                () if months == _YEAR else months, (piece.month_day,), _every(*piece.weekdays), year_days
            )


def _before_saturday(day: int) -> list[_Piece]:
    """What stands for a Saturday: the Friday before it, but the Monday after the first of a month."""
    if day == 1:
        return [_Piece(_YEAR, 3, (_MONDAY,))]
    if day == 29:
        return [
            _Piece(_WITHOUT_FEBRUARY, 28, (_FRIDAY,)),
            _Piece(_FEBRUARY, 28, (_FRIDAY,), _LEAP_FEBRUARY_28),
        ]
    months = {30: _WITHOUT_FEBRUARY, 31: _OF_31_DAYS}.get(day, _YEAR)
    return [_Piece(months, day - 1, (_FRIDAY,))]


def _before_last_sunday(day: int) -> list[_Piece]:
    """What stands for a Sunday that is the last day of its month: the Friday before it."""
    friday = (_FRIDAY,)
    pieces = {
        28: _Piece(_FEBRUARY, 26, friday, _COMMON_FEBRUARY_26),
        29: _Piece(_FEBRUARY, 27, friday, _LEAP_FEBRUARY_27),
        30: _Piece(_OF_30_DAYS, 28, friday),
        31: _Piece(_OF_31_DAYS, 29, friday),
    }
    return [pieces[day]] if day in pieces else []


def _of_week(days: Weekdays, months: tuple[int, ...], ranks: bool) -> list[DayRule]:
    plain = _every(*days.days)
    if ranks:
        return [DayRule(months, (), plain + days.ranked)]
    found = [DayRule(months, (), plain)] if plain else []
    for rank, weekday in days.ranked:
        first = 7 * rank - 6 if rank > 0 else -7
        month_days = tuple(day for day in range(first, first + 7) if day <= 31)
        found.append(DayRule(months, month_days, _every(weekday)))
    return _merged(found)


def _both(left: DayRule, right: DayRule) -> Iterator[DayRule]:
    """What two rules for the same months have in common."""
    weekdays = right.weekdays
    if left.weekdays:
        working = {weekday for _, weekday in left.weekdays}
        weekdays = tuple(day for day in right.weekdays if day[1] in working)
    month_days = left.month_days
    if right.month_days:
        if len({day > 0 for day in left.month_days + right.month_days}) > 1:
            raise refused(
                "days counted from the beginning of the month and from its end cannot be combined where "
                "minutes or hours begin with *; list the hours, such as 0-23, and the minutes"
            )
        month_days = tuple(day for day in left.month_days if day in right.month_days)
    if weekdays and month_days:
        yield replace(left, month_days=month_days, weekdays=weekdays)


def _merged(rules: Iterable[DayRule]) -> list[DayRule]:
    """The same days in fewer rules: those that differ in nothing but their days of the month become one, and
    then those that differ in nothing but their weekdays."""
    by_weekdays: dict[DayRule, set[int]] = {}
    kept: list[DayRule] = []
    for rule in rules:
        if rule.year_days or not rule.month_days:
            kept.append(rule)
        else:
            by_weekdays.setdefault(replace(rule, month_days=()), set()).update(rule.month_days)
    by_month_days: dict[DayRule, set[tuple[int, int]]] = {}
    for rule, month_days in by_weekdays.items():
        joined = replace(rule, month_days=tuple(sorted(month_days)), weekdays=())
        by_month_days.setdefault(joined, set()).update(rule.weekdays)
    found = [replace(rule, weekdays=tuple(sorted(days))) for rule, days in by_month_days.items()]
    return list(dict.fromkeys(found + kept))


def _every(*weekdays: int) -> tuple[tuple[int, int], ...]:
    return tuple((0, weekday) for weekday in weekdays)

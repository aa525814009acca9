"""On which days a phrase repeats: exactly one way of naming them, put into the BY parts of rules."""

from dataclasses import dataclass

from scheduler_app.domain.recurrence import OnHoliday
from scheduler_app.domain.triggers.phrase.clauses import (
    BUSINESS_DAY,
    DAY,
    Nth,
    Repeat,
    Roll,
    WeekdayAndDay,
    Weekdays,
    YearlyDates,
)
from scheduler_app.domain.triggers.phrase.rules import DayRule
from scheduler_app.domain.triggers.phrase.words import WEEKDAY_CODES

from .outcome import Moment, Refused

WORKDAYS = "MO,TU,WE,TH,FR"
QUARTER_STARTS = (1, 4, 7, 10)
_QUARTER_ENDS = (3, 6, 9, 12)


def days_of(days: tuple[int, ...]) -> str:
    return ",".join(WEEKDAY_CODES[day] for day in sorted(set(days)))


def numbers(values: tuple[int, ...]) -> str:
    return ",".join(str(value) for value in sorted(set(values), key=lambda value: (value < 0, value)))


def by_month(months: tuple[int, ...]) -> tuple[tuple[str, str], ...]:
    return (("BYMONTH", numbers(months)),) if months else ()


@dataclass(frozen=True, slots=True)
class NamedDays:
    """The day rules of a phrase, what a calendar does to them, and how many of their units they are apart."""

    rules: tuple[DayRule, ...]
    on_holiday: OnHoliday | None = None
    interval: int = 1

    def apart(self, step: Repeat | None) -> int:
        """How many units lie between two, where the phrase may name an interval too."""
        return self.interval if step is None else max(self.interval, step.count)


def weekly(days: Weekdays, months: tuple[int, ...], moment: Moment) -> NamedDays:
    """Days of the week. With a calendar, every day, of which the calendar takes out those that are none."""
    if days.business and moment.calendar:
        return NamedDays((DayRule("DAILY", by_month(months)),), "skip")
    parts = (*by_month(months), ("BYDAY", days_of(days.days)))
    return NamedDays((DayRule("WEEKLY", parts),), "skip" if days.business else None)


def friday_the_13th(found: WeekdayAndDay, months: tuple[int, ...]) -> NamedDays:
    parts = (*by_month(months), ("BYDAY", WEEKDAY_CODES[found.weekday]), ("BYMONTHDAY", str(found.day)))
    return NamedDays((DayRule("MONTHLY", parts),))


def yearly(found: YearlyDates, freq: str) -> NamedDays:
    """Days of the year, those of the same months or of the same numbers in one rule."""
    by_month_: dict[int, list[int]] = {}
    for day in found.dates:
        by_month_.setdefault(day.month, []).append(day.day)
    same: dict[tuple[int, ...], list[int]] = {}
    for month, days in by_month_.items():
        same.setdefault(tuple(sorted(set(days))), []).append(month)
    rules = [
        DayRule(freq, (("BYMONTH", numbers(tuple(months))), ("BYMONTHDAY", numbers(days))))
        for days, months in same.items()
    ]
    return NamedDays(tuple(rules))


def monthly(days: tuple[int, ...], months: tuple[int, ...], roll: Roll | None, moment: Moment) -> NamedDays:
    """Days of the month, and with `roll` the business day before or after those that are none."""
    if roll is None:
        return NamedDays((DayRule("MONTHLY", (*by_month(months), ("BYMONTHDAY", numbers(days)))),))
    direction: OnHoliday = "previous" if roll.direction == "previous" else "next"
    if moment.calendar:
        parts = (*by_month(months), ("BYMONTHDAY", numbers(days)))
        return NamedDays((DayRule("MONTHLY", parts),), direction)
    return NamedDays(tuple(_rolled(day, months, direction) for day in days), direction)


def _rolled(day: int, months: tuple[int, ...], direction: OnHoliday) -> DayRule:
    """The nearest weekday before or after a day: within three days there is always one."""
    step = -1 if direction == "previous" else 1
    around = (day, day + step, day + 2 * step)
    if ((day < 0) != (step < 0) and abs(day) < 3) or (day > 0 and not 1 <= min(around) < max(around) <= 28):
        raise Refused(
            "the business day may lie in another month, or the month may lack that day; leave these "
            "words out and give the schedule a calendar and on_holiday"
        )
    parts = (*by_month(months), ("BYDAY", WORKDAYS), ("BYMONTHDAY", numbers(around)))
    return DayRule("MONTHLY", (*parts, ("BYSETPOS", "1" if step > 0 else "-1")))


def ordinal(found: Nth, unit: str, months: tuple[int, ...], moment: Moment) -> NamedDays:
    """The first Monday, the last business day, the third to last day: of a month, a quarter or a year."""
    rules: list[DayRule] = []
    rolls: set[OnHoliday | None] = set()
    by_day: dict[tuple[int, ...], list[str]] = {}
    by_month_day: dict[tuple[int, ...], list[int]] = {}
    by_position: dict[tuple[int, ...], list[int]] = {}
    for number, what in found.positions:
        within = months or _months_in(unit, number)
        if what == DAY and unit == "year" and not months and number > 0:
            if number > 366:
                raise Refused(f"a year has no day {number}")
            rules.append(DayRule("YEARLY", (("BYYEARDAY", str(number)),)))
            continue
        if abs(number) > (31 if what == DAY else 23 if isinstance(what, str) else 5):
            raise Refused(f"no month has so many of them ({number})")
        if (
            unit in ("quarter", "year")
            and not months
            and abs(number) > (28 if what == DAY else 20 if isinstance(what, str) else 4)
        ):
            raise Refused(
                "so far from the edge of a quarter or a year nothing can be counted; name the month"
            )
        if what == DAY:
            by_month_day.setdefault(within, []).append(number)
        elif isinstance(what, int):
            by_day.setdefault(within, []).append(f"{number}{WEEKDAY_CODES[what]}")
        else:
            if what == BUSINESS_DAY:
                rolls.add(_roll_of(number))
                if moment.calendar:
                    by_month_day.setdefault(within, []).append(_edge(number))
                    continue
            by_position.setdefault(within, []).append(number)
    rules += [
        DayRule("MONTHLY", (*by_month(m), ("BYMONTHDAY", numbers(tuple(d))))) for m, d in by_month_day.items()
    ]
    rules += [DayRule("MONTHLY", (*by_month(m), ("BYDAY", ",".join(d)))) for m, d in by_day.items()]
    rules += [
        DayRule("MONTHLY", (*by_month(m), ("BYDAY", WORKDAYS), ("BYSETPOS", numbers(tuple(d)))))
        for m, d in by_position.items()
    ]
    if moment.calendar and len(rolls) > 1:
        raise Refused("with a calendar the first and the last business day need two schedules")
    return NamedDays(tuple(rules), rolls.pop() if len(rolls) == 1 else None)


def _roll_of(number: int) -> OnHoliday | None:
    if number == 1:
        return "next"
    return "previous" if number == -1 else None


def _edge(number: int) -> int:
    """With a calendar, the first and the last business day are the first and the last day, rolled."""
    if number not in (1, -1):
        raise Refused(
            "with a calendar only the first and the last business day can be found; leave the calendar out"
        )
    return number


def _months_in(unit: str, number: int) -> tuple[int, ...]:
    if unit == "quarter":
        return QUARTER_STARTS if number > 0 else _QUARTER_ENDS
    if unit == "year":
        return (1,) if number > 0 else (12,)
    return ()

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
    Weeks,
    WithinMonth,
    YearlyDates,
)
from scheduler_app.domain.triggers.phrase.rules import DayRule
from scheduler_app.domain.triggers.phrase.words import WEEKDAY_CODES

from .outcome import Moment, Refused

WORKDAYS = "MO,TU,WE,TH,FR"
QUARTER_STARTS = (1, 4, 7, 10)
_QUARTER_ENDS = (3, 6, 9, 12)
_EVERY_MONTH_HAS = 28


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


def within_month(
    days: Weekdays | None, within: WithinMonth, months: tuple[int, ...], moment: Moment
) -> NamedDays:
    """Days of the week that fall on certain days of the month; every day where none of the week is named."""
    if days is not None and days.step > 1:
        raise Refused("every other day of the week does not go together with days of the month")
    parts = (*by_month(months), ("BYMONTHDAY", numbers(within.days)))
    by_calendar = days is not None and days.business and moment.calendar
    if days is not None and not by_calendar:
        parts = (*parts, ("BYDAY", days_of(days.days)))
    return NamedDays((DayRule("MONTHLY", parts),), "skip" if days is not None and days.business else None)


def in_weeks(days: Weekdays | None, weeks: Weeks) -> NamedDays:
    """Days of the week in certain weeks of the year; each of the seven where none is named."""
    if days is not None and (days.step > 1 or days.business):
        raise Refused("weeks of the year go together with plain days of the week only")
    by_day = days_of(tuple(range(7)) if days is None else days.days)
    return NamedDays((DayRule("YEARLY", (("BYWEEKNO", numbers(weeks.weeks)), ("BYDAY", by_day))),))


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
    if roll.direction == "nearest":
        return NamedDays(tuple(rule for day in days for rule in _nearest(day, months)))
    direction: OnHoliday = "previous" if roll.direction == "previous" else "next"
    if moment.calendar and not roll.weekday:
        parts = (*by_month(months), ("BYMONTHDAY", numbers(days)))
        return NamedDays((DayRule("MONTHLY", parts),), direction)
    rules = tuple(_rolled(day, months, direction) for day in days)
    return NamedDays(rules, None if roll.weekday else direction)


def _nearest(day: int, months: tuple[int, ...]) -> tuple[DayRule, ...]:
    """The day from Monday to Friday; the Friday before a Saturday, and the Monday after a Sunday."""
    if not 2 <= day <= _EVERY_MONTH_HAS - 1:
        raise Refused("the nearest weekday may lie in another month, or the month may lack that day")
    days = ((WORKDAYS, day), ("FR", day - 1), ("MO", day + 1))
    return tuple(
        DayRule("MONTHLY", (*by_month(months), ("BYDAY", weekdays), ("BYMONTHDAY", str(number))))
        for weekdays, number in days
    )


def _rolled(day: int, months: tuple[int, ...], direction: OnHoliday) -> DayRule:
    """The nearest weekday before or after a day: within three days there is always one."""
    step = -1 if direction == "previous" else 1
    around = (day, day + step, day + 2 * step)
    if ((day < 0) != (step < 0) and abs(day) < 3) or (
        day > 0 and not 1 <= min(around) < max(around) <= _EVERY_MONTH_HAS
    ):
        raise Refused(
            "the business day may lie in another month, or the month may lack that day; leave these "
            "words out and give the schedule a calendar and on_holiday"
        )
    parts = (*by_month(months), ("BYDAY", WORKDAYS), ("BYMONTHDAY", numbers(around)))
    return DayRule("MONTHLY", (*parts, ("BYSETPOS", "1" if step > 0 else "-1")))


def ordinal(found: Nth, unit: str, months: tuple[int, ...], moment: Moment) -> NamedDays:
    """The first Monday, the last business day, the third to last day: of a month, a quarter or a year."""
    if moment.calendar and any(what == BUSINESS_DAY for _, what in found.positions):
        return _open_days(found, unit, months)
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
            by_position.setdefault(within, []).append(number)
    rules += [
        DayRule("MONTHLY", (*by_month(m), ("BYMONTHDAY", numbers(tuple(d))))) for m, d in by_month_day.items()
    ]
    rules += [DayRule("MONTHLY", (*by_month(m), ("BYDAY", ",".join(d)))) for m, d in by_day.items()]
    rules += [
        DayRule("MONTHLY", (*by_month(m), ("BYDAY", WORKDAYS), ("BYSETPOS", numbers(tuple(d)))))
        for m, d in by_position.items()
    ]
    return NamedDays(tuple(rules), rolls.pop() if len(rolls) == 1 else None)


def _open_days(found: Nth, unit: str, months: tuple[int, ...]) -> NamedDays:
    """Business days of a calendar. The first or the last one alone is the first or the last day, rolled;
    others are counted among the days on which it is open."""
    places = tuple(number for number, _ in found.positions)
    if max(map(abs, places)) > (23 if unit == "month" or months else 66 if unit == "quarter" else 262):
        raise Refused(f"no {'month' if months else unit} has so many of them")
    if places in ((1,), (-1,)):
        within = months or _months_in(unit, places[0])
        rule = DayRule("MONTHLY", (*by_month(within), ("BYMONTHDAY", str(places[0]))))
        return NamedDays((rule,), _roll_of(places[0]))
    freq, periods = "MONTHLY", [months]
    if not months and unit != "month":
        freq = "YEARLY"
        quarters = [(first, first + 1, first + 2) for first in QUARTER_STARTS]
        periods = [*quarters] if unit == "quarter" else [()]
    picked = (("BYDAY", days_of(tuple(range(7)))), ("BYSETPOS", numbers(places)))
    return NamedDays(tuple(DayRule(freq, (*by_month(each), *picked)) for each in periods), "uncounted")


def _roll_of(number: int) -> OnHoliday | None:
    if number == 1:
        return "next"
    return "previous" if number == -1 else None


def _months_in(unit: str, number: int) -> tuple[int, ...]:
    if unit == "quarter":
        return QUARTER_STARTS if number > 0 else _QUARTER_ENDS
    if unit == "year":
        return (1,) if number > 0 else (12,)
    return ()

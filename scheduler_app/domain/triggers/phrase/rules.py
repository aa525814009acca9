"""From the days that a phrase names to a plan, and from a plan to RFC 5545 lines: BY parts, times of day
grouped, DTSTART, COUNT and UNTIL set where they are needed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Final

from scheduler_app.domain.recurrence import InvalidRecurrence, OnHoliday
from scheduler_app.domain.recurrence.parsed_text import MAX_RULES
from scheduler_app.domain.recurrence.rules.rule import DAY_NAMES
from scheduler_app.domain.triggers.phrase.clause_bag import PhraseContext, PhraseRefused
from scheduler_app.domain.triggers.phrase.clauses import (
    BUSINESS_DAY,
    DAY,
    NthClause,
    RollClause,
    WeekdayAndDayClause,
    WeekdaysClause,
    WeeksClause,
    WithinMonthClause,
    YearlyDatesClause,
)

MAX_TOTAL: Final = 1_000


@dataclass(frozen=True, slots=True)
class DayRule:
    """On which days: a frequency and its BY parts."""

    freq: str
    parts: tuple[tuple[str, str], ...] = ()

    @classmethod
    def monthly(cls, months: tuple[int, ...], *parts: tuple[str, str]) -> "DayRule":
        """A rule for these months; empty: every month."""
        return cls("MONTHLY", (*by_month(months), *parts))

    def body(self) -> str:
        return ";".join([f"FREQ={self.freq}", *(f"{name}={value}" for name, value in self.parts)])


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that becomes a recurrence set."""

    rules: tuple[str, ...]
    """Bodies without INTERVAL, COUNT and UNTIL."""
    interval: int = 1
    excluded: tuple[str, ...] = ()
    excluded_days: tuple[date, ...] = ()
    first: datetime | None = None
    """Not before this (aware); DTSTART becomes the first occurrence from then on."""
    exact_start: datetime | None = None
    """DTSTART itself (aware), for steps of elapsed time."""
    until: datetime | None = None
    total: int | None = None
    counts_open_days: bool = False
    """Which days it names depends on a calendar: that of the first occurrence is not known here."""


def bodies(days: Iterable[DayRule], seconds: Iterable[int]) -> tuple[str, ...]:
    """One body for each day rule and each group of times of day (seconds since midnight)."""
    found = []
    wanted = sorted(set(seconds))
    grouped = _groups(wanted)
    for rule in days:
        # BYSETPOS would count the times of day too.
        counts_times = any(name == "BYSETPOS" for name, _ in rule.parts)
        groups = [_groups([one])[0] for one in wanted] if counts_times else grouped
        found += [f"{rule.body()};{times}" for times in groups]
    if len(found) > MAX_RULES:
        raise PhraseRefused(
            "too many different times of day for one schedule; take an interval that divides an hour"
        )
    return tuple(found)


def _groups(seconds: Sequence[int]) -> list[str]:
    """BYHOUR, BYMINUTE, BYSECOND lists whose products together are exactly these times."""
    minutes: dict[tuple[int, int], list[int]] = {}
    for second in seconds:
        minutes.setdefault((second // 3_600, second % 3_600 // 60), []).append(second % 60)
    hours: dict[tuple[int, tuple[int, ...]], list[int]] = {}
    for (hour, minute), of_minute in minutes.items():
        hours.setdefault((hour, tuple(of_minute)), []).append(minute)
    groups: dict[tuple[tuple[int, ...], tuple[int, ...]], list[int]] = {}
    for (hour, of_minute_), of_hour in hours.items():
        groups.setdefault((tuple(of_hour), of_minute_), []).append(hour)
    return [
        f"BYHOUR={_list(hour)};BYMINUTE={_list(minute)};BYSECOND={_list(second)}"
        for (minute, second), hour in groups.items()
    ]


def _list(values: Iterable[int]) -> str:
    return ",".join(map(str, values))


def text_of(plan: Plan, moment: PhraseContext) -> str:
    """The lines of a plan. Raises PhraseRefused if it never fires, or if the engine refuses it."""
    try:
        text = "\n".join(_lines(plan, moment))
        if moment.parse(text).after(moment.at) is None:
            raise PhraseRefused("this never happens after now; look at the dates")
    except InvalidRecurrence as error:
        raise PhraseRefused(f"this cannot be scheduled: {error.message}") from None
    return text


def _lines(plan: Plan, moment: PhraseContext) -> list[str]:
    if len(plan.rules) + len(plan.excluded) > MAX_RULES:
        raise PhraseRefused(
            "these are too many different times of day for one schedule; make several schedules"
        )
    start = _start(plan, moment)
    head = [] if start is None else [start]
    tail = [f"EXRULE:{body}" for body in plan.excluded]
    if plan.excluded_days:
        tail.append("EXDATE;VALUE=DATE:" + ",".join(f"{day:%Y%m%d}" for day in plan.excluded_days))
    step = f";INTERVAL={plan.interval}" if plan.interval > 1 else ""
    rules = [f"RRULE:{body}{step}" for body in plan.rules]
    end = plan.until
    if plan.total is not None and len(rules) == 1 and not tail:
        if end is not None:
            raise PhraseRefused("an end and a number of times cannot both be given; give one of them")
        return [*head, f"{rules[0]};COUNT={plan.total}"]
    if plan.total is not None:
        end = _last_of(plan.total, plan, moment, [*head, *rules, *tail])
    until = "" if end is None else f";UNTIL={end.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    return [*head, *(f"{rule}{until}" for rule in rules), *tail]


def _start(plan: Plan, moment: PhraseContext) -> str | None:
    """The DTSTART line, where the beginning matters."""
    if plan.exact_start is not None:
        return _dtstart(plan.exact_start, moment, exact=True)
    if plan.first is None and plan.interval == 1 and not moment.names_zone:
        return None
    lowest = plan.first or moment.at + timedelta(seconds=1)
    without = replace(moment, at=lowest - timedelta(seconds=1))
    # Steps are counted from the first occurrence that there would be without them. Which day that is, only a
    # calendar knows where it counts: then it is not before the first of its times of day.
    bodies_ = [
        f"FREQ=DAILY;{body[body.index('BYHOUR=') :]}" if plan.counts_open_days else body
        for body in plan.rules
    ]
    # The rule begins a day earlier: in an hour that comes twice, `lowest` has no name of its own.
    text = "\n".join([_dtstart(lowest - timedelta(days=1), moment), *(f"RRULE:{body}" for body in bodies_)])
    first = without.parse(text).after(lowest, inclusive=True)
    if first is None:
        raise PhraseRefused("this never happens; look at the dates")
    return _dtstart(first, moment)


def _dtstart(instant: datetime, moment: PhraseContext, *, exact: bool = False) -> str:
    """The content line; `exact` for steps of elapsed time, which no wall clock moves."""
    local = instant.astimezone(moment.zone)
    # The second one of a time that exists twice has no name of its own but the one in UTC.
    if (exact and local.fold) or (moment.names_zone and moment.timezone == "UTC"):
        return f"DTSTART:{instant.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    zone = f";TZID={moment.timezone}" if moment.names_zone else ""
    return f"DTSTART{zone}:{local:%Y%m%dT%H%M%S}"


def dates_text(local: Sequence[datetime], moment: PhraseContext) -> str:
    """The lines of two or more single local times (naive, in order), as `at_local_time` writes one."""
    stamps = [f"{each:%Y%m%dT%H%M%S}" for each in local]
    if not moment.names_zone:
        return f"RDATE:{','.join(stamps)}"
    if moment.timezone == "UTC":
        return f"DTSTART:{stamps[0]}Z\nRDATE:{','.join(f'{stamp}Z' for stamp in stamps[1:])}"
    zone = f"TZID={moment.timezone}"
    return f"DTSTART;{zone}:{stamps[0]}\nRDATE;{zone}:{','.join(stamps[1:])}"


def _last_of(total: int, plan: Plan, moment: PhraseContext, lines: list[str]) -> datetime:
    """The instant of the last of `total` occurrences of several rules together."""
    if total > MAX_TOTAL:
        raise PhraseRefused(
            f"at most {MAX_TOTAL} times can be counted over several times of day; give an end instead"
        )
    start = moment.at if plan.first is None else plan.first
    found = moment.parse("\n".join(lines)).between(start, datetime(9998, 1, 1, tzinfo=UTC), limit=total)
    if not found:
        raise PhraseRefused("this never happens; look at the dates")
    return found[-1]


WORKDAYS = ",".join(DAY_NAMES[:5])
QUARTER_STARTS = (1, 4, 7, 10)
_QUARTER_ENDS = (3, 6, 9, 12)
_EVERY_MONTH_HAS = 28
#: Where the first or the last business day goes on which a calendar is closed.
_ROLLS: Final[dict[int, OnHoliday]] = {1: "next", -1: "previous"}


def days_of(days: tuple[int, ...]) -> str:
    return ",".join(DAY_NAMES[day] for day in sorted(set(days)))


def numbers(values: Iterable[int]) -> str:
    return ",".join(str(value) for value in sorted(set(values), key=lambda value: (value < 0, value)))


def by_month(months: tuple[int, ...]) -> tuple[tuple[str, str], ...]:
    return (("BYMONTH", numbers(months)),) if months else ()


@dataclass(frozen=True, slots=True)
class NamedDays:
    """The day rules of a phrase, what a calendar does to them, and how many of their units they are apart."""

    rules: tuple[DayRule, ...]
    on_holiday: OnHoliday | None = None
    interval: int = 1


def weekly(days: WeekdaysClause, months: tuple[int, ...], moment: PhraseContext) -> NamedDays:
    """Days of the week. With a calendar, every day, of which the calendar takes out those that are none."""
    if days.business and moment.calendar:
        return NamedDays((DayRule("DAILY", by_month(months)),), "skip")
    parts = (*by_month(months), ("BYDAY", days_of(days.days)))
    return NamedDays((DayRule("WEEKLY", parts),), "skip" if days.business else None)


def within_month(
    days: WeekdaysClause | None, within: WithinMonthClause, months: tuple[int, ...], moment: PhraseContext
) -> NamedDays:
    """Days of the week that fall on certain days of the month; every day where none of the week is named."""
    if days is not None and days.step > 1:
        raise PhraseRefused("every other day of the week does not go together with days of the month")
    parts = (*by_month(months), ("BYMONTHDAY", numbers(within.days)))
    by_calendar = days is not None and days.business and moment.calendar
    if days is not None and not by_calendar:
        parts = (*parts, ("BYDAY", days_of(days.days)))
    return NamedDays((DayRule("MONTHLY", parts),), "skip" if days is not None and days.business else None)


def in_weeks(days: WeekdaysClause | None, weeks: WeeksClause) -> NamedDays:
    """Days of the week in certain weeks of the year; each of the seven where none is named."""
    if days is not None and (days.step > 1 or days.business):
        raise PhraseRefused("weeks of the year go together with plain days of the week only")
    by_day = days_of(tuple(range(7)) if days is None else days.days)
    return NamedDays((DayRule("YEARLY", (("BYWEEKNO", numbers(weeks.weeks)), ("BYDAY", by_day))),))


def friday_the_13th(found: WeekdayAndDayClause, months: tuple[int, ...]) -> NamedDays:
    parts = ("BYDAY", DAY_NAMES[found.weekday]), ("BYMONTHDAY", str(found.day))
    return NamedDays((DayRule.monthly(months, *parts),))


def yearly(found: YearlyDatesClause, freq: str) -> NamedDays:
    """Days of the year, those of the same months or of the same numbers in one rule."""
    by_month_: dict[int, list[int]] = {}
    for day in found.dates:
        by_month_.setdefault(day.month, []).append(day.day)
    same: dict[tuple[int, ...], list[int]] = {}
    for month, days in by_month_.items():
        same.setdefault(tuple(sorted(set(days))), []).append(month)
    rules = [
        DayRule(freq, (("BYMONTH", numbers(months)), ("BYMONTHDAY", numbers(days))))
        for days, months in same.items()
    ]
    return NamedDays(tuple(rules))


def monthly(
    days: tuple[int, ...], months: tuple[int, ...], roll: RollClause | None, moment: PhraseContext
) -> NamedDays:
    """Days of the month, and with `roll` the business day before or after those that are none."""
    if roll is None:
        return NamedDays((DayRule.monthly(months, ("BYMONTHDAY", numbers(days))),))
    if roll.direction == "nearest":
        return NamedDays(tuple(rule for day in days for rule in _nearest(day, months)))
    direction: OnHoliday = "previous" if roll.direction == "previous" else "next"
    if moment.calendar and not roll.weekday:
        return NamedDays((DayRule.monthly(months, ("BYMONTHDAY", numbers(days))),), direction)
    rules = tuple(_rolled(day, months, direction) for day in days)
    return NamedDays(rules, None if roll.weekday else direction)


def _nearest(day: int, months: tuple[int, ...]) -> tuple[DayRule, ...]:
    """The day from Monday to Friday; the Friday before a Saturday, and the Monday after a Sunday."""
    if not 2 <= day <= _EVERY_MONTH_HAS - 1:
        raise PhraseRefused("the nearest weekday may lie in another month, or the month may lack that day")
    days = ((WORKDAYS, day), ("FR", day - 1), ("MO", day + 1))
    return tuple(
        DayRule.monthly(months, ("BYDAY", weekdays), ("BYMONTHDAY", str(number))) for weekdays, number in days
    )


def _rolled(day: int, months: tuple[int, ...], direction: OnHoliday) -> DayRule:
    """The nearest weekday before or after a day: within three days there is always one."""
    step = -1 if direction == "previous" else 1
    around = (day, day + step, day + 2 * step)
    if ((day < 0) != (step < 0) and abs(day) < 3) or (
        day > 0 and not 1 <= min(around) < max(around) <= _EVERY_MONTH_HAS
    ):
        raise PhraseRefused(
            "the business day may lie in another month, or the month may lack that day; leave these "
            "words out and give the schedule a calendar and on_holiday"
        )
    position = "1" if step > 0 else "-1"
    return DayRule.monthly(
        months, ("BYDAY", WORKDAYS), ("BYMONTHDAY", numbers(around)), ("BYSETPOS", position)
    )


def ordinal(found: NthClause, unit: str, months: tuple[int, ...], moment: PhraseContext) -> NamedDays:
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
                raise PhraseRefused(f"a year has no day {number}")
            rules.append(DayRule("YEARLY", (("BYYEARDAY", str(number)),)))
            continue
        # What a month has at most, and at least.
        most, least = (31, 28) if what == DAY else (23, 20) if isinstance(what, str) else (5, 4)
        if abs(number) > most:
            raise PhraseRefused(f"no month has so many of them ({number})")
        if unit in ("quarter", "year") and not months and abs(number) > least:
            raise PhraseRefused(
                "so far from the edge of a quarter or a year nothing can be counted; name the month"
            )
        if what == DAY:
            by_month_day.setdefault(within, []).append(number)
        elif isinstance(what, int):
            by_day.setdefault(within, []).append(f"{number}{DAY_NAMES[what]}")
        else:
            if what == BUSINESS_DAY:
                rolls.add(_ROLLS.get(number))
            by_position.setdefault(within, []).append(number)
    rules += [DayRule.monthly(m, ("BYMONTHDAY", numbers(d))) for m, d in by_month_day.items()]
    rules += [DayRule.monthly(m, ("BYDAY", ",".join(d))) for m, d in by_day.items()]
    rules += [
        DayRule.monthly(m, ("BYDAY", WORKDAYS), ("BYSETPOS", numbers(d))) for m, d in by_position.items()
    ]
    return NamedDays(tuple(rules), rolls.pop() if len(rolls) == 1 else None)


def _open_days(found: NthClause, unit: str, months: tuple[int, ...]) -> NamedDays:
    """Business days of a calendar. The first or the last one alone is the first or the last day, rolled;
    others are counted among the days on which it is open."""
    places = tuple(number for number, _ in found.positions)
    if max(map(abs, places)) > (23 if unit == "month" or months else 66 if unit == "quarter" else 262):
        raise PhraseRefused(f"no {'month' if months else unit} has so many of them")
    if places in ((1,), (-1,)):
        within = months or _months_in(unit, places[0])
        return NamedDays((DayRule.monthly(within, ("BYMONTHDAY", str(places[0]))),), _ROLLS.get(places[0]))
    freq, periods = "MONTHLY", [months]
    if not months and unit != "month":
        freq = "YEARLY"
        quarters = [(first, first + 1, first + 2) for first in QUARTER_STARTS]
        periods = [*quarters] if unit == "quarter" else [()]
    picked = (("BYDAY", days_of(tuple(range(7)))), ("BYSETPOS", numbers(places)))
    return NamedDays(tuple(DayRule(freq, (*by_month(each), *picked)) for each in periods), "uncounted")


def _months_in(unit: str, number: int) -> tuple[int, ...]:
    if unit == "quarter":
        return QUARTER_STARTS if number > 0 else _QUARTER_ENDS
    if unit == "year":
        return (1,) if number > 0 else (12,)
    return ()

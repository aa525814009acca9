"""What a cron expression means: the recurrence rules that fire at the same times, or a refusal that shows
both readings.

At clock changes a rule means what Vixie's cron does. A job with a `*` at the beginning of one of its
times follows the clock: HOURLY, MINUTELY and SECONDLY rules step in elapsed time and look at what the
clock shows. Any other job has fixed times, which come once each day: the other rules do that, with the
schedule's `gap` and `overlap`. A step is never an INTERVAL: `*/7` begins anew each hour.

A rule takes the intersection of its parts, so each thing that the two day fields can ask for is one
combination of months, days of the month and weekdays, or a few: "the weekday nearest to the 15th" is the
15th from Monday to Friday, Friday the 14th, and Monday the 16th.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, NamedTuple

from scheduler_app.domain.errors import InvalidField, InvalidRecurrence
from scheduler_app.domain.recurrence.description import vocabulary as say
from scheduler_app.domain.recurrence.parsed_text import MAX_RULES
from scheduler_app.domain.recurrence.rules.rule import DAY_NAMES
from scheduler_app.domain.recurrence.timeline import DAY, floor_second, to_datetime
from scheduler_app.domain.recurrence.zones import find_zone
from scheduler_app.domain.triggers.cron.expression import (
    Expression,
    MonthDayField,
    SecondsAt,
    WeekdayField,
    cron_error,
    quoted,
    read_expression,
    split_fields,
)
from scheduler_app.domain.triggers.translation import NotUnderstood, Translation, TriggerContext

MONDAY: Final = 0
FRIDAY: Final = 4
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


class _WeekdaysOfDay(NamedTuple):
    """Weekdays on one day of some months; with `year_day` in leap years only, or in others only."""

    months: tuple[int, ...]
    month_day: int
    weekdays: tuple[int, ...]
    year_day: int = 0


@dataclass(frozen=True, slots=True)
class CronDayRule:
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


def day_rules(of: Expression, *, ranks: bool, positions: bool) -> list[CronDayRule]:
    """Rules whose days together are those of `of`, for rules that may rank weekdays (BYDAY=2MO) and pick by
    position (BYSETPOS), or not. Empty: no day satisfies both day fields."""
    months = () if len(of.months.numbers) == len(_YEAR) else of.months.numbers
    anything = [CronDayRule(months)]
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
            for found in _intersection(left, right)
        )
    if of.month_days.everything or of.weekdays.everything:
        return anything
    return _of_month(of.month_days, months, positions) + _of_week(of.weekdays, months, ranks)


def _of_month(days: MonthDayField, months: tuple[int, ...], positions: bool) -> list[CronDayRule]:
    plain = [CronDayRule(months, days.numbers)] if days.numbers else []
    nearest = list(days.nearest)
    picked = []
    if positions and days.nearest == (1,):
        picked.append(CronDayRule(months, (), _every(*WORKING), position=1))
        nearest = []
    if positions and days.last_weekday:
        picked.append(CronDayRule(months, (), _every(*WORKING), position=-1))
    found = [rule for day in nearest for rule in _nearest(day, months)]
    if days.last_weekday and not positions:
        found += [
            CronDayRule(months, (-1,), _every(*WORKING)),
            CronDayRule(months, (-3, -2), _every(FRIDAY)),
        ]
    return plain + picked + _merged(found)


def _nearest(day: int, given: tuple[int, ...]) -> Iterator[CronDayRule]:
    """The weekday nearest to a day of each month that has it, within that month."""
    pieces = [_WeekdaysOfDay(_YEAR, day, WORKING), *_before_saturday(day), *_before_last_sunday(day)]
    if day < 31:  # only a day that is not the last of its month has a next one
        pieces.append(_WeekdaysOfDay(_YEAR, day + 1, (MONDAY,)))
    for piece in pieces:
        months = tuple(month for month in given or _YEAR if month in piece.months)
        if months:
            year_days = (piece.year_day,) if piece.year_day else ()
            yield CronDayRule(
                () if months == _YEAR else months, (piece.month_day,), _every(*piece.weekdays), year_days
            )


def _before_saturday(day: int) -> list[_WeekdaysOfDay]:
    """What stands for a Saturday: the Friday before it, but the Monday after the first of a month."""
    if day == 1:
        return [_WeekdaysOfDay(_YEAR, 3, (MONDAY,))]
    if day == 29:
        return [
            _WeekdaysOfDay(_WITHOUT_FEBRUARY, 28, (FRIDAY,)),
            _WeekdaysOfDay(_FEBRUARY, 28, (FRIDAY,), _LEAP_FEBRUARY_28),
        ]
    months = {30: _WITHOUT_FEBRUARY, 31: _OF_31_DAYS}.get(day, _YEAR)
    return [_WeekdaysOfDay(months, day - 1, (FRIDAY,))]


def _before_last_sunday(day: int) -> list[_WeekdaysOfDay]:
    """What stands for a Sunday that is the last day of its month: the Friday before it."""
    friday = (FRIDAY,)
    pieces = {
        28: _WeekdaysOfDay(_FEBRUARY, 26, friday, _COMMON_FEBRUARY_26),
        29: _WeekdaysOfDay(_FEBRUARY, 27, friday, _LEAP_FEBRUARY_27),
        30: _WeekdaysOfDay(_OF_30_DAYS, 28, friday),
        31: _WeekdaysOfDay(_OF_31_DAYS, 29, friday),
    }
    return [pieces[day]] if day in pieces else []


def _of_week(days: WeekdayField, months: tuple[int, ...], ranks: bool) -> list[CronDayRule]:
    plain = _every(*days.days)
    if ranks:
        return [CronDayRule(months, (), plain + days.ranked)]
    found = [CronDayRule(months, (), plain)] if plain else []
    for rank, weekday in days.ranked:
        month_days = tuple(day for day in days_of_rank(rank) if day <= 31)
        found.append(CronDayRule(months, month_days, _every(weekday)))
    return _merged(found)


def days_of_rank(rank: int) -> range:
    """The days of the month on which the first, second, … or last (-1) of a weekday falls."""
    first = 7 * rank - 6 if rank > 0 else 7 * rank
    return range(first, first + 7)


def _intersection(left: CronDayRule, right: CronDayRule) -> Iterator[CronDayRule]:
    """What two rules for the same months have in common."""
    weekdays = right.weekdays
    if left.weekdays:
        working = {weekday for _, weekday in left.weekdays}
        weekdays = tuple(day for day in right.weekdays if day[1] in working)
    month_days = left.month_days
    if right.month_days:
        if len({day > 0 for day in left.month_days + right.month_days}) > 1:
            raise cron_error(
                "days counted from the beginning of the month and from its end cannot be combined where "
                "minutes or hours begin with *; list the hours, such as 0-23, and the minutes"
            )
        month_days = tuple(day for day in left.month_days if day in right.month_days)
    if weekdays and month_days:
        yield replace(left, month_days=month_days, weekdays=weekdays)


def _merged(rules: Iterable[CronDayRule]) -> list[CronDayRule]:
    """The same days in fewer rules: those that differ in nothing but their days of the month become one, and
    then those that differ in nothing but their weekdays."""
    by_weekdays: dict[CronDayRule, set[int]] = {}
    kept: list[CronDayRule] = []
    for rule in rules:
        if rule.year_days or not rule.month_days:
            kept.append(rule)
        else:
            by_weekdays.setdefault(replace(rule, month_days=()), set()).update(rule.month_days)
    by_month_days: dict[CronDayRule, set[tuple[int, int]]] = {}
    for rule, month_days in by_weekdays.items():
        joined = replace(rule, month_days=tuple(sorted(month_days)), weekdays=())
        by_month_days.setdefault(joined, set()).update(rule.weekdays)
    found = [replace(rule, weekdays=tuple(sorted(days))) for rule, days in by_month_days.items()]
    return list(dict.fromkeys(found + kept))


def _every(*weekdays: int) -> tuple[tuple[int, int], ...]:
    return tuple((0, weekday) for weekday in weekdays)


_MOST_POSITIONS: Final = 366


def rules_of(of: Expression, *, skips_gap: bool) -> list[str]:
    """The values of the RRULE lines whose union `of` is; InvalidField where there are none.

    With `skips_gap` times that a clock change leaves out do not fire, and hold no position for BYSETPOS: then
    none is used. Some of several rules may never fire; whoever evaluates them can tell.
    """
    times = len(of.hours.numbers) * len(of.minutes.numbers) * len(of.seconds.numbers)
    fixed = not of.follows_clock
    days = day_rules(of, ranks=fixed, positions=fixed and not skips_gap and times <= _MOST_POSITIONS)
    if not days:
        raise cron_error("no day satisfies both day fields; change one of them")
    if len(days) > MAX_RULES:
        raise cron_error(
            f"takes {len(days)} recurrence rules, and at most {MAX_RULES} are allowed; give some of its days "
            "to another schedule"
        )
    return [_rule(each, of, times) for each in days]


def _rule(days: CronDayRule, of: Expression, times: int) -> str:
    if of.follows_clock:
        every_minute = "MINUTELY" if len(of.minutes.numbers) == 60 else "HOURLY"
        freq = "SECONDLY" if len(of.seconds.numbers) == 60 else every_minute
    else:
        freq = _calendar_frequency(days)
    hours = () if of.follows_clock and len(of.hours.numbers) == 24 else of.hours.numbers
    minutes = () if freq in ("MINUTELY", "SECONDLY") and len(of.minutes.numbers) == 60 else of.minutes.numbers
    seconds = () if freq == "SECONDLY" else of.seconds.numbers
    # Each of its times is one member of the set that BYSETPOS picks from.
    positions = range(1, times + 1) if days.position > 0 else range(-times, 0) if days.position else ()
    parts = (
        ("BYMONTH", days.months),
        ("BYYEARDAY", days.year_days),
        ("BYMONTHDAY", days.month_days),
        ("BYDAY", [f"{rank or ''}{DAY_NAMES[weekday]}" for rank, weekday in days.weekdays]),
        ("BYHOUR", hours),
        ("BYMINUTE", minutes),
        ("BYSECOND", seconds),
        ("BYSETPOS", positions),
    )
    return ";".join([f"FREQ={freq}", *(f"{name}={','.join(map(str, held))}" for name, held in parts if held)])


def _calendar_frequency(days: CronDayRule) -> str:
    if days.position:
        return "MONTHLY"
    if days.year_days:
        return "YEARLY"
    if days.month_days or days.ranked:
        return "YEARLY" if days.months else "MONTHLY"
    return "WEEKLY" if days.weekdays else "DAILY"


_BOTH: Final[tuple[SecondsAt, ...]] = ("first", "last")


@dataclass(frozen=True, slots=True)
class CronReading:
    """An expression as it was understood, and the RRULE lines that it became."""

    expression: Expression
    recurrence: str


def cron_reading(text: str, seconds_at: SecondsAt | None, context: TriggerContext) -> CronReading:
    """The reading of `text`. Raises InvalidField if it has none, NotUnderstood if it has two that differ.

    `seconds_at` tells where the seconds stand in six fields. Without it both readings are tried.
    """
    fields = split_fields(text)
    if len(fields) == 5:
        if seconds_at is not None:
            raise InvalidField(
                "cron_seconds",
                "tells where the seconds stand among six fields, and this expression has five; leave it out, "
                "or give null to take an earlier one away",
            )
        return _reading(fields, "first", context)
    if seconds_at is not None:
        return _reading(fields, seconds_at, context)
    found: dict[SecondsAt, CronReading] = {}
    problems: dict[SecondsAt, str] = {}
    for at in _BOTH:
        try:
            reading = _reading(fields, at, context)
            context.parse(reading.recurrence)
            found[at] = reading
        except InvalidField as problem:
            if problem.field not in ("cron", "rrule"):
                raise  # a choice beside the expression is wrong
            problems[at] = problem.message
    if len({reading.recurrence for reading in found.values()}) == 1:
        return next(iter(found.values()))
    if not found:
        told = "; ".join(f"with the seconds {at}, {problem}" for at, problem in problems.items())
        raise cron_error(f"{quoted(text)} has six fields, and neither reading is valid: {told}")
    raise _ambiguous(text, found, context)


def recurrence_of(expression: Expression, context: TriggerContext) -> str:
    """The RRULE lines that an expression becomes. Raises InvalidField."""
    rules = rules_of(expression, skips_gap=context.gap == "skip")
    return "\n".join(f"RRULE:{rule}" for rule in _possible(rules, context))


def _reading(fields: list[str], seconds_at: SecondsAt, context: TriggerContext) -> CronReading:
    expression = read_expression(fields, seconds_at)
    return CronReading(expression, recurrence_of(expression, context))


def _possible(rules: list[str], context: TriggerContext) -> list[str]:
    """The rules without those that never fire, such as one for 30 February beside one for Mondays; all of
    them where none fires, for the evaluator to refuse with its proof."""
    if len(rules) == 1:
        return rules
    return [rule for rule in rules if _fires(rule, context)] or rules


def _fires(rule: str, context: TriggerContext) -> bool:
    try:
        context.parse(rule)
    except InvalidRecurrence:
        return False
    return True


def _ambiguous(text: str, found: dict[SecondsAt, CronReading], context: TriggerContext) -> NotUnderstood:
    told = ", or ".join(
        f'"{context.parse(reading.recurrence).description}" with cron_seconds "{at}"'
        for at, reading in found.items()
    )
    return NotUnderstood(
        "cron",
        f"{quoted(text)} has six fields, and the seconds may be the first or the last: {told}; "
        "give cron_seconds",
        readings=tuple(Translation(recurrence=reading.recurrence) for reading in found.values()),
    )


_AHEAD = 2 * 366 * DAY  # how far clock changes are looked for; the next ones tell


def lost_time_warning(of: Expression, context: TriggerContext) -> str | None:
    """A sentence about the first coming day whose times are all left out; None if no day is."""
    if not of.follows_clock:
        return None
    zone = find_zone(context.timezone)
    first = _second_of_day(of, 0)
    last = _second_of_day(of, -1)
    now = floor_second(context.at)
    for start, end in zone.gaps(now, now + _AHEAD):
        midnight = start // DAY * DAY
        if start <= midnight + first and midnight + last < end:
            instant = to_datetime(zone.read(midnight + first).early)
            # At fixed times it would fire then, if the day is one of its days.
            fixed = replace(context, gap="shift").parse(recurrence_of(_fixed(of), context))
            if fixed.between(instant, instant + timedelta(seconds=1)):
                return (
                    f"It follows the clock, as in cron, so it does not fire on {say.date(start)}, when "
                    f"clocks skip {say.clock(start % DAY)} to {say.clock(end % DAY)}; list its minutes and "
                    "hours without * to fire then as well."
                )
    return None


def _second_of_day(of: Expression, index: int) -> int:
    """The first time of day (index 0), or the last (-1)."""
    return of.hours.numbers[index] * 3600 + of.minutes.numbers[index] * 60 + of.seconds.numbers[index]


def _fixed(of: Expression) -> Expression:
    """The expression as one of fixed times."""
    return replace(
        of,
        seconds=replace(of.seconds, star=False),
        minutes=replace(of.minutes, star=False),
        hours=replace(of.hours, star=False),
    )

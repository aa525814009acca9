"""A cron expression read field by field: five fields (crontab(5)), a shorthand such as `@daily`, or six
fields with seconds; lists, ranges, steps and names, and the letters `L`, `W` and `#` that Quartz added to
the two day fields.
"""

import re
from dataclasses import dataclass
from typing import Final, Literal

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.recurrence.rule_text import shortened


def cron_error(message: str) -> InvalidField:
    """The error of the field `cron`; the message says what is wrong and what to write instead."""
    return InvalidField("cron", message)


def quoted(text: str) -> str:
    """A piece of the expression as it is shown in a message, cut where it is long."""
    return repr(shortened(text))


_ITEM: Final = re.compile(r"(\*|[0-9]+|[a-z]+)(?:-([0-9]+|[a-z]+))?(?:/([0-9]+))?", re.IGNORECASE)
_DIGITS: Final = 4  # longer numbers are wrong in every field, and never reach int()


def _field_error(written: str, field: str, problem: str) -> InvalidField:
    """The error about a piece of one of the fields."""
    return cron_error(f"{quoted(written)} in the {field} {problem}")


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """The numbers that a field may hold, both ends included, and the names of the first of them."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()

    @property
    def expected(self) -> str:
        """What may stand in the field, for a message."""
        names = f", {self.names[0]} to {self.names[-1]}" if self.names else ""
        return f"use {self.low} to {self.high}{names}, lists 1,2, ranges 1-5, steps */2, or *"


SECONDS: Final = FieldSpec("seconds", 0, 59)
MINUTES: Final = FieldSpec("minutes", 0, 59)
HOURS: Final = FieldSpec("hours", 0, 23)
MONTH_DAYS: Final = FieldSpec("days of the month", 1, 31)
MONTHS: Final = FieldSpec(
    "months",
    1,
    12,
    ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
)
#: 0 and 7 are both Sunday.
WEEKDAYS: Final = FieldSpec("weekdays", 0, 7, ("sun", "mon", "tue", "wed", "thu", "fri", "sat"))


@dataclass(frozen=True, slots=True)
class FieldValues:
    """What a field holds. `star`: it *begins* with `*`, also as `*/2`, which is what Vixie's cron looks at to
    tell how the two day fields are joined, and whether a job follows the clock."""

    written: str
    numbers: tuple[int, ...]
    star: bool


def read_field(text: str, spec: FieldSpec) -> FieldValues:
    """The numbers of a field, ascending; InvalidField says what is wrong with it."""
    numbers: set[int] = set()
    for item in text.split(","):
        numbers.update(read_item(item, spec))
    return FieldValues(text, tuple(sorted(numbers)), text.startswith("*"))


def read_item(item: str, spec: FieldSpec) -> range:
    """The numbers of one item of a list: `5`, `1-5`, `*/2`, `5/15`, `mon-fri`."""
    if "?" in item:
        problem = "is not understood; a question mark stands alone in one of the two day fields, for *"
        raise _field_error(item, spec.name, problem)
    match = _ITEM.fullmatch(item)
    if match is None or (match[1] == "*" and match[2]):
        raise _field_error(item, spec.name, f"is not understood; {spec.expected}")
    step = _step(match[3], spec)
    if match[1] == "*":
        return range(spec.low, spec.high + 1, step)
    low = read_number(match[1], spec)
    alone = spec.high if match[3] else low
    high = read_number(match[2], spec) if match[2] else alone
    if high < low:
        forwards = _forwards(match, low, high, step, spec)
        raise _field_error(item, spec.name, f"runs backwards; write {forwards}")
    return range(low, high + 1, step)


def read_number(text: str, spec: FieldSpec) -> int:
    """The number that digits or a name stand for."""
    if not text[0].isdigit():
        return _named(text, spec)
    number = int(text) if len(text) <= _DIGITS else -1
    if not spec.low <= number <= spec.high:
        raise _field_error(text, spec.name, f"is out of range; {spec.expected}")
    return number


def _named(text: str, spec: FieldSpec) -> int:
    name = text.lower()
    if name in spec.names:
        return spec.low + spec.names.index(name)
    if name in ("h", "r"):
        instead = (
            f"one from {spec.low} to {spec.high}, and a different one for each schedule to spread the load"
        )
        problem = f"stands for a number that Jenkins or croniter chooses; write {instead}"
        raise _field_error(text, spec.name, problem)
    expected = f"write {name[:3]}" if name[:3] in spec.names else spec.expected
    raise _field_error(text, spec.name, f"is not understood; {expected}")


def _step(text: str | None, spec: FieldSpec) -> int:
    if text is None:
        return 1
    if len(text) > _DIGITS or int(text) == 0:
        raise cron_error(
            f"the step {quoted(text)} in the {spec.name} is not allowed; use 1 to {spec.high - spec.low + 1}"
        )
    return int(text)


def _forwards(match: re.Match[str], low: int, high: int, step: int, spec: FieldSpec) -> str:
    """What a range that runs over the end of its field, such as `fri-sun` or `22-2`, means."""
    size = 7 if spec is WEEKDAYS else spec.high - spec.low + 1
    numbers = [spec.low + (number - spec.low) % size for number in range(low, high + size + 1, step)]
    if not match[1].isdigit() or (match[2] and not match[2].isdigit()):
        return ",".join(spec.names[number - spec.low] for number in numbers)
    if step > 1 or spec.names:
        return ",".join(map(str, numbers))
    return f"{low}-{spec.high},{spec.low}-{high}"


_BEFORE_LAST: Final = re.compile(r"L-([0-9]{1,2})", re.IGNORECASE)
_NEAREST: Final = re.compile(r"([0-9]{1,2})W", re.IGNORECASE)
_LAST_OF: Final = re.compile(r"([0-9]+|[a-z]{3})L", re.IGNORECASE)
_NTH_OF: Final = re.compile(r"([0-9]+|[a-z]+)#([0-9]+)", re.IGNORECASE)
_MOST_BEFORE_LAST: Final = 30
_MOST_OF_A_WEEKDAY: Final = 5


@dataclass(frozen=True, slots=True)
class MonthDayField:
    """Days of the month: `numbers` from its beginning (positive) and from its end (-1 is the last), the
    weekdays (Monday to Friday) `nearest` to a day, and its last weekday. `star`: see `FieldValues`."""

    written: str
    numbers: tuple[int, ...]
    nearest: tuple[int, ...]
    last_weekday: bool
    star: bool

    @property
    def everything(self) -> bool:
        """Whether every day is one of them."""
        return set(range(1, 32)) <= set(self.numbers)


@dataclass(frozen=True, slots=True)
class WeekdayField:
    """Weekdays, 0 for Monday: `days` of every week, and `ranked` ones of a month as `(rank, weekday)`, where
    rank -1 is the last. `star`: see `FieldValues`."""

    written: str
    days: tuple[int, ...]
    ranked: tuple[tuple[int, int], ...]
    star: bool

    @property
    def everything(self) -> bool:
        """Whether every day is one of them."""
        return len(self.days) == 7


def read_month_days(text: str) -> MonthDayField:
    """The days of the month; InvalidField says what is wrong with them."""
    if text == "?":
        return MonthDayField(text, tuple(range(1, 32)), (), False, True)
    numbers: set[int] = set()
    nearest: set[int] = set()
    last_weekday = False
    for item in text.split(","):
        upper = item.upper()
        if upper in ("LW", "WL"):
            last_weekday = True
        elif upper == "L":
            numbers.add(-1)
        elif match := _BEFORE_LAST.fullmatch(item):
            remedy = f"use L-1 to L-{_MOST_BEFORE_LAST}, or L for the last day"
            numbers.add(-1 - _counted(match[1], _MOST_BEFORE_LAST, item, MONTH_DAYS, remedy))
        elif match := _NEAREST.fullmatch(item):
            nearest.add(read_number(match[1], MONTH_DAYS))
        elif upper.endswith("W") or upper.startswith("L"):
            last = "L is the last day, L-3 three days before it"
            weekday = "15W the weekday nearest to the 15th, LW the last weekday"
            problem = f"is not understood; {last}, {weekday}; list several with commas"
            raise _field_error(item, MONTH_DAYS.name, problem)
        else:
            numbers.update(read_item(item, MONTH_DAYS))
    return MonthDayField(
        text, tuple(sorted(numbers)), tuple(sorted(nearest)), last_weekday, text.startswith("*")
    )


def read_weekdays(text: str) -> WeekdayField:
    """The weekdays; InvalidField says what is wrong with them."""
    if text == "?":
        return WeekdayField(text, tuple(range(7)), (), True)
    days: set[int] = set()
    ranked: set[tuple[int, int]] = set()
    for item in text.split(","):
        if match := _LAST_OF.fullmatch(item):
            ranked.add((-1, _from_monday(read_number(match[1], WEEKDAYS))))
        elif match := _NTH_OF.fullmatch(item):
            remedy = f"use #1 to #{_MOST_OF_A_WEEKDAY}, or {match[1]}L for the last one of the month"
            rank = _counted(match[2], _MOST_OF_A_WEEKDAY, item, WEEKDAYS, remedy)
            ranked.add((rank, _from_monday(read_number(match[1], WEEKDAYS))))
        elif item.upper() == "L":
            raise cron_error(
                "'L' in the weekdays does not say which one; write 6 for every Saturday, or 5L for the last "
                "Friday of the month"
            )
        elif "#" in item:
            problem = "is not understood; 1#2 is the second Monday of the month, 1L the last one"
            raise _field_error(item, WEEKDAYS.name, problem)
        else:
            days.update(_from_monday(number) for number in read_item(item, WEEKDAYS))
    ranked = {(rank, day) for rank, day in ranked if day not in days}
    return WeekdayField(text, tuple(sorted(days)), tuple(sorted(ranked)), text.startswith("*"))


def _from_monday(number: int) -> int:
    """Cron's weekday, in which 0 and 7 are Sunday, counted from Monday as 0."""
    return (number - 1) % 7


def _counted(number: str, most: int, item: str, field: FieldSpec, remedy: str) -> int:
    """What the letters L and # count."""
    found = int(number) if len(number) <= _DIGITS else 0
    if not 1 <= found <= most:
        raise _field_error(item, field.name, f"is out of range; {remedy}")
    return found


#: Where the seconds stand in six fields: before the minutes (Quartz, Spring, cronsim) or last (croniter).
SecondsAt = Literal["first", "last"]

SHORTHANDS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_ON_THE_MINUTE: Final = "0"
_ZONE: Final = re.compile(r"(?:CRON_)?TZ=(\S*)", re.IGNORECASE)
_YEARS: Final = re.compile(r"[0-9]{4}([,/-][0-9]+)*")
_FIELD: Final = re.compile(rf"(?:[0-9*?#,/LWHR-]|{'|'.join(MONTHS.names + WEEKDAYS.names)})+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Expression:
    """The six fields, read and checked one by one."""

    seconds: FieldValues
    minutes: FieldValues
    hours: FieldValues
    month_days: MonthDayField
    months: FieldValues
    weekdays: WeekdayField

    @property
    def follows_clock(self) -> bool:
        """Whether a field of its times begins with `*`. Vixie's cron runs such a job whenever the clock shows
        its time: in both of two equal hours, and not in one that the clock skips."""
        return self.seconds.star or self.minutes.star or self.hours.star

    @property
    def both_days(self) -> bool:
        """Whether a day must satisfy both day fields; else it is enough to satisfy one (crontab(5))."""
        return self.month_days.star or self.weekdays.star


def split_fields(text: str) -> list[str]:
    """The five or six fields of an expression, a shorthand written out; InvalidField, with what to use
    instead, for other text."""
    fields = text.split()
    if not fields:
        raise cron_error("is empty; give five fields: minute, hour, day of the month, month, weekday")
    if fields[0].startswith("@"):
        return _shorthand(text.strip())
    if zone := _ZONE.fullmatch(fields[0]):
        raise cron_error(
            f"{quoted(fields[0])} does not belong here; give the zone as the field timezone, "
            f"{quoted(zone[1])}"
        )
    if not all(map(_FIELD.fullmatch, fields[5:])):
        raise cron_error(
            f"{_joined(fields[5:])} is not a field; give the times alone, {_joined(fields[:5])}, without a "
            "command"
        )
    if len(fields) == 7 or (len(fields) == 6 and _YEARS.fullmatch(fields[5])):
        raise cron_error(
            f"the year {quoted(fields[-1])} cannot be given; leave it out, {_joined(fields[:-1])}, or use "
            "rrule, which has DTSTART and UNTIL"
        )
    if len(fields) not in (5, 6):
        raise cron_error(
            f"{quoted(text)} has {len(fields)} field{'' if len(fields) == 1 else 's'}; give five: minute, "
            "hour, day of the month, month, weekday, such as 0 9 * * 1-5"
        )
    return fields


def read_expression(fields: list[str], seconds_at: SecondsAt) -> Expression:
    """The expression that five fields are, or six with the seconds first or last. Raises InvalidField."""
    if len(fields) == 5:
        fields = [_ON_THE_MINUTE, *fields]
    elif seconds_at == "last":
        fields = [fields[5], *fields[:5]]
    seconds, minutes, hours, month_days, months, weekdays = fields
    return Expression(
        read_field(seconds, SECONDS),
        read_field(minutes, MINUTES),
        read_field(hours, HOURS),
        read_month_days(month_days),
        read_field(months, MONTHS),
        read_weekdays(weekdays),
    )


def _joined(fields: list[str]) -> str:
    return quoted(" ".join(fields))


def _shorthand(text: str) -> list[str]:
    name = text.lower()
    if name in SHORTHANDS:
        return SHORTHANDS[name].split()
    if name == "@reboot":
        raise cron_error(
            "'@reboot' is no time; let what starts the machine call POST /api/v1/schedules/{id}/run, or give "
            "run_at for a single instant"
        )
    if name.startswith("@every"):
        raise cron_error(f"{quoted(text)} is an interval; use every_seconds, such as 300 for five minutes")
    raise cron_error(f"{quoted(text)} is not known; use one of {', '.join(SHORTHANDS)}, or five fields")

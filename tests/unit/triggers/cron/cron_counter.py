"""A slow second opinion about cron: each field is matched word by word, one day after the other.

It shares no code and no idea with the translation: it knows no rules, only which days of the calendar a field
names. `ValueError` says that an expression is none.
"""

from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache, lru_cache

SHORT = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
MONTHS = {
    name: number
    for number, name in enumerate(
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], 1
    )
}
WEEKDAYS = {name: number for number, name in enumerate(["sun", "mon", "tue", "wed", "thu", "fri", "sat"])}


@dataclass(frozen=True)
class Counter:
    """The fields of an expression, as text, and the times of day that three of them name."""

    month_day: str
    month: str
    weekday: str
    times: tuple[int, ...]  # seconds of the day, ascending

    def fires_on(self, day: date) -> bool:
        if day.month not in numbers(self.month, 1, 12, MONTHS):
            return False
        in_month = is_in_month_field(self.month_day, day)
        in_week = is_in_week_field(self.weekday, day)
        either = self.month_day[0] not in "*?" and self.weekday[0] not in "*?"
        return in_month or in_week if either else in_month and in_week

    def days(self, first: date, last: date) -> Iterator[date]:
        """The days on which it fires, `last` excluded."""
        day = first
        while day < last:
            if self.fires_on(day):
                yield day
            day += timedelta(days=1)


def count(text: str, seconds: str = "first") -> Counter:
    fields = SHORT.get(text.lower(), text.lower()).split()
    if len(fields) == 5:
        fields = ["0", *fields]
    elif len(fields) == 6 and seconds == "last":
        fields = fields[5:] + fields[:5]
    if len(fields) != 6:
        raise ValueError("no five or six fields")
    second, minute, hour, month_day, month, weekday = fields
    numbers(month, 1, 12, MONTHS)
    for item in month_day.split(","):
        is_month_day(item, date(2024, 1, 1), alone=month_day == item)
    for item in weekday.split(","):
        is_weekday(item, date(2024, 1, 1), alone=weekday == item)
    times = [
        h * 3600 + m * 60 + s
        for h in sorted(numbers(hour, 0, 23))
        for m in sorted(numbers(minute, 0, 59))
        for s in sorted(numbers(second, 0, 59))
    ]
    return Counter(month_day, month, weekday, tuple(times))


# Many expressions have a field in common, and all of them are asked about the same days.
@lru_cache(maxsize=1 << 20)
def is_in_month_field(field: str, day: date) -> bool:
    return any(is_month_day(item, day) for item in field.split(","))


@lru_cache(maxsize=1 << 20)
def is_in_week_field(field: str, day: date) -> bool:
    return any(is_weekday(item, day) for item in field.split(","))


_known: dict[tuple[str, int, int], set[int]] = {}


def numbers(field: str, low: int, high: int, names: dict[str, int] | None = None) -> set[int]:
    key = field, low, high
    if key not in _known:
        found: set[int] = set()
        for item in field.split(","):
            found |= item_numbers(item, low, high, names or {})
        _known[key] = found
    return _known[key]


def item_numbers(item: str, low: int, high: int, names: dict[str, int]) -> set[int]:
    body, slash, step_text = item.partition("/")
    step = int(step_text) if slash else 1
    if step < 1:
        raise ValueError("a step of nothing")
    first_text, dash, last_text = body.partition("-")
    if body == "*":
        first, last = low, high
    elif dash:
        first, last = number(first_text, names), number(last_text, names)
    else:
        first = number(first_text, names)
        last = high if slash else first
    if not low <= first <= last <= high:
        raise ValueError("out of range")
    found = set()
    while first <= last:
        found.add(first)
        first += step
    return found


def number(text: str, names: dict[str, int]) -> int:
    if text in names:
        return names[text]
    if not text.isdigit():
        raise ValueError("no number")
    return int(text)


@cache
def month_length(year: int, month: int) -> int:
    return monthrange(year, month)[1]


@cache
def last_workday(year: int, month: int) -> int:
    return max(d for d in range(1, month_length(year, month) + 1) if date(year, month, d).weekday() < 5)


def is_month_day(item: str, day: date, alone: bool = True) -> bool:
    length = month_length(day.year, day.month)
    if item == "?" and alone:
        return True
    if item == "l":
        return day.day == length
    if item == "lw":
        return day.day == last_workday(day.year, day.month)
    if item.startswith("l-"):
        back = int(item[2:])
        if not 1 <= back <= 30:
            raise ValueError("too far")
        return day.day == length - back
    if item.endswith("w"):
        wanted = int(item[:-1])
        if not 1 <= wanted <= 31:
            raise ValueError("no day")
        return wanted <= length and day == nearest(day.replace(day=wanted))
    return day.day in numbers(item, 1, 31)


def nearest(day: date) -> date:
    """The weekday nearest to a day, in its own month."""
    for step in (0, -1, 1, -2, 2):
        other = day + timedelta(days=step)
        if other.month == day.month and other.weekday() < 5:
            return other
    raise AssertionError("five days in a row hold a weekday")


def is_weekday(item: str, day: date, alone: bool = True) -> bool:
    if item == "?" and alone:
        return True
    if item.endswith("l") and len(item) > 1:
        return same_weekday(item[:-1], day) and day.day + 7 > month_length(day.year, day.month)
    if "#" in item:
        name, _, rank = item.partition("#")
        if rank not in ("1", "2", "3", "4", "5"):
            raise ValueError("no such rank")
        return same_weekday(name, day) and (day.day + 6) // 7 == int(rank)
    return day.isoweekday() % 7 in {each % 7 for each in numbers(item, 0, 7, WEEKDAYS)}


def same_weekday(name: str, day: date) -> bool:
    return day.isoweekday() % 7 in {each % 7 for each in numbers(name, 0, 7, WEEKDAYS)}

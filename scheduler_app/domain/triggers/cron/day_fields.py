"""The two day fields of a cron expression, with the letters `L`, `W` and `#` that Quartz added to them."""

import re
from dataclasses import dataclass
from typing import Final

from .errors import quoted, refused
from .fields import MONTH_DAYS, WEEKDAYS, read_item, read_number

_BEFORE_LAST: Final = re.compile(r"L-([0-9]{1,2})", re.IGNORECASE)
_NEAREST: Final = re.compile(r"([0-9]{1,2})W", re.IGNORECASE)
_LAST_OF: Final = re.compile(r"([0-9]+|[a-z]{3})L", re.IGNORECASE)
_NTH_OF: Final = re.compile(r"([0-9]+|[a-z]+)#([0-9]+)", re.IGNORECASE)
_MOST_BEFORE_LAST: Final = 30
_MOST_OF_A_WEEKDAY: Final = 5


@dataclass(frozen=True, slots=True)
class MonthDays:
    """Days of the month: `numbers` from its beginning (positive) and from its end (-1 is the last), the
    weekdays (Monday to Friday) `nearest` to a day, and its last weekday. `star`: see `fields.Values`."""

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
class Weekdays:
    """Weekdays, 0 for Monday: `days` of every week, and `ranked` ones of a month as `(rank, weekday)`, where
    rank -1 is the last. `star`: see `fields.Values`."""

    written: str
    days: tuple[int, ...]
    ranked: tuple[tuple[int, int], ...]
    star: bool

    @property
    def everything(self) -> bool:
        """Whether every day is one of them."""
        return len(self.days) == 7


def read_month_days(text: str) -> MonthDays:
    """The days of the month; InvalidField says what is wrong with them."""
    if text == "?":
        return MonthDays(text, tuple(range(1, 32)), (), False, True)
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
            numbers.add(-1 - _days_before_last(match))
        elif match := _NEAREST.fullmatch(item):
            nearest.add(read_number(match[1], MONTH_DAYS))
        elif upper.endswith("W") or upper.startswith("L"):
            raise refused(
                f"{quoted(item)} in the days of the month is not understood; L is the last day, L-3 three "
                "days before it, 15W the weekday nearest to the 15th, LW the last weekday; list several with "
                "commas"
            )
        else:
            numbers.update(read_item(item, MONTH_DAYS))
    return MonthDays(text, tuple(sorted(numbers)), tuple(sorted(nearest)), last_weekday, text.startswith("*"))


def read_weekdays(text: str) -> Weekdays:
    """The weekdays; InvalidField says what is wrong with them."""
    if text == "?":
        return Weekdays(text, tuple(range(7)), (), True)
    days: set[int] = set()
    ranked: set[tuple[int, int]] = set()
    for item in text.split(","):
        if match := _LAST_OF.fullmatch(item):
            ranked.add((-1, _from_monday(read_number(match[1], WEEKDAYS))))
        elif match := _NTH_OF.fullmatch(item):
            ranked.add((_rank(match), _from_monday(read_number(match[1], WEEKDAYS))))
        elif item.upper() == "L":
            raise refused(
                "'L' in the weekdays does not say which one; write 6 for every Saturday, or 5L for the last "
                "Friday of the month"
            )
        elif "#" in item:
            raise refused(
                f"{quoted(item)} in the weekdays is not understood; 1#2 is the second Monday of the month, "
                "1L the last one"
            )
        else:
            days.update(_from_monday(number) for number in read_item(item, WEEKDAYS))
    ranked = {(rank, day) for rank, day in ranked if day not in days}
    return Weekdays(text, tuple(sorted(days)), tuple(sorted(ranked)), text.startswith("*"))


def _from_monday(number: int) -> int:
    """Cron's weekday, in which 0 and 7 are Sunday, counted from Monday as 0."""
    return (number - 1) % 7


def _days_before_last(match: re.Match[str]) -> int:
    number = int(match[1])
    if not 1 <= number <= _MOST_BEFORE_LAST:
        raise refused(
            f"{quoted(match[0])} in the days of the month is out of range; use L-1 to L-{_MOST_BEFORE_LAST}, "
            "or L for the last day"
        )
    return number


def _rank(match: re.Match[str]) -> int:
    number = int(match[2]) if len(match[2]) == 1 else 0
    if not 1 <= number <= _MOST_OF_A_WEEKDAY:
        raise refused(
            f"{quoted(match[0])} in the weekdays is out of range; use #1 to #{_MOST_OF_A_WEEKDAY}, or "
            f"{match[1]}L for the last one of the month"
        )
    return number

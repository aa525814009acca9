"""One field of a cron expression that holds plain numbers: lists, ranges, steps and names (crontab(5))."""

import re
from dataclasses import dataclass
from typing import Final

from .errors import quoted, refused

_ITEM: Final = re.compile(r"(\*|[0-9]+|[a-z]+)(?:-([0-9]+|[a-z]+))?(?:/([0-9]+))?", re.IGNORECASE)
_DIGITS: Final = 4  # longer numbers are wrong in every field, and never reach int()


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
class Values:
    """What a field holds. `star`: it *begins* with `*`, also as `*/2`, which is what Vixie's cron looks at to
    tell how the two day fields are joined, and whether a job follows the clock."""

    written: str
    numbers: tuple[int, ...]
    star: bool


def read_field(text: str, spec: FieldSpec) -> Values:
    """The numbers of a field, ascending; InvalidField says what is wrong with it."""
    numbers: set[int] = set()
    for item in text.split(","):
        numbers.update(read_item(item, spec))
    return Values(text, tuple(sorted(numbers)), text.startswith("*"))


def read_item(item: str, spec: FieldSpec) -> range:
    """The numbers of one item of a list: `5`, `1-5`, `*/2`, `5/15`, `mon-fri`."""
    if "?" in item:
        raise refused(
            f"{quoted(item)} in the {spec.name} is not understood; a question mark stands alone in one of "
            "the two day fields, for *"
        )
    match = _ITEM.fullmatch(item)
    if match is None or (match[1] == "*" and match[2]):
        raise refused(f"{quoted(item)} in the {spec.name} is not understood; {spec.expected}")
    step = _step(match[3], spec)
    if match[1] == "*":
        return range(spec.low, spec.high + 1, step)
    low = read_number(match[1], spec)
    alone = spec.high if match[3] else low
    high = read_number(match[2], spec) if match[2] else alone
    if high < low:
        raise refused(
            f"{quoted(item)} in the {spec.name} runs backwards; "
            f"write {_forwards(match, low, high, step, spec)}"
        )
    return range(low, high + 1, step)


def read_number(text: str, spec: FieldSpec) -> int:
    """The number that digits or a name stand for."""
    if not text[0].isdigit():
        return _named(text, spec)
    number = int(text) if len(text) <= _DIGITS else -1
    if not spec.low <= number <= spec.high:
        raise refused(f"{quoted(text)} in the {spec.name} is out of range; {spec.expected}")
    return number


def _named(text: str, spec: FieldSpec) -> int:
    name = text.lower()
    if name in spec.names:
        return spec.low + spec.names.index(name)
    if name in ("h", "r"):
        raise refused(
            f"{quoted(text)} in the {spec.name} stands for a number that Jenkins or croniter chooses; write "
            f"one from {spec.low} to {spec.high}, and a different one for each schedule to spread the load"
        )
    if name[:3] in spec.names:
        raise refused(f"{quoted(text)} in the {spec.name} is not understood; write {name[:3]}")
    raise refused(f"{quoted(text)} in the {spec.name} is not understood; {spec.expected}")


def _step(text: str | None, spec: FieldSpec) -> int:
    if text is None:
        return 1
    if len(text) > _DIGITS or int(text) == 0:
        raise refused(
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

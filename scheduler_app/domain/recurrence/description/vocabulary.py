"""Names, lists, ordinals, dates and times of day, as a sentence writes them."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from scheduler_app.domain.recurrence.timeline import local_datetime

WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_RANKS: Final = ("first", "second", "third", "fourth", "fifth")
_RUN: Final = 3  # from this many neighbours on, "the 1st to the 3rd" reads better than a list


def listed(items: Sequence[str], last: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {last} {items[-1]}"


def all_of(items: Sequence[str]) -> str:
    """`both a and b`, `at the same time a, b and c`: what must hold together; a list alone may be a union."""
    if len(items) == 1:
        return items[0]
    return f"{'both' if len(items) == 2 else 'at the same time'} {listed(items)}"


def spans(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Ascending numbers as `(first, last)` of all neighbours."""
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


def runs(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """As `spans`, but shorter runs than read well are split into single numbers."""
    pairs: list[tuple[int, int]] = []
    for low, high in spans(numbers):
        pairs += (
            [(low, high)] if high - low + 1 >= _RUN else [(number, number) for number in range(low, high + 1)]
        )
    return pairs


def even_step(numbers: Sequence[int]) -> int:
    """The distance of evenly spaced numbers; 0 where they are not, or where there is one."""
    steps = {later - earlier for earlier, later in pairwise(numbers)}
    return steps.pop() if len(steps) == 1 else 0


def numbers(values: Iterable[int], last: str = "and") -> str:
    """`0, 15 and 30`, `9 to 17`."""
    return listed([str(low) if low == high else f"{low} to {high}" for low, high in runs(values)], last)


def ordinal(number: int) -> str:
    """`1st`, `22nd`, `13th`."""
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def rank(number: int) -> str:
    """`first`, `20th`, `last`, `third-to-last`; `number` is not 0."""
    size = abs(number)
    word = _RANKS[size - 1] if size <= len(_RANKS) else ordinal(size)
    if number > 0:
        return word
    return "last" if size == 1 else f"{word}-to-last"


def ranks(numbers: Iterable[int], last: str = "and") -> str:
    """`first and last`, `second and fourth`."""
    return listed([rank(number) for number in sorted(numbers, key=lambda number: (number < 0, number))], last)


def weekdays(days: Iterable[int], last: str = "and") -> str:
    """`Monday and Friday`, `Monday to Friday`; Monday is 0."""
    names = [
        WEEKDAYS[low] if low == high else f"{WEEKDAYS[low]} to {WEEKDAYS[high]}"
        for low, high in runs(sorted(days))
    ]
    return listed(names, last)


def months(chosen: Sequence[int], last: str = "and") -> str:
    """`January and July`."""
    return listed([MONTHS[month - 1] for month in chosen], last)


def in_months(chosen: Sequence[int]) -> str:
    """`in January and July`, `from March to October`."""
    if len(chosen) > _RUN and len(spans := runs(chosen)) == 1:
        (first, last) = spans[0]
        return f"from {MONTHS[first - 1]} to {MONTHS[last - 1]}"
    return f"in {months(chosen)}"


def clock(second: int) -> str:
    """The time of day of a second of the day: `09:30`, with seconds where there are any."""
    hour, minute, rest = second // 3600, second // 60 % 60, second % 60
    return f"{hour:02d}:{minute:02d}" + (f":{rest:02d}" if rest else "")


def date(local: int) -> str:
    """The day of a local second: `5 January 2026`."""
    moment = local_datetime(local, None)
    return f"{moment.day} {MONTHS[moment.month - 1]} {moment.year}"


def moment(local: int) -> str:
    """A local second: `5 January 2026 at 09:30`."""
    return f"{date(local)} at {clock(local % 86_400)}"


def lower_first(text: str) -> str:
    """The text as it reads in the middle of a sentence; names of days keep their capital."""
    first = text.split(" ", 1)[0]
    return text if first in WEEKDAYS else text[0].lower() + text[1:]

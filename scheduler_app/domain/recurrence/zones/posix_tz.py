"""The footer of a TZif file: the POSIX rule for all the years after the last transition in the file.

For example `EST5EDT,M3.2.0,M11.1.0` (RFC 8536, 3.3; hours may run from -167 to 167).
"""

import re
from typing import Final

from scheduler_app.domain.recurrence.timeline import CYCLE_DAYS, CYCLE_YEARS, DAY
from scheduler_app.domain.recurrence.year_kinds import first_day, is_leap

_NAME: Final = r"(?:[A-Za-z]+|<[A-Za-z0-9+-]+>)"
_CLOCK: Final = r"[+-]?\d{1,3}(?::\d\d(?::\d\d)?)?"
_FOOTER: Final = re.compile(
    rf"{_NAME}(?P<std>{_CLOCK})(?:{_NAME}(?P<dst>{_CLOCK})?,(?P<start>[^,]+),(?P<end>[^,]+))?"
)
_DATE: Final = re.compile(rf"(?:M(\d+)\.(\d)\.(\d)|(J?)(\d+))(?:/({_CLOCK}))?")
_DAYS_BEFORE: Final = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365)


def posix_tz_transitions(footer: str, after: int) -> list[tuple[int, int]]:
    """`(UTC second, offset from then on)` for one Gregorian cycle of years after the UTC second `after`.

    Empty for a zone without daylight saving time.
    """
    match = _FOOTER.fullmatch(footer)
    if match is None or match["start"] is None:
        return []
    standard = -_clock(match["std"])
    daylight = -_clock(match["dst"]) if match["dst"] else standard + 3600
    first_year = after // DAY * CYCLE_YEARS // CYCLE_DAYS  # at most a year early
    found = []
    for year in range(first_year, first_year + CYCLE_YEARS + 4):
        found.append((_second(match["start"], year) - standard, daylight))
        found.append((_second(match["end"], year) - daylight, standard))
    return sorted(change for change in found if change[0] > after)


def _clock(text: str) -> int:
    """Seconds of `[+-]h[:mm[:ss]]`."""
    fields = [int(field) for field in text.lstrip("+-").split(":")]
    seconds = sum(field * unit for field, unit in zip(fields, (3600, 60, 1), strict=False))
    return -seconds if text.startswith("-") else seconds


def _second(rule: str, year: int) -> int:
    """The local second that a date rule (`Mm.w.d`, `Jn` or `n`) names in a year."""
    match = _DATE.fullmatch(rule)
    if match is None:
        raise ValueError(f"not a POSIX date rule: {rule}")
    month, week, weekday, julian, number, clock = match.groups()
    time = _clock(clock) if clock else 7200
    if month:
        day = _nth_weekday(year, int(month), int(week), int(weekday))
    else:
        # Jn never counts 29 February; n counts from zero and does.
        skipped = int(number) - 1 if julian else int(number)
        day = first_day(year) + skipped + (1 if julian and is_leap(year) and skipped >= 59 else 0)
    return day * DAY + time


def _nth_weekday(year: int, month: int, week: int, weekday: int) -> int:
    leap = is_leap(year)
    start = first_day(year) + _DAYS_BEFORE[month - 1] + (leap and month > 2)
    length = _DAYS_BEFORE[month] - _DAYS_BEFORE[month - 1] + (leap and month == 2)
    offset = (weekday - start) % 7 + (week - 1) * 7  # an ordinal modulo 7 counts from Sunday, as POSIX does
    return start + (offset if offset < length else offset - 7)

"""One recurrence rule (RFC 5545, 3.3.10), read and checked, but not yet bound to a start.

BYDAY uses dateutil's `weekday` (`MO(+2)`), the field's usual value for it: it is right, and it walks nothing.
"""

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Final

from dateutil.rrule import weekday

DAY_NAMES: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")


class Frequency(IntEnum):
    """The unit that a rule steps by, longest first. The last three step in elapsed time."""

    YEARLY = 0
    MONTHLY = 1
    WEEKLY = 2
    DAILY = 3
    HOURLY = 4
    MINUTELY = 5
    SECONDLY = 6


class Skip(StrEnum):
    """What becomes of a day that its month or year does not have (RFC 7529, 4.1)."""

    OMIT = "OMIT"
    BACKWARD = "BACKWARD"
    FORWARD = "FORWARD"


@dataclass(frozen=True)
class Until:
    """The inclusive end of a rule: a UTC or local second (see `seconds`), as it was written."""

    second: int
    utc: bool
    date_only: bool = False


@dataclass(frozen=True)
class Rule:
    """The parts of a rule; BY lists are sorted and without repeats, an absent part is empty or None."""

    freq: Frequency
    interval: int = 1
    count: int | None = None
    until: Until | None = None
    by_month: tuple[int, ...] = ()
    by_week_no: tuple[int, ...] = ()
    by_year_day: tuple[int, ...] = ()
    by_month_day: tuple[int, ...] = ()
    by_day: tuple[weekday, ...] = ()
    by_hour: tuple[int, ...] = ()
    by_minute: tuple[int, ...] = ()
    by_second: tuple[int, ...] = ()
    by_set_pos: tuple[int, ...] = ()
    week_start: int = 0  # Monday
    skip: Skip = Skip.OMIT

    @property
    def elapsed(self) -> bool:
        """Whether the rule steps in exact time rather than by the calendar."""
        return self.freq >= Frequency.HOURLY

    def text(self, until: str | None) -> str:
        """The canonical RRULE value; `until` is the UNTIL value already pinned to UTC."""
        parts = [] if self.skip is Skip.OMIT else ["RSCALE=GREGORIAN"]
        parts.append(f"FREQ={self.freq.name}")
        if self.interval != 1:
            parts.append(f"INTERVAL={self.interval}")
        if until is not None:
            parts.append(f"UNTIL={until}")
        if self.count is not None:
            parts.append(f"COUNT={self.count}")
        lists: tuple[tuple[str, tuple[int, ...]], ...] = (
            ("BYMONTH", self.by_month),
            ("BYWEEKNO", self.by_week_no),
            ("BYYEARDAY", self.by_year_day),
            ("BYMONTHDAY", self.by_month_day),
        )
        parts += [f"{name}={','.join(map(str, values))}" for name, values in lists if values]
        if self.by_day:
            parts.append("BYDAY=" + ",".join(f"{day.n or ''}{DAY_NAMES[day.weekday]}" for day in self.by_day))
        lists = (
            ("BYHOUR", self.by_hour),
            ("BYMINUTE", self.by_minute),
            ("BYSECOND", self.by_second),
            ("BYSETPOS", self.by_set_pos),
        )
        parts += [f"{name}={','.join(map(str, values))}" for name, values in lists if values]
        if self.week_start:
            parts.append(f"WKST={DAY_NAMES[self.week_start]}")
        if self.skip is not Skip.OMIT:
            parts.append(f"SKIP={self.skip}")
        return ";".join(parts)

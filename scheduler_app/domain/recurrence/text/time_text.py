"""Reads DATE and DATE-TIME values (RFC 5545, 3.3.4 and 3.3.5).

The shape is checked here; what the digits mean is left to dateutil's `isoparse`, which knows the basic format
of ISO 8601 and refuses 30 February. It reads one short value at a time, so it is bounded.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from dateutil.parser import isoparse

from scheduler_app.domain.errors import InvalidRecurrence
from scheduler_app.domain.recurrence.timeline import FIRST_SECOND, local_datetime, local_second

_SHAPE: Final = re.compile(r"[0-9]{8}(T[0-9]{6}(Z?))?")
_OFFSET: Final = re.compile(r"[0-9-]{8,10}[T ][0-9:.]{4,15}[+-][0-9:]{2,5}")


@dataclass(frozen=True)
class ParsedTime:
    """A date or date-time as written: its wall-clock second, and whether it is UTC or a date alone."""

    second: int
    utc: bool
    date_only: bool


def read_time(part: str, text: str) -> ParsedTime:
    """The time that `text` writes; InvalidRecurrence naming `part` when it is none."""
    upper = text.upper()
    match = _SHAPE.fullmatch(upper)
    problem = "is not a date or date-time"
    if match is not None:
        if match[1] and match[1][5:7] == "60":
            problem = "names second 60; the last second of a minute is 59, and it"
        elif match[1] and match[1][1:3] == "24":
            problem = "names hour 24; midnight is 000000 of the next day, and it"
        else:
            try:
                moment: datetime = isoparse(upper.removesuffix("Z"))
            except ValueError:
                problem = "does not exist in the calendar"
            else:
                return ParsedTime(local_second(moment), bool(match[2]), match[1] is None)
    shown = text if len(text) <= 40 else text[:40] + "…"
    raise InvalidRecurrence(part, f"{shown} {problem}; {_remedy(upper)}")


def _remedy(text: str) -> str:
    """What to write instead of what nearly is a time."""
    plain = text[:40].replace("-", "").replace(":", "")
    if plain != text and _SHAPE.fullmatch(plain):
        return f"write {plain}"
    if _OFFSET.fullmatch(text[:40]):
        return "an offset cannot be written here: give the time in UTC with a Z, or with a TZID"
    return "write it like 20250131, 20250131T083000 or 20250131T083000Z"


def write_time(second: int, utc: bool) -> str:
    """The DATE-TIME value of a second."""
    moment = local_datetime(max(second, FIRST_SECOND), None)
    time = f"T{moment.hour:02d}{moment.minute:02d}{moment.second:02d}"
    return f"{write_date(second)}{time}{'Z' if utc else ''}"


def write_date(second: int) -> str:
    """The DATE value of the day of a second."""
    moment = local_datetime(max(second, FIRST_SECOND), None)
    return f"{moment.year:04d}{moment.month:02d}{moment.day:02d}"

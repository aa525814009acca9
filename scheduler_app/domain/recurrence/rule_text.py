"""Reads the value of an RRULE, and DATE and DATE-TIME values (RFC 5545, 3.3.4, 3.3.5 and 3.3.10).

Many readers accept BYMONTH=13, a part given twice or WEEKLY;BYDAY=2MO and then fire never, or on other
days than were meant; here each is an error that names the part and says what would be right.

The shape of a time is checked here; what the digits mean is left to dateutil's `isoparse`, which knows
the basic format of ISO 8601 and refuses 30 February. It reads one short value at a time, so it is
bounded.
"""

import re
from datetime import datetime
from functools import lru_cache
from typing import Final, NamedTuple

from dateutil.parser import isoparse
from dateutil.rrule import weekday

from scheduler_app.domain.errors import InvalidRecurrence
from scheduler_app.domain.recurrence.rules.rule import DAY_NAMES, Frequency, Rule, Skip, WrittenTime
from scheduler_app.domain.recurrence.timeline import FIRST_SECOND, local_datetime, local_second

_SHAPE: Final = re.compile(r"[0-9]{8}(T[0-9]{6}(Z?))?")
_OFFSET: Final = re.compile(r"[0-9-]{8,10}[T ][0-9:.]{4,15}[+-][0-9:]{2,5}")


def read_time(part: str, text: str) -> WrittenTime:
    """The time that `text` writes; InvalidRecurrence naming `part` for other text."""
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
                return WrittenTime(local_second(moment), bool(match[2]), match[1] is None)
    raise InvalidRecurrence(part, f"{shortened(text)} {problem}; {_remedy(upper)}")


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


MAX_INTERVAL: Final = 1_000_000_000
MAX_COUNT: Final = 100_000
_DIGITS: Final = 10  # longer numbers are wrong in every part, and never reach int()
_DAY: Final = re.compile(r"([+-]?\d{1,2})?(MO|TU|WE|TH|FR|SA|SU)")
_NUMBER: Final = re.compile(r"[+-]?[0-9]+")


class _List(NamedTuple):
    """What a BY part may hold: whole numbers from `low` to `high`, with minus signs or without."""

    field: str
    low: int
    high: int
    signed: bool


_LISTS: Final = {
    "BYMONTH": _List("by_month", 1, 12, False),
    "BYWEEKNO": _List("by_week_no", 1, 53, True),
    "BYYEARDAY": _List("by_year_day", 1, 366, True),
    "BYMONTHDAY": _List("by_month_day", 1, 31, True),
    "BYHOUR": _List("by_hour", 0, 23, False),
    "BYMINUTE": _List("by_minute", 0, 59, False),
    "BYSECOND": _List("by_second", 0, 59, False),
    "BYSETPOS": _List("by_set_pos", 1, 366, True),
}
_SINGLE: Final = ("FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYDAY", "RSCALE", "SKIP")
_ELSEWHERE: Final = {
    **{
        name: f"belongs on a line of its own, for example {name}:20250101T083000Z"
        for name in ("DTSTART", "RDATE", "EXDATE")
    },
    "TZID": "belongs to DTSTART, for example DTSTART;TZID=Europe/Paris:20250101T083000",
    "BYEASTER": "is not part of RFC 5545; give the dates as RDATE",
}


#: A rule is read as it was written and, once it is pinned, again; and many schedules share theirs.
@lru_cache(maxsize=4096)
def read_rule(value: str) -> Rule:
    """The rule of an RRULE value such as `FREQ=DAILY;INTERVAL=2`, in any case; else InvalidRecurrence."""
    parts = _split(value)
    if "FREQ" not in parts:
        raise InvalidRecurrence("FREQ", "is missing; a rule begins like FREQ=DAILY")
    freq = _frequency(parts["FREQ"])
    lists = {spec.field: _numbers(name, spec, parts[name]) for name, spec in _LISTS.items() if name in parts}
    rule = Rule(
        freq=freq,
        interval=_positive("INTERVAL", parts["INTERVAL"], MAX_INTERVAL) if "INTERVAL" in parts else 1,
        count=_positive("COUNT", parts["COUNT"], MAX_COUNT) if "COUNT" in parts else None,
        until=read_time("UNTIL", parts["UNTIL"]) if "UNTIL" in parts else None,
        by_day=_days(parts["BYDAY"]) if "BYDAY" in parts else (),
        week_start=_week_start(parts["WKST"]) if "WKST" in parts else 0,
        skip=_skip(parts),
        **lists,
    )
    _check_combination(rule)
    return rule


def _split(value: str) -> dict[str, str]:
    parts: dict[str, str] = {}
    pieces = value.strip().split(";")
    if len(pieces) > 1 and not pieces[-1].strip():
        pieces.pop()  # one trailing semicolon is common and harmless
    for piece in pieces:
        written, equals, content = (text.strip() for text in piece.partition("="))
        if not piece.strip():
            raise InvalidRecurrence(
                "RRULE", "there are two semicolons with nothing between them; leave one out"
            )
        if not equals:
            raise InvalidRecurrence(
                "RRULE", f"{shortened(written)} is not of the form NAME=VALUE; write it like BYDAY=MO"
            )
        name = written.upper()
        if ":" in name:
            raise InvalidRecurrence(
                "RRULE",
                f"{shortened(written)} has a colon in a rule; write RRULE: once, at the beginning of a line",
            )
        if name in _ELSEWHERE:
            raise InvalidRecurrence(name, _ELSEWHERE[name])
        if name not in _LISTS and name not in _SINGLE:
            known = ", ".join((*_SINGLE, *_LISTS))
            raise InvalidRecurrence(
                shortened(name), f"is not a part of a rule; RFC 5545 and RFC 7529 know {known}"
            )
        if "=" in content:
            raise InvalidRecurrence(
                name, f"{shortened(content)} holds another part; separate the parts with semicolons"
            )
        if name in parts:
            raise InvalidRecurrence(name, "is given twice; give it once, with its values separated by commas")
        if not content:
            raise InvalidRecurrence(name, "has no value; give one or leave the part out")
        parts[name] = content
    return parts


def shortened(text: str) -> str:
    """What was written as a message shows it, cut where it is long."""
    return text if len(text) <= 40 else text[:40] + "…"


def _frequency(text: str) -> Frequency:
    try:
        return Frequency[text.upper()]
    except KeyError:
        names = ", ".join(freq.name for freq in Frequency)
        raise InvalidRecurrence("FREQ", f"{shortened(text)} is not a frequency; one of {names}") from None


def _number(text: str) -> int | None:
    """None for text that is not a whole number, or is too long for one."""
    return int(text) if _NUMBER.fullmatch(text) and len(text) <= _DIGITS else None


def _positive(name: str, text: str, limit: int) -> int:
    number = _number(text)
    if number is None or not 1 <= number <= limit or text[0] == "+":
        raise InvalidRecurrence(name, f"{shortened(text)} is not allowed; a whole number from 1 to {limit}")
    return number


def _numbers(name: str, spec: _List, text: str) -> tuple[int, ...]:
    sign = " or with a minus sign" if spec.signed else ""
    expected = f"whole numbers from {spec.low} to {spec.high}{sign}, separated by commas"
    values = set()
    for piece in text.split(","):
        item = piece.strip()
        number = _number(item)
        size = abs(number or 0)
        if number is None or not spec.low <= size <= spec.high or (not spec.signed and item[0] in "+-"):
            if name == "BYSECOND" and number == 60:
                expected += "; a leap second never comes by the rule, 59 is the last second of a minute"
            raise InvalidRecurrence(name, f"{shortened(item)} is not allowed; {expected}")
        values.add(number)
    return tuple(sorted(values))


def _days(text: str) -> tuple[weekday, ...]:
    days = set()
    for piece in text.split(","):
        match = _DAY.fullmatch(piece.strip().upper())
        number = int(match[1]) if match and match[1] else 0
        if match is None or (match[1] and number == 0) or abs(number) > 53:
            raise InvalidRecurrence(
                "BYDAY",
                f"{shortened(piece)} is not allowed; MO to SU, in MONTHLY and YEARLY rules with a number "
                "from 1 to 53 or -1 to -53 before it, for example 2MO or -1FR",
            )
        days.add((number, DAY_NAMES.index(match[2])))
    return tuple(weekday(day, number or None) for number, day in sorted(days))


def _week_start(text: str) -> int:
    if text.upper() not in DAY_NAMES:
        raise InvalidRecurrence("WKST", f"{shortened(text)} is not a weekday; one of {', '.join(DAY_NAMES)}")
    return DAY_NAMES.index(text.upper())


def _skip(parts: dict[str, str]) -> Skip:
    """RFC 7529, with the one calendar there is here."""
    if parts.get("RSCALE", "GREGORIAN").upper() != "GREGORIAN":
        raise InvalidRecurrence(
            "RSCALE",
            f"{shortened(parts['RSCALE'])} is not supported; write RSCALE=GREGORIAN, or leave it out",
        )
    if "SKIP" not in parts:
        return Skip.OMIT
    if "RSCALE" not in parts:
        raise InvalidRecurrence(
            "SKIP", "needs RSCALE beside it (RFC 7529, 4.1); write RSCALE=GREGORIAN in front of FREQ"
        )
    try:
        return Skip(parts["SKIP"].upper())
    except ValueError:
        names = ", ".join(Skip)
        raise InvalidRecurrence(
            "SKIP", f"{shortened(parts['SKIP'])} is not a choice; one of {names}"
        ) from None


def _check_combination(rule: Rule) -> None:
    """The combinations that RFC 5545, 3.3.10 forbids."""
    freq = rule.freq
    if rule.until is not None and rule.count is not None:
        raise InvalidRecurrence("UNTIL", "cannot stand beside COUNT; keep one of the two")
    if rule.by_week_no and freq != Frequency.YEARLY:
        raise InvalidRecurrence("BYWEEKNO", f"is not allowed with FREQ={freq.name}, only with FREQ=YEARLY")
    if rule.by_year_day and freq in (Frequency.MONTHLY, Frequency.WEEKLY, Frequency.DAILY):
        raise InvalidRecurrence(
            "BYYEARDAY", f"is not allowed with FREQ={freq.name}; use FREQ=YEARLY, or BYMONTH and BYMONTHDAY"
        )
    if rule.by_month_day and freq == Frequency.WEEKLY:
        raise InvalidRecurrence(
            "BYMONTHDAY", "is not allowed with FREQ=WEEKLY; use FREQ=MONTHLY, or FREQ=DAILY to test each day"
        )
    if any(day.n for day in rule.by_day):
        if freq not in (Frequency.MONTHLY, Frequency.YEARLY):
            raise InvalidRecurrence(
                "BYDAY",
                f"numbered days are not allowed with FREQ={freq.name}, only with MONTHLY and YEARLY; "
                "leave the numbers out",
            )
        if rule.by_week_no:
            raise InvalidRecurrence(
                "BYDAY", "numbered days cannot stand beside BYWEEKNO; leave the numbers out"
            )
    lists = (getattr(rule, spec.field) for spec in _LISTS.values() if spec.field != "by_set_pos")
    if rule.by_set_pos and not (rule.by_day or any(lists)):
        raise InvalidRecurrence(
            "BYSETPOS", "picks from what other BY parts give; add one, for example BYDAY=MO,TU,WE,TH,FR"
        )

"""What somebody who writes a cron expression where a rule belongs is told: the rule that means the same.

Only what is the same in every cron is translated. Days of the month beside days of the week, which cron joins
by "or", and the letters L, W and # are not.
"""

import re
from typing import Final, NamedTuple

from scheduler_app.domain.recurrence.rules.rule import DAY_NAMES

_LONGEST: Final = 100
_MONTHS: Final = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_FIELD: Final = re.compile(rf"(?:[0-9*?LW/,#-]|{'|'.join((*_MONTHS, *_DAYS))})+", re.IGNORECASE)
_ITEM: Final = re.compile(r"(\*|[0-9]{1,2}|[A-Z]{3})(?:-([0-9]{1,2}|[A-Z]{3}))?(?:/([0-9]{1,2}))?")
_MACROS: Final = {
    "@YEARLY": "0 0 1 1 *",
    "@ANNUALLY": "0 0 1 1 *",
    "@MONTHLY": "0 0 1 * *",
    "@WEEKLY": "0 0 * * 0",
    "@DAILY": "0 0 * * *",
    "@MIDNIGHT": "0 0 * * *",
    "@HOURLY": "0 * * * *",
}


class _Field(NamedTuple):
    """The numbers that a field may hold, and the names for the first of them."""

    low: int
    high: int
    names: tuple[str, ...] = ()


_FIELDS: Final = (_Field(0, 59), _Field(0, 23), _Field(1, 31), _Field(1, 12, _MONTHS), _Field(0, 7, _DAYS))


class _NotSimple(Exception):
    """No rule that means the same in every cron."""


def cron_hint(text: str) -> str | None:
    """The end of a sentence that begins with the quoted `text`; None when it is no cron expression."""
    if len(text) > _LONGEST:
        return None
    upper = text.strip().upper()
    fields = _MACROS.get(upper, upper).split()
    if not upper.startswith("@") and not (5 <= len(fields) <= 7 and all(map(_FIELD.fullmatch, fields))):
        return None
    try:
        return f"is a cron expression; the same as a recurrence rule is {_rule(fields)}"
    except _NotSimple:
        return (
            "is a cron expression, which cannot be given here; write a recurrence rule such as "
            "FREQ=WEEKLY;BYDAY=MO;BYHOUR=9;BYMINUTE=0;BYSECOND=0"
        )


def _rule(fields: list[str]) -> str:
    if len(fields) != len(_FIELDS):
        raise _NotSimple
    values = [_numbers(text, field) for text, field in zip(fields, _FIELDS, strict=True)]
    minutes, hours, month_days, months, week_days = values
    days = sorted({(day - 1) % 7 for day in week_days})
    if len(days) == 7:
        days = []
    if month_days and days:
        raise _NotSimple
    if not minutes:
        freq = "MINUTELY"
    elif not hours:
        freq = "HOURLY"
    elif days:
        freq = "WEEKLY"
    elif month_days:
        freq = "YEARLY" if months else "MONTHLY"
    else:
        freq = "DAILY"
    parts = (
        ("BYMONTH", map(str, months)),
        ("BYMONTHDAY", map(str, month_days)),
        ("BYDAY", (DAY_NAMES[day] for day in days)),
        ("BYHOUR", map(str, hours)),
        ("BYMINUTE", map(str, minutes)),
        ("BYSECOND", ("0",)),
    )
    written = [f"{name}={','.join(listed)}" for name, values in parts if (listed := tuple(values))]
    return ";".join([f"FREQ={freq}", *written])


def _numbers(text: str, field: _Field) -> list[int]:
    """The numbers of a field, ascending; none where it is every one."""
    found: set[int] = set()
    if text != "?":
        for item in text.split(","):
            found |= set(_item(item, field))
    return [] if len(found) == field.high - field.low + 1 else sorted(found)


def _item(text: str, field: _Field) -> range:
    match = _ITEM.fullmatch(text)
    if match is None:
        raise _NotSimple
    first, last, step = match[1], match[2], int(match[3] or 1)
    if first == "*":
        low, high = field.low, min(field.high, 6) if field.names == _DAYS else field.high
    else:
        low = _number(first, field)
        high = _number(last, field) if last else field.high if match[3] else low
    if not field.low <= low <= high <= field.high or not step or (first == "*" and last):
        raise _NotSimple
    return range(low, high + 1, step)


def _number(text: str, field: _Field) -> int:
    if text.isdigit():
        return int(text)
    if text not in field.names:
        raise _NotSimple
    return field.low + field.names.index(text)

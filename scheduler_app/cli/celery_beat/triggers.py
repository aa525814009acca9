"""Celery's `crontab` and intervals as triggers of the API. Two things differ from cron: a day must satisfy
both day fields, and ranges may run backwards. Celery's own grammar is that of
`celery.schedules.crontab_parser`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from scheduler_app.cli.entry_import import NotImportable
from scheduler_app.client import Json

_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_PART: Final = re.compile(r"(?:(\*)|(\w+)(?:-(\w+))?)(?:/([0-9]{1,4}))?", re.ASCII)
_STEPS: Final = re.compile(r"\*/0*[1-9][0-9]*")
_MAX_CHARACTERS: Final = 500


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Values:
    written: str
    numbers: tuple[int, ...]
    everything: bool

    @property
    def star(self) -> bool:
        return self.written.startswith("*")


#: In cron's order.
_FIELDS: Final = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day_of_month", 1, 31),
    _Field("month_of_year", 1, 12, _MONTHS),
    _Field("day_of_week", 0, 6, _DAYS),
)


def crontab_trigger(
    given: Mapping[str, object], timezone: str, *, start: datetime | None = None, end: datetime | None = None
) -> Json:
    """`given` are the five fields by Celery's names; what is missing is `*`. It fires from `start` on and
    before `end`. Raises NotImportable."""
    values = {field.name: _read(given.get(field.name, "*"), field) for field in _FIELDS}
    month_days, weekdays = values["day_of_month"], values["day_of_week"]
    # Where one of the day fields begins with *, cron too wants both satisfied.
    if start is None and end is None and (month_days.star or weekdays.star):
        return {"cron": " ".join(each.written for each in values.values()), "timezone": timezone}
    parts = [_rule(values)]
    lines = []
    if start is not None:
        local = start.astimezone(_zone(timezone))
        lines.append(f"DTSTART;TZID={timezone}:{local:%Y%m%dT%H%M%S}")
    if end is not None:
        parts.append(until(end))
    return {"rrule": "\n".join([*lines, "RRULE:" + ";".join(parts)]), "timezone": timezone}


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise NotImportable(f"{name!r} is no zone of IANA's") from None


def until(end: datetime) -> str:
    """The part of a rule by which nothing fires at `end` or later."""
    return f"UNTIL={end.astimezone(UTC) - timedelta(seconds=1):%Y%m%dT%H%M%SZ}"


def _rule(values: Mapping[str, _Values]) -> str:
    """As the API translates `cron`: what has a * among its times steps in elapsed time at clock changes."""
    minute, hour = values["minute"], values["hour"]
    follows_clock = minute.star or hour.star
    freq = "MINUTELY" if minute.everything else "HOURLY" if follows_clock else "DAILY"
    named = {
        "BYMONTH": _numbers(values["month_of_year"]),
        "BYMONTHDAY": _numbers(values["day_of_month"]),
        "BYDAY": [_DAYS[n][:2].upper() for n in _numbers(values["day_of_week"])],
        "BYHOUR": _numbers(hour) if follows_clock else hour.numbers,
        "BYMINUTE": _numbers(minute),
        "BYSECOND": (0,),
    }
    limits = (f"{name}={','.join(map(str, held))}" for name, held in named.items() if held)
    return ";".join([f"FREQ={freq}", *limits])


def _numbers(values: _Values) -> tuple[int, ...]:
    """The numbers that a field allows; empty where it allows all."""
    return () if values.everything else values.numbers


def _read(given: object, field: _Field) -> _Values:
    text = _text(given)
    if not text or len(text) > _MAX_CHARACTERS:
        raise _refused(text[:50], field)
    found: set[int] = set()
    for part in text.split(","):
        found.update(_part(part, field))
    numbers = tuple(sorted(found))
    if len(numbers) == field.high - field.low + 1:
        return _Values("*", numbers, True)
    # Otherwise `*/2` stays what it is: it tells that the field follows the clock.
    written = text if _STEPS.fullmatch(text) else _ranges(numbers)
    return _Values(written, numbers, False)


def _text(given: object) -> str:
    """A field is text, a number, or a collection of numbers."""
    if isinstance(given, Iterable) and not isinstance(given, str):
        return ",".join(map(str, given))
    return re.sub(r"\s", "", str(given)).strip("[]")


def _part(part: str, field: _Field) -> Iterable[int]:
    match = _PART.fullmatch(part)
    if match is None or (match[4] and (int(match[4]) == 0 or (match[2] and not match[3]))):
        raise _refused(part, field)
    step = int(match[4] or 1)
    if match[1]:
        return range(field.low, field.high + 1, step)
    low = _number(match[2], field)
    high = _number(match[3], field) if match[3] else low
    if low <= high:
        return range(low, high + 1, step)
    # fri-mon: to the end, and on from the beginning.
    return [*range(low, field.high + 1), *range(field.low, high + 1)][::step]


def _number(text: str, field: _Field) -> int:
    name = text[:3].lower()
    number = (
        int(text) if text.isdigit() else field.names.index(name) + field.low if name in field.names else -1
    )
    if not field.low <= number <= field.high:
        raise _refused(text, field)
    return number


def _ranges(numbers: tuple[int, ...]) -> str:
    """1, 2, 3 and 5 as 1-3,5."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs)


def _refused(text: str, field: _Field) -> NotImportable:
    return NotImportable(
        f"{text!r} is no {field.name} of a crontab: it takes numbers from {field.low} to {field.high},"
        " ranges and steps"
    )


_SECOND = timedelta(seconds=1)
_MAX_SECONDS = 1_000_000_000


def interval_trigger(every: timedelta, *, start: datetime | None = None, end: datetime | None = None) -> Json:
    """It counts from `start`, or from when it is imported, and fires before `end`. Raises NotImportable."""
    if every < _SECOND or every % _SECOND:
        raise NotImportable(
            f"it runs every {every.total_seconds():g} s; only whole seconds, from 1 on, can be taken over"
        )
    seconds = every // _SECOND
    if end is not None:
        if start is None:
            raise NotImportable("it has an end, but no time from which it counts; give it a start_time")
        return {"rrule": f"{_dtstart(start)}\nRRULE:FREQ=SECONDLY;INTERVAL={seconds};{until(end)}"}
    if start is None:
        return {"every_seconds": seconds}
    return {"every_seconds": seconds, "start_at": f"{_whole(start):%Y-%m-%dT%H:%M:%SZ}"}


def seconds(given: object) -> timedelta:
    """Raises NotImportable."""
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 < given <= _MAX_SECONDS:
        raise NotImportable(f"its interval must be a number of seconds, up to {_MAX_SECONDS:,}")
    return timedelta(seconds=given)


def _whole(instant: datetime) -> datetime:
    return instant.astimezone(UTC).replace(microsecond=0)


def _dtstart(start: datetime) -> str:
    return f"DTSTART:{_whole(start):%Y%m%dT%H%M%SZ}"

"""A cron expression taken apart: five fields, a shorthand such as `@daily`, or six fields with seconds."""

import re
from dataclasses import dataclass
from typing import Final, Literal

from .day_fields import MonthDays, Weekdays, read_month_days, read_weekdays
from .errors import quoted, refused
from .fields import HOURS, MINUTES, MONTHS, SECONDS, WEEKDAYS, Values, read_field

#: Where the seconds stand in six fields: before the minutes (Quartz, Spring, cronsim) or last (croniter).
SecondsAt = Literal["first", "last"]

SHORTHANDS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_ON_THE_MINUTE: Final = "0"
_ZONE: Final = re.compile(r"(?:CRON_)?TZ=(\S*)", re.IGNORECASE)
_YEARS: Final = re.compile(r"[0-9]{4}([,/-][0-9]+)*")
_FIELD: Final = re.compile(rf"(?:[0-9*?#,/LWHR-]|{'|'.join(MONTHS.names + WEEKDAYS.names)})+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Expression:
    """The six fields, read and checked one by one."""

    seconds: Values
    minutes: Values
    hours: Values
    month_days: MonthDays
    months: Values
    weekdays: Weekdays

    @property
    def follows_clock(self) -> bool:
        """Whether a field of its times begins with `*`. Vixie's cron runs such a job whenever the clock shows
        its time: in both of two equal hours, and not in one that the clock skips."""
        return self.seconds.star or self.minutes.star or self.hours.star

    @property
    def both_days(self) -> bool:
        """Whether a day must satisfy both day fields; else it is enough to satisfy one (crontab(5))."""
        return self.month_days.star or self.weekdays.star


def split(text: str) -> list[str]:
    """The five or six fields of an expression, a shorthand written out; InvalidField for what is none, with
    what to use instead."""
    fields = text.split()
    if not fields:
        raise refused("is empty; give five fields: minute, hour, day of the month, month, weekday")
    if fields[0].startswith("@"):
        return _shorthand(text.strip())
    if zone := _ZONE.fullmatch(fields[0]):
        raise refused(
            f"{quoted(fields[0])} does not belong here; give the zone as the field timezone, "
            f"{quoted(zone[1])}"
        )
    if not all(map(_FIELD.fullmatch, fields[5:])):
        raise refused(
            f"{_joined(fields[5:])} is not a field; give the times alone, {_joined(fields[:5])}, without a "
            "command"
        )
    if len(fields) == 7 or (len(fields) == 6 and _YEARS.fullmatch(fields[5])):
        raise refused(
            f"the year {quoted(fields[-1])} cannot be given; leave it out, {_joined(fields[:-1])}, or use "
            "rrule, which has DTSTART and UNTIL"
        )
    if len(fields) not in (5, 6):
        raise refused(
            f"{quoted(text)} has {len(fields)} field{'' if len(fields) == 1 else 's'}; give five: minute, "
            "hour, day of the month, month, weekday, such as 0 9 * * 1-5"
        )
    return fields


def read(fields: list[str], seconds_at: SecondsAt) -> Expression:
    """The expression that five fields are, or six with the seconds first or last. Raises InvalidField."""
    if len(fields) == 5:
        fields = [_ON_THE_MINUTE, *fields]
    elif seconds_at == "last":
        fields = [fields[5], *fields[:5]]
    seconds, minutes, hours, month_days, months, weekdays = fields
    return Expression(
        read_field(seconds, SECONDS),
        read_field(minutes, MINUTES),
        read_field(hours, HOURS),
        read_month_days(month_days),
        read_field(months, MONTHS),
        read_weekdays(weekdays),
    )


def _joined(fields: list[str]) -> str:
    return quoted(" ".join(fields))


def _shorthand(text: str) -> list[str]:
    name = text.lower()
    if name in SHORTHANDS:
        return SHORTHANDS[name].split()
    if name == "@reboot":
        raise refused(
            "'@reboot' is no time; let what starts the machine call POST /api/v1/schedules/{id}/run, or give "
            "run_at for a single instant"
        )
    if name.startswith("@every"):
        raise refused(f"{quoted(text)} is an interval; use every_seconds, such as 300 for five minutes")
    raise refused(f"{quoted(text)} is not known; use one of {', '.join(SHORTHANDS)}, or five fields")

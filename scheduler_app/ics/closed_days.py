"""The days of an iCalendar file of holidays."""

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.recurrence.zones.zone import find_zone
from scheduler_app.domain.text import one_line

from .calendar_file import TooLarge, check_time, read_calendars
from .component import Component
from .pattern import Pattern
from .reading import MAX_ITEMS, groups_of, patterns_of
from .times import read_one
from .zones import CalendarZones

#: Recurring events are read from last year on for this many years.
YEARS_AHEAD: Final = 20
#: Days of one event, such as school holidays.
MAX_LENGTH: Final = 366
_MAX_NAME: Final = 200
_YEAR: Final = timedelta(days=366)


def closed_days(
    text: str, now: datetime, *, most: int, is_out_of_time: Callable[[], bool] = lambda: False
) -> list[tuple[date, str]]:
    """The days of the file's events without a time, each with the event's name; cancelled ones are left out.

    Raises InvalidField("ics") for an event that has a time or cannot be read, and TooLarge beyond `most`
    days. `is_out_of_time` is asked before each event.
    """
    found: dict[tuple[date, str], None] = {}
    for calendar in read_calendars(text, max_items=MAX_ITEMS):
        zones = CalendarZones(calendar, given="UTC", now=now)
        for number, group in enumerate(groups_of(calendar)):
            check_time(is_out_of_time, number)
            first = group[0]
            if first.name != "VEVENT" or (first.text("STATUS") or "").upper() == "CANCELLED":
                continue
            name = one_line(first.text("SUMMARY") or "").strip()[:_MAX_NAME]
            try:
                days = _days(group, zones, now, most)
            except InvalidField as error:
                raise InvalidField("ics", f"{name or first.text('UID')!r}: {error.message}") from None
            found |= dict.fromkeys((day, name) for day in days)
            if len(found) > most:
                raise TooLarge("ics", f"comes to more than {most:,} days; give a file with fewer")
    return list(found)


def _days(group: Sequence[Component], zones: CalendarZones, now: datetime, most: int) -> list[date]:
    patterns = patterns_of(group, zones, [])
    length = _length(group[0], zones, patterns[0])
    found: list[date] = []
    for pattern in patterns:
        if not pattern.start.date_only:
            raise InvalidField("ics", "has a time; a closed day is an event without one")
        since = now - _YEAR if pattern.rules else datetime(1970, 1, 1, tzinfo=UTC)
        zone = find_zone(pattern.start.zone).info
        for start in pattern.recurrence(now).between(since, now + YEARS_AHEAD * _YEAR, most + 1):
            first = start.astimezone(zone).date()
            found += [first + timedelta(days=number) for number in range(length)]
    return found


def _length(component: Component, zones: CalendarZones, pattern: Pattern) -> int:
    """How many days an event has; DTEND is the day after the last."""
    end = component.first("DTEND")
    if end is None:
        return 1
    days = (read_one(end, zones)[0].local - pattern.start.local).days
    if not 1 <= days <= MAX_LENGTH:
        raise InvalidField("DTEND", f"must be 1 to {MAX_LENGTH} days after DTSTART")
    return days

"""Times of an iCalendar file: a wall clock's reading and the zone that it is read in."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from scheduler_app.domain.errors import InvalidField, InvalidRecurrence
from scheduler_app.domain.local_time import instant_at
from scheduler_app.domain.recurrence.text.time_text import read_time
from scheduler_app.domain.recurrence.timeline import local_datetime
from scheduler_app.domain.recurrence.zones.zone import find_zone

from .component import Property
from .zones import CalendarZones

MAX_VALUES: Final = 2_000


@dataclass(frozen=True, slots=True)
class CalendarTime:
    """A naive wall-clock time in an IANA zone; a date is its midnight, and `date_only`."""

    local: datetime
    zone: str
    date_only: bool = False

    @property
    def instant(self) -> datetime:
        """The instant, in UTC."""
        return instant_at(self.local, self.zone)

    def seen_in(self, zone: str) -> "CalendarTime":
        """The same instant on the wall clock of another zone."""
        local = self.instant.astimezone(find_zone(zone).info).replace(tzinfo=None)
        return replace(self, local=local, zone=zone)

    def moved(self, by: timedelta, zone: str) -> "CalendarTime":
        """The same wall clock `by` later, in another zone. Raises InvalidField beyond the years 1 to 9999."""
        try:
            return replace(self, local=self.local + by, zone=zone)
        except OverflowError:
            raise InvalidField("RECURRENCE-ID", "moves a time beyond the years 1 to 9999") from None

    def written(self) -> str:
        """The DATE-TIME value."""
        year = f"{self.local.year:04d}"
        return f"{year}{self.local:%m%dT%H%M%S}{'Z' if self.zone == 'UTC' else ''}"


class Times(NamedTuple):
    """The times of a property, and what an import says of them."""

    values: list[CalendarTime]
    notes: list[str]


def read_times(found: Property, zones: CalendarZones, *, zone_of_dates: str | None = None) -> Times:
    """The times of DTSTART, DUE, RECURRENCE-ID, RDATE or EXDATE. Dates without a time are read in
    `zone_of_dates`. Raises InvalidField, or InvalidRecurrence."""
    notes: list[str] = []
    if found.value.count(",") >= MAX_VALUES:
        raise InvalidField(found.name, f"has more than {MAX_VALUES:,} values")
    tzid, own = found.parameters.get("TZID"), zones.default
    values = []
    for text in _values(found, notes):
        time = read_time(found.name, text)
        if time.date_only:
            zone = zone_of_dates or own
        elif time.utc:
            zone = "UTC"
        elif tzid:
            named = zones.named(tzid)
            zone = named.name
            if named.note and named.note not in notes:
                notes.append(named.note)
        else:
            zone = own
            if zones.note_of_default not in notes:
                notes.append(zones.note_of_default)
        values.append(CalendarTime(local_datetime(time.second, None), zone, time.date_only))
    return Times(values, notes)


def read_one(found: Property, zones: CalendarZones) -> tuple[CalendarTime, list[str]]:
    """The time of a property that has one. Raises InvalidField, or InvalidRecurrence."""
    values, notes = read_times(found, zones)
    if len(values) != 1:
        raise InvalidRecurrence(found.name, "must have one value")
    return values[0], notes


def _values(found: Property, notes: list[str]) -> Iterator[str]:
    """The values one by one; of a period its start."""
    for text in found.value.split(","):
        start, slash, _ = text.strip().partition("/")
        if (
            slash
            and found.name == "RDATE"
            and (note := "Of a period in RDATE only its start is used.") not in notes
        ):
            notes.append(note)
        yield start

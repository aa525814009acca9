"""Times of an iCalendar file: a wall clock's reading, and the IANA zone that it is read in.

A calendar means a zone by its name, by a Windows name, or by offsets that the file defines.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from scheduler_app.domain.errors import InvalidField, InvalidRecurrence
from scheduler_app.domain.recurrence import Recurrence
from scheduler_app.domain.recurrence.rule_text import read_rule, read_time, write_time
from scheduler_app.domain.recurrence.rules.rule import Rule
from scheduler_app.domain.recurrence.timeline import floor_second, local_datetime, local_second
from scheduler_app.domain.recurrence.zones import UnknownZone, better_zone, find_zone, instant_at
from scheduler_app.ics.calendar_file import Component, Property, windows_zones

#: A VTIMEZONE is compared with known zones over these years around now.
YEARS_BEFORE: Final = 1
YEARS_AFTER: Final = 2
#: Clock changes of each observance, from 1601 on; observances of each VTIMEZONE, and definitions of a file.
MAX_CHANGES: Final = 1_000
MAX_OBSERVANCES: Final = 100
MAX_DEFINITIONS: Final = 200
_YEAR: Final = timedelta(days=365)
_MONTH: Final = timedelta(days=30)
#: Zones of one offset; the sign is that of POSIX, west of Greenwich.
_FIXED: Final = tuple(f"Etc/GMT{hours:+d}" for hours in (*range(1, 13), *range(-14, 0)))


class NamedZone(NamedTuple):
    """An IANA zone, and what to say where it was not named so."""

    name: str
    note: str | None = None


class CalendarZones:
    """The zones of one VCALENDAR. `given` is the zone of times that name none, unless the calendar has an
    X-WR-TIMEZONE."""

    def __init__(self, calendar: Component, *, given: str, now: datetime) -> None:
        """Raises InvalidField for an X-WR-TIMEZONE that means no zone."""
        self._now = now
        self._definitions: dict[str, Component] = {}
        for each in calendar.components:
            tzid = each.text("TZID") if each.name == "VTIMEZONE" else None
            if tzid and len(self._definitions) < MAX_DEFINITIONS:
                self._definitions.setdefault(tzid, each)
        self._found: dict[str, NamedZone | InvalidField] = {}
        own = calendar.text("X-WR-TIMEZONE")
        self.default = self.named(own).name if own else given
        source = "the calendar's X-WR-TIMEZONE" if own else "the timezone of the request"
        self.note_of_default = f"A time without a zone is read in {self.default}, {source}."

    def named(self, tzid: str) -> NamedZone:
        """The zone that a TZID means. Raises InvalidField."""
        if tzid not in self._found:
            self._found[tzid] = self._find(tzid)
        found = self._found[tzid]
        if isinstance(found, InvalidField):
            raise found
        return found

    def _find(self, tzid: str) -> NamedZone | InvalidField:
        definition = self._definitions.get(tzid)
        named = _by_name(tzid, definition)
        if named is not None:
            return named if definition is None else self._as_defined(named, definition, tzid)
        if definition is None:
            return InvalidField(
                "TZID", f"{tzid[:60]!r} is no time zone, and the file does not define it; {better_zone(tzid)}"
            )
        try:
            same = _zone_with(_offsets(definition, self._now), tzid)
        except InvalidField as error:
            return InvalidField("TZID", f"{tzid[:60]!r} cannot be read: {error.message}")
        if same is None:
            return InvalidField(
                "TZID",
                f"the file defines {tzid[:60]!r} with offsets that no known zone has;"
                " name a place such as Europe/Paris",
            )
        return NamedZone(same, f"TZID {tzid[:60]!r} is read as {same}, which has its offsets {self._years}.")

    def _as_defined(self, named: NamedZone, definition: Component, tzid: str) -> NamedZone:
        """The zone of a name that the file also defines: its definition goes before the name (RFC 5545,
        3.2.19), where a known zone has its offsets."""
        try:
            wanted = _offsets(definition, self._now)
        except InvalidField as error:
            note = f"The file's own definition of {tzid[:60]!r} is not used: it {error.message}."
            return NamedZone(named.name, note)
        if not wanted or _has_offsets(named.name, wanted):
            return named
        differs = f"The file defines {tzid[:60]!r} with other offsets than {named.name} has"
        same = _zone_with(wanted, tzid)
        if same is None:
            return NamedZone(
                named.name,
                f"{differs}, and no known zone has these: it is read as {named.name} all the same.",
            )
        return NamedZone(same, f"{differs}: it is read as {same}, which has them {self._years}.")

    @property
    def _years(self) -> str:
        """The years over which definitions are compared."""
        return f"from {self._now.year - YEARS_BEFORE} to {self._now.year + YEARS_AFTER}"


def _by_name(tzid: str, definition: Component | None) -> NamedZone | None:
    """The zone that a TZID names, or its definition's X-LIC-LOCATION."""
    if iana := _iana(tzid):
        return NamedZone(iana)
    if windows := windows_zones().get(tzid.strip().lower()):
        return NamedZone(windows, f"The Windows zone {tzid[:60]!r} is read as {windows}.")
    if definition is not None and (place := _iana(definition.text("X-LIC-LOCATION") or "")):
        return NamedZone(place, f"TZID {tzid[:60]!r} is read as {place}, its X-LIC-LOCATION.")
    return None


def _iana(tzid: str) -> str | None:
    """The IANA zone that a name is, or ends in: some programs write `/example.org/2026a/Europe/Berlin`."""
    parts = tzid.strip().strip("/").split("/")
    for count in (len(parts), 3, 2, 1):
        try:
            return find_zone("/".join(parts[-count:])).name
        except UnknownZone:
            continue
    return None


def _offsets(definition: Component, now: datetime) -> dict[int, int]:
    """The offsets of a VTIMEZONE these years, by UTC seconds, among them each change; empty where it has
    none. Raises InvalidField."""
    first, last = now - YEARS_BEFORE * _YEAR, now + YEARS_AFTER * _YEAR
    changes = _changes(definition, first, last)
    if not changes:
        return {}
    asked = {first + _MONTH * number for number in range((last - first) // _MONTH)}
    asked |= {at for at, _ in changes if first < at < last}
    # Before the first change, its offset is in force.
    return {
        floor_second(at): next((offset for since, offset in reversed(changes) if since <= at), changes[0][1])
        for at in asked
    }


def _zone_with(wanted: Mapping[int, int], tzid: str) -> str | None:
    """A zone that has these offsets; one whose city the TZID names before others, and places before fixed
    offsets."""
    if not wanted:
        return None
    places = sorted(dict.fromkeys(windows_zones().values()), key=lambda name: not _names_city(tzid, name))
    return next((name for name in (*places, *_FIXED) if _has_offsets(name, wanted)), None)


def _has_offsets(name: str, wanted: Mapping[int, int]) -> bool:
    zone = find_zone(name)
    return all(zone.offset(second) == offset for second, offset in wanted.items())


def _names_city(tzid: str, zone: str) -> bool:
    return zone.rpartition("/")[2].replace("_", " ").lower() in tzid.lower()


def _changes(definition: Component, first: datetime, last: datetime) -> list[tuple[datetime, int]]:
    """When the offset begins to be which, in seconds, up to `last`. Raises InvalidField."""
    observances = [each for each in definition.components if each.name in ("STANDARD", "DAYLIGHT")]
    if len(observances) > MAX_OBSERVANCES:
        raise InvalidField("VTIMEZONE", f"has more than {MAX_OBSERVANCES} parts")
    return sorted(change for each in observances for change in _onsets(each, first, last))


def _onsets(observance: Component, first: datetime, last: datetime) -> Iterator[tuple[datetime, int]]:
    before, after = (_offset(observance, name) for name in ("TZOFFSETFROM", "TZOFFSETTO"))
    start = observance.text("DTSTART")
    if start is None:
        raise InvalidField("VTIMEZONE", "has a part without DTSTART")
    # Evaluated by our own engine, whose steps are bounded, as if its local times were UTC.
    try:
        rules = [_as_if_local(read_rule(each.value), before) for each in observance.all("RRULE")]
        lines = [f"DTSTART:{start}", *(f"RRULE:{rule}" for rule in rules)]
        lines += [f"RDATE:{date}" for date in (start, *(each.value for each in observance.all("RDATE")))]
        times = Recurrence.parse("\n".join(lines), created_at=first)
    except InvalidRecurrence as error:
        raise InvalidField("VTIMEZONE", error.message) from None
    onsets = times.between(times.dtstart.astimezone(UTC), last, MAX_CHANGES + 1)
    if len(onsets) > MAX_CHANGES:
        raise InvalidField("VTIMEZONE", f"changes its offset more than {MAX_CHANGES:,} times")
    shift = timedelta(seconds=before)
    for onset in onsets:
        yield onset - shift, after


def _as_if_local(rule: Rule, offset: int) -> str:
    """The rule's text, whose UNTIL is an instant, with the wall clock's time of that instant."""
    if rule.until is None:
        return rule.text(None)
    second = rule.until.second + (offset if rule.until.utc else 0)
    return rule.text(write_time(second, utc=True))


def _offset(observance: Component, name: str) -> int:
    """Seconds east of UTC."""
    text = observance.text(name) or ""
    sign, digits = text[:1], text[1:]
    if sign not in ("+", "-") or len(digits) not in (4, 6) or not (digits.isascii() and digits.isdigit()):
        raise InvalidField("VTIMEZONE", f"{name} must be an offset such as +0100")
    seconds = int(digits[:2]) * 3600 + int(digits[2:4]) * 60 + int(digits[4:] or 0)
    return -seconds if sign == "-" else seconds


MAX_VALUES: Final = 2_000
_PERIOD: Final = "Of a period in RDATE only its start is used."


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
        return write_time(local_second(self.local), self.zone == "UTC")


def read_times(
    found: Property, zones: CalendarZones, notes: list[str], *, zone_of_dates: str | None = None
) -> list[CalendarTime]:
    """The times of DTSTART, DUE, RECURRENCE-ID, RDATE or EXDATE; `notes` collects how they were read. Dates
    without a time are read in `zone_of_dates`. Raises InvalidField, or InvalidRecurrence."""
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
    return values


def read_one(found: Property, zones: CalendarZones, notes: list[str]) -> CalendarTime:
    """The time of a property that has one. Raises InvalidField, or InvalidRecurrence."""
    values = read_times(found, zones, notes)
    if len(values) != 1:
        raise InvalidRecurrence(found.name, "must have one value")
    return values[0]


def _values(found: Property, notes: list[str]) -> Iterator[str]:
    """The values one by one; of a period its start."""
    for text in found.value.split(","):
        start, slash, _ = text.strip().partition("/")
        if slash and found.name == "RDATE" and _PERIOD not in notes:
            notes.append(_PERIOD)
        yield start

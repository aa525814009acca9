"""Writes a calendar: what is to come as rules or instants, what has been with its outcome.

Times with a zone refer to a VTIMEZONE of the same file, which holds the zone's changes from a year before the
first time on to some years after now; readers that know the zone's name use their own data.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from scheduler_app.domain.recurrence.standard_rule import StandardRule
from scheduler_app.domain.recurrence.timeline import floor_second, local_datetime
from scheduler_app.domain.recurrence.zones.zone import find_zone

from .library import escaped, written

#: What a VTIMEZONE holds after the instant at which the calendar is written.
ZONE_YEARS: Final = 10
_YEAR: Final = timedelta(days=365)
_PRODUCT: Final = "-//RRule Scheduler//EN"

Line = tuple[str, str, dict[str, str]]


@dataclass(frozen=True, slots=True)
class Entry:
    """What an event of the calendar says beside its times."""

    uid: str
    name: str
    written_at: datetime
    """When what it says was last changed."""
    description: str = ""
    categories: tuple[str, ...] = ()
    cancelled: bool = False


def write_calendar(
    name: str,
    coming: Iterable[tuple[Entry, StandardRule | Sequence[datetime]]],
    past: Iterable[tuple[Entry, datetime]],
    *,
    now: datetime,
    description: str = "",
) -> bytes:
    """The calendar of that name. Of what is coming each entry has a rule, or its instants, which must not be
    empty; all datetimes are aware but for a rule's start."""
    entries: list[str] = []
    zones: dict[str, None] = {}
    for entry, when in coming:
        if isinstance(when, StandardRule) and when.timezone != "UTC":
            zones[when.timezone] = None
        entries += written("VEVENT", (*_entry_lines(entry), *_times(when)))
    for entry, at in past:
        entries += written("VEVENT", (*_entry_lines(entry), ("DTSTART", _stamp(at), {})))
    head: list[Line] = [
        ("VERSION", "2.0", {}),
        ("PRODID", _PRODUCT, {}),
        ("CALSCALE", "GREGORIAN", {}),
        ("X-WR-CALNAME", escaped(name), {}),
    ]
    if description:
        head.append(("X-WR-CALDESC", escaped(description), {}))
    opening = written("VCALENDAR", head)
    definitions = [line for zone in zones for line in _zone(zone, now)]
    lines = [*opening[:-1], *definitions, *entries, opening[-1], ""]
    return "\r\n".join(lines).encode()


def _entry_lines(entry: Entry) -> Iterator[Line]:
    yield "UID", escaped(entry.uid), {}
    yield "DTSTAMP", _stamp(entry.written_at), {}
    yield "SUMMARY", escaped(entry.name), {}
    if entry.description:
        yield "DESCRIPTION", escaped(entry.description), {}
    if entry.categories:
        yield "CATEGORIES", ",".join(map(escaped, entry.categories)), {}
    # A callback takes none of a person's time.
    yield "TRANSP", "TRANSPARENT", {}
    if entry.cancelled:
        yield "STATUS", "CANCELLED", {}


def _times(when: StandardRule | Sequence[datetime]) -> Iterator[Line]:
    if not isinstance(when, StandardRule):
        yield "DTSTART", _stamp(when[0]), {}
        if len(when) > 1:
            yield "RDATE", ",".join(map(_stamp, when[1:])), {}
        return
    start = f"{when.start.year:04d}{when.start:%m%dT%H%M%S}"
    if when.timezone == "UTC":
        yield "DTSTART", f"{start}Z", {}
    else:
        yield "DTSTART", start, {"TZID": when.timezone}
    yield "RRULE", when.rule, {}
    for name, times in (("RDATE", when.dates), ("EXDATE", when.exceptions)):
        if times and when.timezone == "UTC":
            yield name, ",".join(map(_stamp, times)), {}
        elif times:
            # Some readers match exceptions only in the zone of the start.
            zone = find_zone(when.timezone).info
            local = ",".join(f"{each.astimezone(zone):%Y%m%dT%H%M%S}" for each in times)
            yield name, local, {"TZID": when.timezone}


def _zone(name: str, now: datetime) -> list[str]:
    """The VTIMEZONE of a zone: one part for each of its changes, after what was in force before them."""
    zone = find_zone(name)
    first, last = floor_second(now - _YEAR), floor_second(now + ZONE_YEARS * _YEAR)
    start, end, offset = zone.segment(first)
    parts: list[tuple[int, int, int]] = [(start, offset, offset)]
    while end <= last:
        following = zone.offset(end)
        parts.append((end, offset, following))
        offset, (_, end, _) = following, zone.segment(end)
    lines = written("VTIMEZONE", [("TZID", name, {})])
    inner: list[str] = []
    lowest = min(after for _, _, after in parts)
    for at, before, after in parts:
        local = local_datetime(max(at + before, _EARLIEST), None)
        kind = "STANDARD" if after == lowest else "DAYLIGHT"
        inner += written(
            kind,
            [
                ("DTSTART", f"{local:%Y%m%dT%H%M%S}", {}),
                ("TZOFFSETFROM", _offset(before), {}),
                ("TZOFFSETTO", _offset(after), {}),
            ],
        )
    return [*lines[:-1], *inner, lines[-1]]


#: A zone's first offset is in force since ever; 1970 is early enough for any reader.
_EARLIEST: Final = floor_second(datetime(1970, 1, 1, tzinfo=UTC))


def _offset(seconds: int) -> str:
    hours, rest = divmod(abs(seconds), 3600)
    minutes, rest = divmod(rest, 60)
    return f"{'-' if seconds < 0 else '+'}{hours:02d}{minutes:02d}{f'{rest:02d}' if rest else ''}"


def _stamp(instant: datetime) -> str:
    return f"{instant.astimezone(UTC):%Y%m%dT%H%M%SZ}"

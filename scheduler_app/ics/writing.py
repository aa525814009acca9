"""Writes a calendar: what is to come as rules or instants, what has been with its outcome.

Times with a zone refer to a VTIMEZONE of the same file (see `zone_definition`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from scheduler_app.domain.recurrence.standard_rule import StandardRule
from scheduler_app.domain.recurrence.zones.zone import find_zone

from .library import Line, escaped, written
from .zone_definition import zone_definition

_PRODUCT: Final = "-//RRule Scheduler//EN"
#: How often programs should ask for the calendar again.
_REFRESH: Final = "PT1H"

#: When something is coming.
When = StandardRule | datetime | Sequence[datetime]


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
    sequence: int = 0
    """How often it was changed."""


def write_calendar(
    name: str,
    coming: Iterable[tuple[Entry, When]],
    past: Iterable[tuple[Entry, datetime]],
    *,
    now: datetime,
    description: str = "",
) -> bytes:
    """The calendar of that name. Of what is coming each entry has a rule, one instant, or several; all
    datetimes are aware but for a rule's start.

    Each of several instants is an event of its own, whose UID is the entry's with the instant: programs read
    RDATE without an RRULE in different ways, and some drop such an event.
    """
    entries: list[str] = []
    zones: dict[str, None] = {}
    for entry, when in coming:
        if isinstance(when, datetime):
            entries += _single(entry, when)
            continue
        if not isinstance(when, StandardRule):
            for at in when:
                entries += _single(replace(entry, uid=f"{entry.uid}-{_stamp(at)}"), at)
            continue
        if when.timezone != "UTC":
            zones[when.timezone] = None
        entries += written("VEVENT", (*_entry_lines(entry), *_times(when)))
    for entry, at in past:
        entries += _single(entry, at)
    head: list[Line] = [
        ("VERSION", "2.0", {}),
        ("PRODID", _PRODUCT, {}),
        ("CALSCALE", "GREGORIAN", {}),
        ("X-WR-CALNAME", escaped(name), {}),
        ("REFRESH-INTERVAL", _REFRESH, {"VALUE": "DURATION"}),
        ("X-PUBLISHED-TTL", _REFRESH, {}),
    ]
    if description:
        head.append(("X-WR-CALDESC", escaped(description), {}))
    opening = written("VCALENDAR", head)
    definitions = [line for zone in zones for line in zone_definition(zone, now)]
    lines = [*opening[:-1], *definitions, *entries, opening[-1], ""]
    return "\r\n".join(lines).encode()


def _single(entry: Entry, at: datetime) -> list[str]:
    return list(written("VEVENT", (*_entry_lines(entry), ("DTSTART", _stamp(at), {}))))


def _entry_lines(entry: Entry) -> Iterator[Line]:
    yield "UID", escaped(entry.uid), {}
    yield "DTSTAMP", _stamp(entry.written_at), {}
    yield "LAST-MODIFIED", _stamp(entry.written_at), {}
    yield "SEQUENCE", str(entry.sequence), {}
    yield "SUMMARY", escaped(entry.name), {}
    if entry.description:
        yield "DESCRIPTION", escaped(entry.description), {}
    if entry.categories:
        yield "CATEGORIES", ",".join(map(escaped, entry.categories)), {}
    # A callback takes none of a person's time.
    yield "TRANSP", "TRANSPARENT", {}
    if entry.cancelled:
        yield "STATUS", "CANCELLED", {}


def _times(when: StandardRule) -> Iterator[Line]:
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


def _stamp(instant: datetime) -> str:
    return f"{instant.astimezone(UTC):%Y%m%dT%H%M%SZ}"

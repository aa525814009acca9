"""Writes a calendar: what is to come as rules or instants, what has been with its outcome.

Times with a zone refer to a VTIMEZONE of the same file, which lists the zone's changes one by one, or from
next year on as yearly rules. Some readers know a zone by its name; the others believe this definition for
as far as it goes.
"""

from calendar import monthrange
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from scheduler_app.domain.recurrence import Recurrence
from scheduler_app.domain.recurrence.rule_text import write_time
from scheduler_app.domain.recurrence.rules.rule import DAY_NAMES
from scheduler_app.domain.recurrence.standard_rule import StandardRule
from scheduler_app.domain.recurrence.timeline import floor_second, local_datetime, local_second
from scheduler_app.domain.recurrence.zones import Zone, find_zone
from scheduler_app.ics.calendar_file import Line, escaped, written

#: A yearly rule must hold for this many years; without one, changes are listed for as many.
YEARS: Final = 40
_YEAR: Final = timedelta(days=366)
#: What is in force since ever begins here.
_EARLIEST: Final = floor_second(datetime(1970, 1, 1, tzinfo=UTC))

#: When the offset changes (a UTC second), and from what to what.
OffsetChange = tuple[int, int, int]


def zone_definition(name: str, now: datetime) -> list[str]:
    """The content lines of a zone's VTIMEZONE, right from a year before `now` on. Raises UnknownZone."""
    zone = find_zone(name)
    changes = _changes(zone, floor_second(now - _YEAR), floor_second(now + YEARS * _YEAR))
    lowest = min(after for _, _, after in changes)
    next_year = [change for change in changes if _local(change).year == now.year + 1]
    rules = [_yearly(change, changes) for change in next_year]
    inner: list[str] = []
    if all(rules):
        changes = [change for change in changes if _local(change).year <= now.year]
        for change, rule in zip(next_year, rules, strict=True):
            inner += _part(change, lowest, [("RRULE", rule or "", {})])
    explicit = [line for change in changes for line in _part(change, lowest, [])]
    opening = written("VTIMEZONE", [("TZID", name, {})])
    return [*opening[:-1], *explicit, *inner, opening[-1]]


def _changes(zone: Zone, first: int, last: int) -> list[OffsetChange]:
    """What is in force at `first`, as a change from itself, and every change up to `last`."""
    start, end, offset = zone.segment(first)
    found = [(max(start, _EARLIEST), offset, offset)]
    while end <= last:
        before, (_, following, offset) = offset, zone.segment(end)
        found.append((end, before, offset))
        end = following
    return found


def _local(change: OffsetChange) -> datetime:
    """The wall clock at which it happens, by the offset before it."""
    return local_datetime(change[0] + change[1], None).replace(tzinfo=None)


def _yearly(change: OffsetChange, changes: list[OffsetChange]) -> str | None:
    """The rule by which a change comes back in each of the coming years; None if it does not."""
    local = _local(change)
    wanted = [_local(each) for each in changes if each[0] >= change[0] and each[1:] == change[1:]]
    for place in (
        (local.day - 1) // 7 + 1,
        -1 if local.day + 7 > monthrange(local.year, local.month)[1] else 0,
    ):
        rule = f"FREQ=YEARLY;BYMONTH={local.month};BYDAY={place}{DAY_NAMES[local.weekday()]}"
        if place and _yearly_times(rule, local, len(wanted)) == wanted:
            return rule
    return None


def _yearly_times(rule: str, start: datetime, count: int) -> list[datetime]:
    since = start.replace(tzinfo=UTC)
    times = Recurrence.parse(f"DTSTART:{start:%Y%m%dT%H%M%SZ}\nRRULE:{rule}", created_at=since)
    return [each.replace(tzinfo=None) for each in times.between(since, since + 2 * YEARS * _YEAR, count)]


def _part(change: OffsetChange, lowest: int, more: list[Line]) -> list[str]:
    _, before, after = change
    lines: list[Line] = [
        ("DTSTART", f"{_local(change):%Y%m%dT%H%M%S}", {}),
        ("TZOFFSETFROM", _offset(before), {}),
        ("TZOFFSETTO", _offset(after), {}),
    ]
    return list(written("STANDARD" if after == lowest else "DAYLIGHT", [*lines, *more]))


def _offset(seconds: int) -> str:
    hours, rest = divmod(abs(seconds), 3600)
    minutes, rest = divmod(rest, 60)
    return f"{'-' if seconds < 0 else '+'}{hours:02d}{minutes:02d}{f'{rest:02d}' if rest else ''}"


_PRODUCT: Final = "-//RRule Scheduler//EN"
#: How often programs should ask for the calendar again.
_REFRESH: Final = "PT1H"

#: When something is coming.
EntryTime = StandardRule | datetime | Sequence[datetime]


@dataclass(frozen=True, slots=True)
class CalendarEntry:
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
    coming: Iterable[tuple[CalendarEntry, EntryTime]],
    past: Iterable[tuple[CalendarEntry, datetime]],
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
        entries += written("VEVENT", (*_entry_lines(entry), *_rule_lines(when)))
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


def _single(entry: CalendarEntry, at: datetime) -> list[str]:
    return list(written("VEVENT", (*_entry_lines(entry), ("DTSTART", _stamp(at), {}))))


def _entry_lines(entry: CalendarEntry) -> Iterator[Line]:
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


def _rule_lines(when: StandardRule) -> Iterator[Line]:
    utc, zone = when.timezone == "UTC", find_zone(when.timezone).info
    parameters = {} if utc else {"TZID": when.timezone}
    yield "DTSTART", write_time(local_second(when.start), utc), parameters
    yield "RRULE", when.rule, {}
    # Some readers match exceptions only in the zone of the start.
    for name, times in (("RDATE", when.dates), ("EXDATE", when.exceptions)):
        if times:
            local = (local_second(each.astimezone(zone)) for each in times)
            yield name, ",".join(write_time(each, utc) for each in local), parameters


def _stamp(instant: datetime) -> str:
    return f"{instant.astimezone(UTC):%Y%m%dT%H%M%SZ}"

"""The VTIMEZONE of an IANA zone: its changes one by one, or from next year on as yearly rules.

Some readers know a zone by its name; the others believe this definition for as far as it goes.
"""

from calendar import monthrange
from datetime import UTC, datetime, timedelta
from typing import Final

from scheduler_app.domain.recurrence import Recurrence
from scheduler_app.domain.recurrence.rules.rule import DAY_NAMES
from scheduler_app.domain.recurrence.timeline import floor_second, local_datetime
from scheduler_app.domain.recurrence.zones.zone import Zone, find_zone

from .library import Line, written

#: A yearly rule must hold for so long; where none does, changes are listed for so long.
YEARS: Final = 40
_YEAR: Final = timedelta(days=366)
#: What is in force since ever begins here.
_EARLIEST: Final = floor_second(datetime(1970, 1, 1, tzinfo=UTC))

#: When the offset changes (a UTC second), and from what to what.
Change = tuple[int, int, int]


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


def _changes(zone: Zone, first: int, last: int) -> list[Change]:
    """What is in force at `first`, as a change from itself, and every change up to `last`."""
    start, end, offset = zone.segment(first)
    found = [(max(start, _EARLIEST), offset, offset)]
    while end <= last:
        before, (_, following, offset) = offset, zone.segment(end)
        found.append((end, before, offset))
        end = following
    return found


def _local(change: Change) -> datetime:
    """The wall clock at which it happens, by the offset before it."""
    return local_datetime(change[0] + change[1], None).replace(tzinfo=None)


def _yearly(change: Change, changes: list[Change]) -> str | None:
    """The rule by which a change comes back in each of the coming years; None if there is none."""
    local = _local(change)
    wanted = [_local(each) for each in changes if each[0] >= change[0] and each[1:] == change[1:]]
    for place in (
        (local.day - 1) // 7 + 1,
        -1 if local.day + 7 > monthrange(local.year, local.month)[1] else 0,
    ):
        rule = f"FREQ=YEARLY;BYMONTH={local.month};BYDAY={place}{DAY_NAMES[local.weekday()]}"
        if place and _times(rule, local, len(wanted)) == wanted:
            return rule
    return None


def _times(rule: str, start: datetime, count: int) -> list[datetime]:
    since = start.replace(tzinfo=UTC)
    times = Recurrence.parse(f"DTSTART:{start:%Y%m%dT%H%M%SZ}\nRRULE:{rule}", created_at=since)
    return [each.replace(tzinfo=None) for each in times.between(since, since + 2 * YEARS * _YEAR, count)]


def _part(change: Change, lowest: int, more: list[Line]) -> list[str]:
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

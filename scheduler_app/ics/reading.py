"""What an import makes of an iCalendar file: the recurrences of each event and to-do, or why it has none; and
the days of a file of holidays.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Final, Literal

from scheduler_app.domain.errors import InvalidField, InvalidRecurrence
from scheduler_app.domain.masking import one_line
from scheduler_app.domain.recurrence.rule_text import read_rule
from scheduler_app.domain.recurrence.rules.rule import Rule
from scheduler_app.domain.recurrence.timeline import local_datetime
from scheduler_app.domain.recurrence.zones import find_zone, timezone_named
from scheduler_app.ics.calendar_file import Component, TooLarge, check_time, read_calendars
from scheduler_app.ics.pattern import SeriesPattern, in_utc
from scheduler_app.ics.times import CalendarTime, CalendarZones, read_one, read_times

#: Events, to-dos and what else a file may hold beside zones; each comes to one schedule at most.
MAX_ITEMS: Final = 1_000
#: Changes "from this occurrence on" of one series: each is a schedule of its own.
MAX_PARTS: Final = 20
_KINDS: Final = ("VEVENT", "VTODO")
#: About the writing of the event, and not about what it says.
_BOOKKEEPING: Final = frozenset(("DTSTAMP", "CREATED", "LAST-MODIFIED", "SEQUENCE", "CLASS", "TRANSP"))
#: The values of STATUS that need no word.
_PLAIN: Final = ("", "CONFIRMED", "NEEDS-ACTION", "IN-PROCESS", "CANCELLED", "COMPLETED")
_MAX_SHOWN: Final = 200
ImportOutcome = Literal["schedules", "over", "ignored", "refused"]


@dataclass(frozen=True, slots=True)
class Series:
    """A recurrence that becomes one schedule."""

    name: str
    recurrence: str
    timezone: str
    part: int
    """Its place among the series of its event, whether or not those before it are over; below MAX_PARTS."""


@dataclass(frozen=True, slots=True)
class CalendarItem:
    """An event, with all that overrides its occurrences, or another component of the file."""

    component: str
    uid: str
    name: str
    outcome: ImportOutcome
    series: tuple[Series, ...] = ()
    """More than one where the series was changed from some occurrence on. Those without a coming occurrence
    are left out, unless the outcome is "over"."""
    reason: str | None = None
    """Why it makes no series."""
    ignored: tuple[str, ...] = ()
    """The names of properties and components that an import has no use for."""
    notes: tuple[str, ...] = ()
    """How it was read where that is not plain."""


def read_items(
    text: str, *, timezone: str, now: datetime, is_out_of_time: Callable[[], bool] = lambda: False
) -> list[CalendarItem]:
    """The items of a file, in its order. `timezone` is the zone of times that name none; `is_out_of_time` is
    asked before each item. Raises InvalidField where the file as a whole cannot be read, and TooLarge where
    it exceeds a bound."""
    timezone = timezone_named(timezone).name
    found: list[CalendarItem] = []
    for calendar in read_calendars(text, max_items=MAX_ITEMS):
        zones = CalendarZones(calendar, given=timezone, now=now)
        cancelled = (calendar.text("METHOD") or "").upper() == "CANCEL"
        for group in groups_of(calendar):
            check_time(is_out_of_time, len(found))
            reason = "the calendar's METHOD is CANCEL" if cancelled else None
            found.append(_item(group, zones, now, reason))
    return found


def groups_of(calendar: Component) -> list[list[Component]]:
    """The components of each item: a master first, if there is one, and then its overrides."""
    groups: dict[object, list[Component]] = {}
    for number, each in enumerate(calendar.components):
        if each.name == "VTIMEZONE":
            continue
        uid = each.text("UID")
        key = (each.name, uid) if uid and each.name in _KINDS else number
        groups.setdefault(key, []).append(each)
    return [
        sorted(group, key=lambda each: each.first("RECURRENCE-ID") is not None) for group in groups.values()
    ]


def _item(
    group: Sequence[Component], zones: CalendarZones, now: datetime, reason: str | None
) -> CalendarItem:
    first = group[0]
    uid, name = (one_line(first.text(each) or "")[:_MAX_SHOWN].strip() for each in ("UID", "SUMMARY"))
    name = name or uid or first.name
    ignored = tuple(dict.fromkeys(name for each in group for name in _ignored(each)))
    item = CalendarItem(first.name, uid, name, "ignored", ignored=ignored)
    if reason is None and first.name not in _KINDS:
        reason = f"{first.name} says nothing that could be called"
    status = (first.text("STATUS") or "").upper()
    if reason is None and status in ("CANCELLED", "COMPLETED") and first.first("RECURRENCE-ID") is None:
        reason = f"its STATUS is {status}"
    if reason is not None:
        return replace(item, reason=reason)
    notes: list[str] = []
    if status not in _PLAIN:
        notes.append(f"STATUS {status[:40]} makes no difference.")
    try:
        patterns = patterns_of(group, zones, notes)
        series, over = list[Series](), list[Series]()
        for part, pattern in enumerate(patterns):
            made = Series(name, pattern.text(), pattern.start.zone, part)
            (series if pattern.recurrence(now).after(now) else over).append(made)
    except InvalidField as error:
        reason = error.message if isinstance(error, InvalidRecurrence) else f"{error.field}: {error.message}"
        return replace(item, outcome="refused", reason=reason, notes=tuple(dict.fromkeys(notes)))
    item = replace(item, notes=tuple(dict.fromkeys(notes)))
    if series:
        return replace(item, outcome="schedules", series=tuple(series))
    return replace(item, outcome="over", series=tuple(over), reason="all of its occurrences have passed")


def _ignored(component: Component) -> list[str]:
    inner = [each.name for each in component.components]
    ends = [each.name for each in component.all("DTEND")]
    return [name for name in (*component.unread, *ends, *inner) if name not in _BOOKKEEPING]


def patterns_of(group: Sequence[Component], zones: CalendarZones, notes: list[str]) -> list[SeriesPattern]:
    """When the events of an item are; `notes` collects how that was read. Raises InvalidField."""
    for each in group:
        if each.problem:
            raise InvalidField("ics", each.problem)
    masters = [each for each in group if each.first("RECURRENCE-ID") is None]
    overrides = [each for each in group if each.first("RECURRENCE-ID") is not None]
    if len(masters) > 1:
        raise InvalidField(
            "UID", "several events without a RECURRENCE-ID have the same UID; give each its own"
        )
    if not masters:
        notes.append("The series of these occurrences is not in the file: they are read as single events.")
        return _single(overrides, zones, notes)
    return _overridden(_read_pattern(masters[0], zones, notes), masters[0], overrides, zones, notes)


def _single(overrides: Iterable[Component], zones: CalendarZones, notes: list[str]) -> list[SeriesPattern]:
    times = [_start(each, zones, notes) for each in overrides if not _is_cancelled(each)]
    if not times:
        raise InvalidField("STATUS", "every occurrence is cancelled")
    first, *others = sorted(times, key=lambda time: time.instant)
    return [SeriesPattern(first, dates=tuple(others))]


@dataclass(frozen=True, slots=True)
class _Override:
    original: CalendarTime
    moved_to: CalendarTime | None
    onwards: bool
    component: Component


def _overridden(
    pattern: SeriesPattern,
    master: Component,
    components: Sequence[Component],
    zones: CalendarZones,
    notes: list[str],
) -> list[SeriesPattern]:
    """The pattern with its overrides; one more for each change from some occurrence on."""
    overrides = [_read_override(each, pattern.start, zones, notes) for each in components]
    names = {each.component.text("SUMMARY") for each in overrides if each.moved_to is not None}
    if names - {master.text("SUMMARY"), None}:
        notes.append("The SUMMARY of changed occurrences is not used; the schedule has the series' own.")
    onwards = sorted((each for each in overrides if each.onwards), key=lambda each: each.original.instant)
    if len(onwards) >= MAX_PARTS:
        raise InvalidField("RECURRENCE-ID", f"changes the series onwards more than {MAX_PARTS - 1} times")
    elsewhere = [
        each.original.instant
        for each in overrides
        if each.moved_to is None or each.moved_to.instant != each.original.instant
    ]
    # A date of its own that is changed or cancelled goes; others may be moved to that instant.
    pattern = replace(pattern, dates=tuple(date for date in pattern.dates if date.instant not in elsewhere))
    for each in overrides:
        if not each.onwards:
            pattern = pattern.overridden(each.original, each.moved_to)
    if not onwards:
        return [pattern]
    done = [pattern.until(onwards[0].original)]
    for change, following in zip(onwards, [*onwards[1:], None], strict=True):
        if change.moved_to is None:
            break
        # Every RECURRENCE-ID names an occurrence of the series as it began.
        own = [read_rule(each.value) for each in change.component.all("RRULE")]
        if own:
            part = SeriesPattern(change.moved_to, tuple(_until_in_utc(rule, change.moved_to) for rule in own))
            done.append(part.until(following.original) if following else part)
        else:
            part = pattern.until(following.original) if following else pattern
            done.append(part.since(change.original, change.moved_to))
    return done


def _read_override(
    component: Component, start: CalendarTime, zones: CalendarZones, notes: list[str]
) -> _Override:
    found = component.first("RECURRENCE-ID")
    if found is None:
        raise InvalidField("RECURRENCE-ID", "is missing")
    original = read_one(found, zones, notes)
    if original.date_only and not start.date_only:
        # Some programs name only the day of the occurrence.
        original = replace(start, local=datetime.combine(original.local.date(), start.local.time()))
    elif original.zone == "UTC" and start.zone != "UTC":
        original = original.seen_in(start.zone)
    range_ = found.parameters.get("RANGE", "").upper()
    if range_ not in ("", "THISANDFUTURE"):
        raise InvalidField("RECURRENCE-ID", f"RANGE={range_[:40]} is not supported; use THISANDFUTURE")
    moved_to = None if _is_cancelled(component) else _start(component, zones, notes)
    return _Override(original, moved_to, range_ == "THISANDFUTURE", component)


def _read_pattern(component: Component, zones: CalendarZones, notes: list[str]) -> SeriesPattern:
    start = _start(component, zones, notes)
    rules = tuple(_until_in_utc(read_rule(each.value), start) for each in component.all("RRULE"))
    exceptions = tuple(_until_in_utc(read_rule(each.value), start) for each in component.all("EXRULE"))
    dates = _times("RDATE", component, start, zones, notes)
    removed = _times("EXDATE", component, start, zones, notes)
    whole_days = [each for each in removed if each.date_only and not start.date_only]
    found = SeriesPattern(
        start,
        rules,
        exceptions,
        tuple(dates),
        tuple(each for each in removed if each not in whole_days),
        tuple(whole_days),
    )
    if found.names_its_start():
        return found
    notes.append(
        f"DTSTART, {start.local:%Y-%m-%d %H:%M} in {start.zone}, is none of its rule's times: it counts as"
        " the first occurrence (RFC 5545)."
    )
    return found.with_its_start()


def _times(
    name: str, component: Component, start: CalendarTime, zones: CalendarZones, notes: list[str]
) -> list[CalendarTime]:
    lines = (read_times(each, zones, notes, zone_of_dates=start.zone) for each in component.all(name))
    return [time for times in lines for time in times]


def _start(component: Component, zones: CalendarZones, notes: list[str]) -> CalendarTime:
    """DTSTART; of a to-do without one, DUE."""
    found = component.first("DTSTART")
    if found is None and component.name == "VTODO":
        found = component.first("DUE")
    if found is None:
        raise InvalidField("DTSTART", "is missing; an event without it has no time")
    time = read_one(found, zones, notes)
    if time.date_only:
        notes.append(f"A day without a time begins at midnight in {time.zone}.")
    return time


def _until_in_utc(rule: Rule, start: CalendarTime) -> Rule:
    """The rule with its UNTIL in UTC: programs write it as a date, or as a local time, as well."""
    until = rule.until
    if until is None or (until.utc and not start.date_only):
        return rule
    local = local_datetime(until.second, None)
    if start.date_only:
        local = local.replace(hour=0, minute=0, second=0)
    return replace(rule, until=in_utc(CalendarTime(local, start.zone, until.date_only or start.date_only)))


def _is_cancelled(component: Component) -> bool:
    return (component.text("STATUS") or "").upper() == "CANCELLED"


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
            if first.name != "VEVENT" or _is_cancelled(first):
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


def _length(component: Component, zones: CalendarZones, pattern: SeriesPattern) -> int:
    """How many days an event has; DTEND is the day after the last."""
    end = component.first("DTEND")
    if end is None:
        return 1
    days = (read_one(end, zones, []).local - pattern.start.local).days
    if not 1 <= days <= MAX_LENGTH:
        raise InvalidField("DTEND", f"must be 1 to {MAX_LENGTH} days after DTSTART")
    return days

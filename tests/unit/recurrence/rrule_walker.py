"""A slow second opinion: RFC 5545 read word by word, one day or one elapsed unit after the other.

It shares no code and no idea with the evaluator: no sets of days, no jumps, `datetime` and `zoneinfo` for
everything. A rule is walked from its DTSTART on, so it is right about phases and counts without any
arithmetic on them.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import cache
from importlib import resources
from zoneinfo import ZoneInfo

NAMES = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"]
UNITS = {"HOURLY": 3600, "MINUTELY": 60, "SECONDLY": 1}


@cache
def zone_info(name: str) -> ZoneInfo:
    path = resources.files("tzdata").joinpath("zoneinfo", *name.split("/"))
    with path.open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def walk(
    rule: str, start: datetime, zone: str, stop: datetime, *, gap: str = "shift", overlap: str = "first"
) -> list[datetime]:
    """The instants (UTC) of `RRULE:rule` with the naive local DTSTART `start`, before `stop`, ascending."""
    parts = dict(piece.split("=") for piece in rule.split(";"))
    info = zone_info(zone)
    if parts["FREQ"] in UNITS:
        instants = walk_elapsed(parts, start, info, stop, overlap)
    else:
        instants = walk_calendar(parts, start, info, stop, gap, overlap)
    until = parts.get("UNTIL")
    found = sorted(set(instants))
    if until:
        last = datetime.strptime(until, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        found = [instant for instant in found if instant <= last]
    if "COUNT" in parts:
        found = found[: int(parts["COUNT"])]
    return [instant for instant in found if instant < stop]


def numbers(parts: dict[str, str], name: str) -> tuple[int, ...]:
    return listed(parts[name]) if name in parts else ()


@cache
def listed(values: str) -> tuple[int, ...]:
    return tuple(int(text) for text in values.split(","))


def instant_of(local: datetime, info: ZoneInfo, gap: str, overlap: str) -> datetime | None:
    """RFC 5545, 3.3.5, by `zoneinfo`: fold 0 is the offset before a change, fold 1 the one after."""
    early = local.replace(tzinfo=info, fold=0)
    instant = early.astimezone(UTC)
    if instant.astimezone(info).replace(tzinfo=None) != local:
        return instant if gap == "shift" else None
    if overlap == "last":
        return local.replace(tzinfo=info, fold=1).astimezone(UTC)
    return instant


def walk_calendar(
    parts: dict[str, str], start: datetime, info: ZoneInfo, stop: datetime, gap: str, overlap: str
) -> Iterator[datetime]:
    hours = numbers(parts, "BYHOUR") or (start.hour,)
    minutes = numbers(parts, "BYMINUTE") or (start.minute,)
    seconds = numbers(parts, "BYSECOND") or (start.second,)
    interval = int(parts.get("INTERVAL", "1"))
    positions = numbers(parts, "BYSETPOS")
    for index, days in enumerate(periods(parts, start.date(), stop.date() + timedelta(days=2))):
        if index % interval:
            continue
        chosen = [day for day in days if day_passes(parts, day, start.date())]
        if parts.get("SKIP", "OMIT") != "OMIT":
            chosen = sorted({*chosen, *moved_days(parts, days, start.date())})
        readings = [
            datetime(day.year, day.month, day.day, hour, minute, second)  # noqa: DTZ001 (a wall clock)
            for day in chosen
            for hour in sorted(set(hours))
            for minute in sorted(set(minutes))
            for second in sorted(set(seconds))
        ]
        if gap == "skip":
            readings = [reading for reading in readings if instant_of(reading, info, gap, overlap)]
        if positions:
            readings = pick(readings, positions)
        for reading in readings:
            if reading >= start:
                instant = instant_of(reading, info, gap, overlap)
                if instant is not None:
                    yield instant


def pick(found: list[datetime], positions: tuple[int, ...]) -> list[datetime]:
    size = len(found)
    indexes = {position - 1 if position > 0 else size + position for position in positions}
    return [found[index] for index in sorted(indexes) if 0 <= index < size]


def periods(parts: dict[str, str], start: date, last: date) -> Iterator[list[date]]:
    """The days of each period, from the whole period that holds `start` on."""
    freq = parts["FREQ"]
    week_start = NAMES.index(parts.get("WKST", "MO"))
    day = start
    if "BYWEEKNO" in parts:
        while week_number(day, week_start)[0] != 1:
            day -= timedelta(days=7)
        while day.weekday() != week_start:
            day -= timedelta(days=1)
    elif freq == "YEARLY":
        day = date(day.year, 1, 1)
    elif freq == "MONTHLY":
        day = day.replace(day=1)
    elif freq == "WEEKLY":
        while day.weekday() != week_start:
            day -= timedelta(days=1)
    while day <= last:
        days = [day]
        day += timedelta(days=1)
        while (
            ("BYWEEKNO" in parts and (day.weekday() != week_start or week_number(day, week_start)[0] != 1))
            or ("BYWEEKNO" not in parts and freq == "YEARLY" and day.year == days[0].year)
            or (freq == "MONTHLY" and day.month == days[0].month)
            or (freq == "WEEKLY" and day.weekday() != week_start)
        ):
            days.append(day)
            day += timedelta(days=1)
        yield days


def moved_days(parts: dict[str, str], days: list[date], start: date) -> Iterator[date]:
    """RFC 7529: where the days come to lie that a period of MONTHLY or YEARLY names and does not have."""
    numbers_given = numbers(parts, "BYMONTHDAY")
    others = [name for name in ("BYDAY", "BYYEARDAY", "BYWEEKNO") if name in parts]
    if parts["FREQ"] not in ("MONTHLY", "YEARLY"):
        return
    if numbers_given or not others:
        months = numbers(parts, "BYMONTH")
        if not months and parts["FREQ"] == "YEARLY" and implies_month(parts):
            months = (start.month,)
        limits = {name: parts[name] for name in ("FREQ", "WKST", *others) if name in parts}
        limits["SKIP LIMITS"] = "yes"
        if "BYMONTH" in parts:
            limits["BYDAY IN MONTHS"] = "yes"
        for first in (day for day in days if day.day == 1 and (not months or day.month in months)):
            after = (first + timedelta(days=31)).replace(day=1)
            for number in numbers_given or (start.day,):
                if abs(number) > (after - first).days:
                    yield from moved(parts, limits, first if number < 0 else after, start)
    elif "BYYEARDAY" in parts and days[0].year % 4:  # no century is walked
        limits = {name: value for name, value in parts.items() if name != "BYYEARDAY"}
        for number in numbers(parts, "BYYEARDAY"):
            if abs(number) == 366:
                yield from moved(parts, limits, date(days[0].year + (number > 0), 1, 1), start)


def moved(parts: dict[str, str], limits: dict[str, str], following: date, start: date) -> Iterator[date]:
    """The day after a gap in the calendar, or the one before it, if the later parts allow it."""
    day = following if parts["SKIP"] == "FORWARD" else following - timedelta(days=1)
    unlimited = not {"BYDAY", "BYYEARDAY", "BYWEEKNO", "BYMONTH"} & set(limits)
    if unlimited or day_passes(limits, day, start):
        yield day


def implies_month(parts: dict[str, str]) -> bool:
    """Whether a YEARLY rule takes its month from DTSTART."""
    numbered = any(len(text) > 2 for text in parts.get("BYDAY", "").split(","))
    return not numbered and not {"BYMONTH", "BYWEEKNO", "BYYEARDAY"} & set(parts)


def day_passes(parts: dict[str, str], day: date, start: date) -> bool:
    freq = parts["FREQ"]
    if freq == "YEARLY" and "BYMONTHDAY" in parts and implies_month(parts) and day.month != start.month:
        return False
    only_weeks = "BYWEEKNO" in parts and not {"BYDAY", "BYMONTHDAY", "BYYEARDAY"} & set(parts)
    if only_weeks and "SKIP LIMITS" not in parts and day.weekday() != start.weekday():
        return False
    named = [name for name in ("BYMONTH", "BYWEEKNO", "BYYEARDAY", "BYMONTHDAY", "BYDAY") if name in parts]
    if freq == "YEARLY" and not named and (day.month, day.day) != (start.month, start.day):
        return False
    if freq in ("YEARLY", "MONTHLY") and named in ([], ["BYMONTH"]) and day.day != start.day:
        return False
    if freq == "WEEKLY" and "BYDAY" not in parts and day.weekday() != start.weekday():
        return False
    if "BYMONTH" in parts and day.month not in numbers(parts, "BYMONTH"):
        return False
    if "BYMONTHDAY" in parts:
        from_end = ((day.replace(day=28) + timedelta(days=4)).replace(day=1) - day).days
        if not {day.day, -from_end} & set(numbers(parts, "BYMONTHDAY")):
            return False
    if "BYYEARDAY" in parts:
        number = (day - date(day.year, 1, 1)).days + 1
        from_end = (date(day.year, 12, 31) - day).days + 1
        if not {number, -from_end} & set(numbers(parts, "BYYEARDAY")):
            return False
    if "BYWEEKNO" in parts:
        number, total = week_number(day, NAMES.index(parts.get("WKST", "MO")))
        if not {number, number - total - 1} & set(numbers(parts, "BYWEEKNO")):
            return False
    return "BYDAY" not in parts or any(weekday_passes(parts, text, day) for text in parts["BYDAY"].split(","))


def weekday_passes(parts: dict[str, str], text: str, day: date) -> bool:
    number, name = text[:-2], text[-2:]
    if NAMES[day.weekday()] != name:
        return False
    if not number:
        return True
    in_month = parts["FREQ"] == "MONTHLY" or "BYMONTH" in parts or "BYDAY IN MONTHS" in parts
    return int(number) in places(day, in_month)


@cache
def places(day: date, in_month: bool) -> tuple[int, int]:
    """Which of its weekday a day is, in its month or year, from the front and from the end."""
    first = day.replace(day=1) if in_month else date(day.year, 1, 1)
    same = [
        other
        for other in (first + timedelta(days=count) for count in range(31 if in_month else 366))
        if other.weekday() == day.weekday()
        and other.year == day.year
        and (not in_month or other.month == day.month)
    ]
    return same.index(day) + 1, same.index(day) - len(same)


@cache
def week_number(day: date, week_start: int) -> tuple[int, int]:
    """The number of the week in which `day` lies, and how many weeks that week's year has."""
    monday = day
    while monday.weekday() != week_start:
        monday -= timedelta(days=1)
    owner = (monday + timedelta(days=3)).year  # the year that holds at least four of its days
    number = 1
    other = monday
    while (other - timedelta(days=4)).year == owner:
        other -= timedelta(days=7)
        number += 1
    total = number
    other = monday
    while (other + timedelta(days=10)).year == owner:
        other += timedelta(days=7)
        total += 1
    return number, total


def walk_elapsed(
    parts: dict[str, str], start: datetime, info: ZoneInfo, stop: datetime, overlap: str
) -> Iterator[datetime]:
    unit = UNITS[parts["FREQ"]]
    begin = instant_of(start, info, "shift", overlap)
    assert begin is not None
    shown = begin.astimezone(info)
    into = (shown.minute * 60 + shown.second) % unit
    period = begin - timedelta(seconds=into)
    minutes = list(range(60)) if "BYMINUTE" in parts and unit == 3600 else [into // 60]
    # Offsets have been whole minutes since 1972, so a second is the same on every clock.
    seconds = sorted(numbers(parts, "BYSECOND")) if "BYSECOND" in parts and unit > 1 else [into % 60]
    positions = numbers(parts, "BYSETPOS")
    while period < stop:
        found = [
            instant
            for instant in (
                period + timedelta(minutes=minute, seconds=second) for minute in minutes for second in seconds
            )
            if shows(parts, instant.astimezone(info), start)
        ]
        for instant in pick(found, positions) if positions else found:
            if instant >= begin:
                yield instant
        period += timedelta(seconds=unit * int(parts.get("INTERVAL", "1")))


def shows(parts: dict[str, str], local: datetime, start: datetime) -> bool:
    """Whether a local clock satisfies every BY part."""
    for name, value in (("BYHOUR", local.hour), ("BYMINUTE", local.minute), ("BYSECOND", local.second)):
        if name in parts and value not in numbers(parts, name):
            return False
    return day_passes(parts, local.date(), start.date())

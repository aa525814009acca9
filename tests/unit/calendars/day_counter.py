"""A second opinion on rolled occurrences: it walks day by day, with the standard library alone."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

DAY = timedelta(days=1)


@dataclass(frozen=True)
class Occurrence:
    """An occurrence before it is rolled: its instant, and the wall-clock time that was written."""

    instant: datetime
    written: time


@dataclass(frozen=True)
class Clock:
    """A zone with its choices at clock changes."""

    zone: ZoneInfo
    skip_gap: bool = False
    last: bool = False

    def read(self, day: date, at: time) -> datetime | None:
        """The instant of a wall-clock reading; None where it is skipped."""
        aware = datetime.combine(day, at, self.zone)
        first = aware.replace(fold=0).astimezone(UTC)
        if first.astimezone(self.zone).replace(tzinfo=None) != aware.replace(tzinfo=None):
            return None if self.skip_gap else first
        return aware.replace(fold=int(self.last)).astimezone(UTC)

    def exists(self, day: date) -> bool:
        """Whether a zone has that day at all."""
        noon = datetime.combine(day, time(12), self.zone)
        return noon.astimezone(UTC).astimezone(self.zone).date() == day


def by_the_clock(
    clock: Clock, first: date, last: date, takes: Callable[[date], bool], times: list[time]
) -> list[Occurrence]:
    """The occurrences of a DAILY, WEEKLY or MONTHLY rule."""
    found: dict[datetime, Occurrence] = {}
    day = first
    while day <= last:
        if takes(day):
            for at in times:
                instant = clock.read(day, at)
                if instant is not None:
                    local = instant.astimezone(clock.zone).time()
                    # Of two readings that are one instant, the one as written is kept.
                    if instant not in found or local == at:
                        found[instant] = Occurrence(instant, at)
        day += DAY
    return [found[instant] for instant in sorted(found)]


def elapsed(clock: Clock, start: datetime, step: timedelta, end: datetime) -> list[Occurrence]:
    """The occurrences of an HOURLY or MINUTELY rule."""
    found = []
    while start < end:
        found.append(Occurrence(start, start.astimezone(clock.zone).time()))
        start += step
    return found


def rolled(
    clock: Clock, occurrences: list[Occurrence], closed: Callable[[date], bool], on_holiday: str
) -> list[datetime]:
    """What fires, each occurrence moved alone."""
    found = set()
    for each in occurrences:
        day = each.instant.astimezone(clock.zone).date()
        if not closed(day):
            found.add(each.instant)
            continue
        if on_holiday == "skip":
            continue
        while closed(day) or not clock.exists(day):
            day += DAY if on_holiday == "next" else -DAY
        instant = clock.read(day, each.written)
        if instant is not None:
            found.add(instant)
    return sorted(found)

"""Time zones from one source whose version is known: the `tzdata` package.

The machine's own zone files (which `zoneinfo` reads first) differ from machine to machine and mostly hide
their version; two processes could then compute different instants for the same rule. So every zone is
read from the `tzdata` package, and `zone_data_version()` names the IANA release in use.

A zone is kept as a table of its offset changes, because the evaluator asks what `zoneinfo` cannot answer:
when an offset begins and ends. The table holds the transitions of the TZif file (RFC 8536) and, after
them, 400 years of the file's yearly footer rule (for example `EST5EDT,M3.2.0,M11.1.0`; hours may run from
-167 to 167, RFC 8536, 3.3); later instants are read one Gregorian cycle earlier.

`instant_at` and `local_in` turn what a wall clock shows into an instant, and back.
"""

import re
import struct
from bisect import bisect_right
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from difflib import get_close_matches
from functools import lru_cache
from importlib import import_module, resources
from io import BytesIO
from typing import Final, Literal, NamedTuple
from zoneinfo import ZoneInfo

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.recurrence.timeline import (
    CYCLE_DAYS,
    CYCLE_YEARS,
    DAY,
    FIRST_SECOND,
    LAST_SECOND,
    UNIX_EPOCH,
    first_day,
    is_leap,
    local_second,
    month_spans,
    to_datetime,
)

#: Which one of a local time that a clock change repeats.
Overlap = Literal["first", "last"]

_NAME: Final = r"(?:[A-Za-z]+|<[A-Za-z0-9+-]+>)"
_CLOCK: Final = r"[+-]?\d{1,3}(?::\d\d(?::\d\d)?)?"
_FOOTER: Final = re.compile(
    rf"{_NAME}(?P<std>{_CLOCK})(?:{_NAME}(?P<dst>{_CLOCK})?,(?P<start>[^,]+),(?P<end>[^,]+))?"
)
_DATE: Final = re.compile(rf"(?:M(\d+)\.(\d)\.(\d)|(J?)(\d+))(?:/({_CLOCK}))?")


def posix_tz_transitions(footer: str, after: int) -> list[tuple[int, int]]:
    """`(UTC second, offset from then on)` for one Gregorian cycle of years after the UTC second `after`.

    Empty for a zone without daylight saving time.
    """
    match = _FOOTER.fullmatch(footer)
    if match is None or match["start"] is None:
        return []
    standard = -_clock(match["std"])
    daylight = -_clock(match["dst"]) if match["dst"] else standard + 3600
    first_year = after // DAY * CYCLE_YEARS // CYCLE_DAYS  # at most a year early
    found = []
    for year in range(first_year, first_year + CYCLE_YEARS + 4):
        found.append((_second(match["start"], year) - standard, daylight))
        found.append((_second(match["end"], year) - daylight, standard))
    return sorted(change for change in found if change[0] > after)


def _clock(text: str) -> int:
    """Seconds of `[+-]h[:mm[:ss]]`."""
    fields = [int(field) for field in text.lstrip("+-").split(":")]
    seconds = sum(field * unit for field, unit in zip(fields, (3600, 60, 1), strict=False))
    return -seconds if text.startswith("-") else seconds


def _second(rule: str, year: int) -> int:
    """The local second that a date rule (`Mm.w.d`, `Jn` or `n`) names in a year."""
    match = _DATE.fullmatch(rule)
    if match is None:
        raise ValueError(f"not a POSIX date rule: {rule}")
    month, week, weekday, julian, number, clock = match.groups()
    time = _clock(clock) if clock else 7200
    if month:
        day = _nth_weekday(year, int(month), int(week), int(weekday))
    else:
        # Jn never counts 29 February; n counts from zero and does.
        skipped = int(number) - 1 if julian else int(number)
        day = first_day(year) + skipped + (1 if julian and is_leap(year) and skipped >= 59 else 0)
    return day * DAY + time


def _nth_weekday(year: int, month: int, week: int, weekday: int) -> int:
    begin, length = month_spans(is_leap(year))[month - 1]
    start = first_day(year) + begin
    offset = (weekday - start) % 7 + (week - 1) * 7  # an ordinal modulo 7 counts from Sunday, as POSIX does
    return start + (offset if offset < length else offset - 7)


_CYCLE: Final = CYCLE_DAYS * DAY
_TWO_DAYS: Final = 2 * DAY  # longer than any gap or overlap: the largest are of 24 hours


class UnknownZone(Exception):
    """No zone of that name in the IANA data."""


class WallClockReading(NamedTuple):
    """A wall-clock reading as an instant: `early` by the offset before a change, `late` by the one after.

    `kind` is "" for an ordinary time, "gap" for one that does not exist, "overlap" for one that exists twice.
    """

    early: int
    late: int
    kind: str

    def instant(self, *, last: bool) -> int:
        """The instant to take; of a time that exists twice the `last` one, or the first."""
        return self.late if last and self.kind == "overlap" else self.early


@dataclass(frozen=True, eq=False)
class Zone:
    """An IANA zone: its name, its `tzinfo`, and the table of its offsets (seconds east of UTC)."""

    name: str
    info: tzinfo
    starts: tuple[int, ...]  # UTC seconds at which offsets[1:] begin
    offsets: tuple[int, ...]
    walls_early: tuple[int, ...]  # local second from which the offset before each change is out of use
    walls_late: tuple[int, ...]  # local second from which the offset after each change is in use
    steady_from: int  # UTC second after which only the yearly rule of the footer changes the offset
    cycle_from: int  # UTC second after which the table repeats with the Gregorian cycle

    @property
    def fixed(self) -> bool:
        """Whether one offset serves for ever."""
        return not self.starts

    def segment(self, second: int) -> tuple[int, int, int]:
        """`(start, end, offset)`: the span of UTC seconds around `second` that has one offset."""
        shift = self._shift(second)
        index = bisect_right(self.starts, second - shift)
        start = self.starts[index - 1] + shift if index else FIRST_SECOND - _TWO_DAYS
        end = self.starts[index] + shift if index < len(self.starts) else LAST_SECOND + _TWO_DAYS
        return start, end, self.offsets[index]

    def offset(self, second: int) -> int:
        """The offset in force at a UTC second."""
        return self.offsets[bisect_right(self.starts, second - self._shift(second))]

    def lowest_offset(self, second: int) -> int:
        """The lowest offset within two days of a UTC second: a wall-clock reading that names this second or a
        later one is not earlier than the second by this offset.

        The days before matter to readings of a gap, which are taken with the offset before it; the days
        after to the second pass of a repeated hour, whose readings the first pass has shown already.
        """
        shift = self._shift(second)
        first = bisect_right(self.starts, second - shift - _TWO_DAYS)
        last = bisect_right(self.starts, second - shift + _TWO_DAYS)
        return self.offsets[first] if first == last else min(self.offsets[first : last + 1])

    def read(self, local: int) -> WallClockReading:
        """The instants that a local second may mean (RFC 5545, 3.3.5)."""
        shift = self._shift(local)
        early = bisect_right(self.walls_early, local - shift)
        late = bisect_right(self.walls_late, local - shift)
        before = self.offsets[early]
        if early == late:
            return WallClockReading(local - before, local - before, "")
        after = self.offsets[late]
        return WallClockReading(local - before, local - after, "gap" if before < after else "overlap")

    def plain_until(self, local: int) -> int:
        """The local second up to which (exclusive) the offset of an ordinary `local` goes on unchanged."""
        shift = self._shift(local)
        index = bisect_right(self.walls_early, local - shift)
        if index == len(self.starts):
            return LAST_SECOND + _TWO_DAYS
        return min(self.walls_early[index], self.walls_late[index]) + shift

    def gaps(self, first: int, last: int) -> list[tuple[int, int]]:
        """The spans of local seconds between `first` and `last` that do not exist."""
        found: list[tuple[int, int]] = []
        second = first - _TWO_DAYS
        while True:
            _, second, before = self.segment(second)
            if second > min(last + _TWO_DAYS, LAST_SECOND):
                return found
            after = self.offset(second)
            if after > before and second + after > first and second + before < last:
                found.append((second + before, second + after))

    def _shift(self, second: int) -> int:
        """What brings a second beyond the table back into its last 400 years."""
        beyond = second - self.cycle_from
        return 0 if beyond < 0 else (beyond // _CYCLE + 1) * _CYCLE


@lru_cache(maxsize=1)
def zone_data_version() -> str:
    """The IANA release that every occurrence is computed with, for example "2026f"."""
    return str(import_module("tzdata").IANA_VERSION)


@lru_cache(maxsize=1)
def _names() -> dict[str, str]:
    """Every zone name by its lower-case spelling: calendar text is often written in one case."""
    listing = resources.files("tzdata").joinpath("zones").read_text(encoding="ascii")
    return {name.lower(): name for name in listing.split()}


def zone_names() -> Collection[str]:
    """Every zone name, as IANA writes it."""
    return _names().values()


def find_zone(name: str) -> Zone:
    """The zone of an IANA name in any case; UnknownZone if IANA has no such zone."""
    known = _names().get(name.lower())
    if known is None:
        raise UnknownZone(name)
    return _load(known)


@lru_cache(maxsize=1024)
def _load(name: str) -> Zone:
    if name == "UTC":
        return Zone("UTC", UTC, (), (0,), (), (), FIRST_SECOND, LAST_SECOND + _TWO_DAYS)
    data = resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).read_bytes()
    changes, initial, footer = _read_tzif(data)
    steady_from = changes[-1][0] if changes else FIRST_SECOND
    cycle_from = LAST_SECOND + _TWO_DAYS
    yearly = posix_tz_transitions(footer, steady_from)
    if yearly:
        changes += yearly
        cycle_from = yearly[-1][0] - _TWO_DAYS
    starts: list[int] = []
    offsets = [initial]
    for start, offset in changes:
        if offset != offsets[-1]:  # a mere change of name or of the DST flag changes no instant
            starts.append(start)
            offsets.append(offset)
    pairs = list(zip(starts, offsets, offsets[1:], strict=False))
    return Zone(
        name,
        ZoneInfo.from_file(BytesIO(data), key=name),
        tuple(starts),
        tuple(offsets),
        tuple(start + max(before, after) for start, before, after in pairs),
        tuple(start + min(before, after) for start, before, after in pairs),
        steady_from,
        cycle_from,
    )


def _read_tzif(data: bytes) -> tuple[list[tuple[int, int]], int, str]:
    """`(changes, first offset, footer)` of a TZif file of version 2 or later (RFC 8536, section 3)."""
    header = ">4s c 15x 6l"
    size = struct.calcsize(header)
    _, _, utc, std, leaps, times, types, chars = struct.unpack_from(header, data)
    second = size + times * 5 + types * 6 + chars + leaps * 8 + std + utc
    _, _, utc, std, leaps, times, types, chars = struct.unpack_from(header, data, second)
    at = second + size
    instants = struct.unpack_from(f">{times}q", data, at)
    kinds = struct.unpack_from(f">{times}B", data, at + times * 8)
    at += times * 9
    utc_offsets = [struct.unpack_from(">lBB", data, at + 6 * index)[0] for index in range(types)]
    footer = data[at + types * 6 + chars + leaps * 12 + std + utc :].strip(b"\n").decode("ascii")
    changes = [(UNIX_EPOCH + t, utc_offsets[kind]) for t, kind in zip(instants, kinds, strict=True)]
    return changes, utc_offsets[0], footer


_OFFSET = re.compile(r"[a-z]{0,4} ?[+-]\d{1,2}(:?\d\d)?", re.ASCII | re.IGNORECASE)
_LONGEST = 40


def better_zone(name: str) -> str:
    """What to give instead of `name`, which IANA does not know as a zone."""
    if _OFFSET.fullmatch(name):
        return "an offset knows no clock changes: name a place such as Europe/Paris, or UTC"
    city = name.rpartition("/")[2].strip().replace(" ", "_").lower()
    if city and len(name) <= _LONGEST:
        # Only those that begin alike: a comparison with all 600 takes milliseconds.
        alike = {
            known.rpartition("/")[2].lower(): known
            for known in zone_names()
            if known.rpartition("/")[2][:1].lower() == city[0]
        }
        if close := get_close_matches(city, alike, n=1, cutoff=0.8):
            return f"did you mean {alike[close[0]]}?"
    return "use a name such as Europe/Paris or UTC"


def timezone_named(name: str) -> Zone:
    """The IANA zone of that name. Raises InvalidField("timezone")."""
    try:
        return find_zone(name)
    except UnknownZone:
        raise InvalidField(
            "timezone", f"{name[:60]!r} is not an IANA time zone; {better_zone(name)}"
        ) from None


def read_local(local: datetime, timezone: str) -> WallClockReading:
    """The instants that a naive `local` may mean in an IANA zone. Raises InvalidField("timezone")."""
    return timezone_named(timezone).read(local_second(local))


def instant_at(local: datetime, timezone: str, overlap: Overlap = "first") -> datetime:
    """The instant, in UTC, at which the clocks of an IANA zone show `local`, which is naive.

    `overlap` says which one of a time is meant that a clock change repeats; a time that it leaves out is
    counted on from before the change. Raises InvalidField("timezone").
    """
    reading = read_local(local, timezone)
    second = reading.late if overlap == "last" and reading.kind == "overlap" else reading.early
    found = to_datetime(min(max(second, FIRST_SECOND), LAST_SECOND)).astimezone(UTC)
    return found + timedelta(microseconds=local.microsecond)


def local_in(instant: datetime, timezone: str) -> datetime:
    """An aware `instant` as the clocks of an IANA zone show it, aware. Raises InvalidField("timezone")."""
    return instant.astimezone(timezone_named(timezone).info)

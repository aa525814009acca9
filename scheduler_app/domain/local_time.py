"""What a wall clock shows, as an instant."""

from datetime import UTC, datetime, timedelta

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.recurrence.timeline import FIRST_SECOND, LAST_SECOND, local_second, to_datetime
from scheduler_app.domain.recurrence.zones import (
    Overlap,
    UnknownZone,
    WallClockReading,
    Zone,
    better_zone,
    find_zone,
)


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

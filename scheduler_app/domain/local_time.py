"""What a wall clock shows, as an instant."""

from datetime import UTC, datetime, timedelta

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.recurrence.seconds import FIRST_SECOND, LAST_SECOND, local_second, to_datetime
from scheduler_app.domain.recurrence.zone import UnknownZone, find_zone
from scheduler_app.domain.recurrence.zone_hint import better_zone


def instant_at(local: datetime, timezone: str) -> datetime:
    """The instant, in UTC, at which the clocks of an IANA zone show `local`, which is naive.

    A time that a clock change repeats is its first one; one that it leaves out is counted on from before the
    change. Raises InvalidField.
    """
    try:
        second = find_zone(timezone).read(local_second(local)).early
    except UnknownZone:
        raise InvalidField(
            "timezone", f"{timezone[:60]!r} is not an IANA time zone; {better_zone(timezone)}"
        ) from None
    found = to_datetime(min(max(second, FIRST_SECOND), LAST_SECOND)).astimezone(UTC)
    return found + timedelta(microseconds=local.microsecond)

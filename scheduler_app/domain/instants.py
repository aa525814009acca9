"""Instants: how precise they are, which years documents can hold, and how they are written wherever people
and receivers read them.
"""

from datetime import UTC, datetime

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.stored_fields import EARLIEST, LATEST


def whole_milliseconds(value: datetime) -> datetime:
    """Without what MongoDB does not keep of it, so that it is the same before and after it was stored."""
    return value.replace(microsecond=value.microsecond // 1000 * 1000)


def shown_instant(value: datetime) -> str:
    """RFC 3339 in UTC, `2025-01-05T12:00:00Z`; milliseconds when there are any."""
    utc = value.astimezone(UTC)
    precision = "milliseconds" if utc.microsecond else "seconds"
    return utc.isoformat(timespec=precision).replace("+00:00", "Z")


def shown_time(value: datetime) -> str:
    """An instant in UTC; a local time without an offset."""
    return value.isoformat() if value.tzinfo is None else shown_instant(value)


OUTSIDE_OF_STORED_YEARS = f"must lie between the years {EARLIEST.year} and {LATEST.year - 1}"


def is_storable(moment: datetime) -> bool:
    """Whether a document can hold an instant, or a local time."""
    try:
        year = (moment if moment.tzinfo is None else moment.astimezone(UTC)).year
    except OverflowError:
        return False
    return EARLIEST.year <= year < LATEST.year


def check_storable(moment: datetime, name: str) -> None:
    """Raises InvalidField for the field `name`."""
    if not is_storable(moment):
        raise InvalidField(name, OUTSIDE_OF_STORED_YEARS)

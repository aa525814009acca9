"""The years that documents can hold: what a request says beyond them would be corrupt when it is read."""

from datetime import UTC, datetime

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.field_types import EARLIEST, LATEST

OUTSIDE = f"must lie between the years {EARLIEST.year} and {LATEST.year - 1}"


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
        raise InvalidField(name, OUTSIDE)

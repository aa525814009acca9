"""Instants as whole seconds, so that the evaluator computes with integers alone.

A *second* here is `day * 86400 + second of the day`, where `day` is the proleptic Gregorian ordinal
(`date.toordinal()`, 1 = 0001-01-01). The same scale serves UTC and local time: a local second minus its
offset is the UTC second. Naive datetimes are refused where they enter.
"""

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

DAY: Final = 86_400
UNIX_EPOCH: Final = datetime(1970, 1, 1).toordinal() * DAY  # noqa: DTZ001 (only its ordinal is used)
FIRST_DAY: Final = 1
LAST_DAY: Final = 3_652_059  # 9999-12-31, the last day that a datetime can hold
FIRST_SECOND: Final = FIRST_DAY * DAY
LAST_SECOND: Final = LAST_DAY * DAY + DAY - 1
LAST_YEAR: Final = 9999

# The Gregorian calendar repeats, weekdays included, after 400 years.
CYCLE_YEARS: Final = 400
CYCLE_DAYS: Final = 146_097

_START: Final = datetime(1, 1, 1, tzinfo=UTC)
_SECOND: Final = timedelta(seconds=1)


def require_aware(instant: datetime, name: str) -> datetime:
    """`instant` itself; ValueError when it is naive, because its instant is unknown."""
    if instant.tzinfo is None or instant.utcoffset() is None:
        raise ValueError(f"{name} must be an aware datetime, not a naive one")
    return instant


def floor_second(instant: datetime) -> int:
    """The whole UTC second in which an aware `instant` lies."""
    return (instant - _START) // _SECOND + FIRST_SECOND


def ceil_second(instant: datetime) -> int:
    """The first whole UTC second that is not before an aware `instant`."""
    return -((_START - instant) // _SECOND) + FIRST_SECOND


def to_datetime(second: int) -> datetime:
    """The aware UTC datetime of a UTC second between FIRST_SECOND and LAST_SECOND."""
    return _START + timedelta(0, second - FIRST_SECOND)


def local_datetime(second: int, zone: tzinfo | None, fold: int = 0) -> datetime:
    """The aware datetime whose wall clock shows the local `second`; `fold` as in PEP 495."""
    return (_START + timedelta(0, second - FIRST_SECOND)).replace(tzinfo=zone, fold=fold)


def local_second(naive: datetime) -> int:
    """The local second of a wall-clock reading (its tzinfo is not looked at)."""
    return naive.toordinal() * DAY + naive.hour * 3600 + naive.minute * 60 + naive.second

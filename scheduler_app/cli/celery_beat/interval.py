"""Celery's intervals as a trigger of the API."""

from datetime import UTC, datetime, timedelta

from scheduler_app.cli.celery_beat.crontab import until
from scheduler_app.cli.entry_import import NotImportable
from scheduler_app.client import Json

_SECOND = timedelta(seconds=1)
_MAX_SECONDS = 1_000_000_000


def interval_trigger(every: timedelta, *, start: datetime | None = None, end: datetime | None = None) -> Json:
    """It counts from `start`, or from when it is imported, and fires before `end`. Raises NotImportable."""
    if every < _SECOND or every % _SECOND:
        raise NotImportable(
            f"it runs every {every.total_seconds():g} s; only whole seconds, from 1 on, can be taken over"
        )
    seconds = every // _SECOND
    if end is not None:
        if start is None:
            raise NotImportable("it has an end, but no time from which it counts; give it a start_time")
        return {"rrule": f"{_dtstart(start)}\nRRULE:FREQ=SECONDLY;INTERVAL={seconds};{until(end)}"}
    if start is None:
        return {"every_seconds": seconds}
    return {"every_seconds": seconds, "start_at": f"{_whole(start):%Y-%m-%dT%H:%M:%SZ}"}


def seconds(given: object) -> timedelta:
    """Raises NotImportable."""
    if isinstance(given, bool) or not isinstance(given, (int, float)) or not 0 < given <= _MAX_SECONDS:
        raise NotImportable(f"its interval must be a number of seconds, up to {_MAX_SECONDS:,}")
    return timedelta(seconds=given)


def _whole(instant: datetime) -> datetime:
    return instant.astimezone(UTC).replace(microsecond=0)


def _dtstart(start: datetime) -> str:
    return f"DTSTART:{_whole(start):%Y%m%dT%H%M%SZ}"

"""The ids of events: what derives them, and what they say."""

import re
import secrets
from datetime import UTC, datetime
from functools import lru_cache

from scheduler_app.domain.message_ids import is_message

#: Begins the second to last part of the ids of backfilled events.
_BACKFILL = "backfill"


def event_id(schedule_id: str, revision: int, run_time: datetime) -> str:
    """The id of a scheduled event, derived so that an occurrence can become an event only once.

    `<schedule id>-<revision>-20250105T120000Z`, with milliseconds when there are any.
    """
    return f"{schedule_id}-{revision}-{compact(run_time)}"


def manual_event_id(schedule_id: str, request_seed: str | None = None) -> str:
    """The id of an event that a person asked for: 96 random bits, or a request's own `request_seed`."""
    return f"{schedule_id}-manual-{request_seed or secrets.token_hex(12)}"


def backfill_event_id(schedule_id: str, number: str, run_time: datetime) -> str:
    """The id of the event of a past occurrence that the backfill `number` makes."""
    return f"{schedule_id}-{_BACKFILL}{number}-{compact(run_time)}"


def is_backfill(event_id: str) -> bool:
    """Whether an event's id is that of a backfilled occurrence."""
    # Where a scheduled event has its revision, and a manual one "manual".
    if _BACKFILL not in event_id or is_message(event_id):
        return False
    return event_id.rpartition("-")[0].rpartition("-")[2].startswith(_BACKFILL)


def compact(instant: datetime) -> str:
    """`20250105T120000Z`, or `20250105T120000250Z` when there are milliseconds."""
    if instant.tzinfo is None:
        raise ValueError("a naive datetime has no place here")
    return _compact(instant.astimezone(UTC))


_COMPACT = re.compile(r"[0-9]{8}T[0-9]{6}([0-9]{3})?Z")


# Thousands of schedules fire at the same few instants of a page. Of UTC alone: where a clock goes back, two
# hours of a zone are equal to a cache, and the second one would get the first one's ids.
@lru_cache(maxsize=1024)
def _compact(utc: datetime) -> str:
    milliseconds = f"{utc.microsecond // 1000:03d}" if utc.microsecond >= 1000 else ""
    return f"{utc:%Y%m%dT%H%M%S}{milliseconds}Z"


@lru_cache(maxsize=1024)
def instant_of(text: str) -> datetime | None:
    """The instant of a `compact` text, None for any other."""
    if not _COMPACT.fullmatch(text):
        return None
    try:
        return datetime.strptime(text[:-1].ljust(18, "0"), "%Y%m%dT%H%M%S%f").replace(tzinfo=UTC)
    except ValueError:
        return None


def schedule_of(event_id: str) -> str:
    """The id of the schedule that an event's id names, with its tenant; empty for a message's."""
    return "" if is_message(event_id) else event_id.rsplit("-", 2)[0]

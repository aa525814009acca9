"""UNTIL as an instant: inclusive, and in UTC wherever DTSTART has a zone (RFC 5545, 3.3.10)."""

from scheduler_app.domain.errors import InvalidRecurrence
from scheduler_app.domain.recurrence.rules.bound_rule import Start
from scheduler_app.domain.recurrence.rules.rule import Until
from scheduler_app.domain.recurrence.timeline import DAY, FIRST_SECOND, LAST_SECOND

from .parsed_text import ParsedDate
from .time_text import write_date, write_time


def until_instant(until: Until, written_start: ParsedDate | None, start: Start) -> int:
    """The last UTC second of a rule; InvalidRecurrence, with the right value, where it must be UTC.

    Beside a floating or missing DTSTART a local UNTIL is read in the same zone, and a date means the whole
    day.
    """
    if until.utc:
        return until.second
    local = until.second + (DAY - 1 if until.date_only else 0)
    early, late, _ = start.zone.read(local)
    instant = min(max(late if start.last_in_overlap or until.date_only else early, FIRST_SECOND), LAST_SECOND)
    zoned = (
        written_start is not None
        and not written_start.time.date_only
        and (written_start.time.utc or written_start.zone is not None)
    )
    if zoned:
        written = write_date(until.second) if until.date_only else write_time(until.second, utc=False)
        raise InvalidRecurrence(
            "UNTIL",
            f"{written} must be in UTC, because DTSTART has a zone; in {start.zone.name} that is "
            f"UNTIL={write_time(instant, utc=True)}",
        )
    return instant

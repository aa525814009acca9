"""What a reading of an ambiguous text would do, so that a person can choose one."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from scheduler_app.domain.recurrence import Occurrence, Once, Recurrence
from scheduler_app.domain.triggers.kind import NotUnderstood, Translation, TriggerContext

#: How many occurrences tell readings apart.
SHOWN: Final = 3
_END: Final = datetime(9999, 12, 31, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ShownReading:
    """A reading that can be given as `rrule` or as `run_at` instead; a single local time as either, and only
    as a rule does it stay a local time."""

    recurrence: str | None
    run_at: datetime | None
    description: str
    occurrences: tuple[Occurrence, ...]


def shown_readings(error: NotUnderstood) -> tuple[ShownReading, ...]:
    """The readings of a refusal, seen from when and where the text was given; none where that is unknown."""
    context = error.context
    return () if context is None else tuple(_shown(reading, context) for reading in error.readings)


def _shown(reading: Translation, context: TriggerContext) -> ShownReading:
    if reading.instant is not None:
        once = Once(reading.instant)
        found = once.occurrences(reading.instant, _END, limit=1)
        return ShownReading(None, reading.instant, once.description, tuple(found))
    written = Recurrence.parse(
        reading.recurrence or "",
        created_at=context.at,
        timezone=context.timezone,
        gap=context.gap,
        overlap=context.overlap,
    )
    observed = context.observing(written, reading.on_holiday) if context.observing else written
    following = observed.occurrences(context.at, _END, limit=SHOWN)
    run_at = written.after(context.at) if written.is_once else None
    return ShownReading(written.text, run_at, observed.description, tuple(following))

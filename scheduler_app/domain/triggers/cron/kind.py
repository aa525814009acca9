"""`cron`: a cron expression, and `cron_seconds`, which tells six fields apart."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast

from scheduler_app.domain.triggers.kind import (
    FieldType,
    Translation,
    TriggerContext,
    TriggerField,
    TriggerKind,
    Value,
    written_value,
)

if TYPE_CHECKING:
    from .expression import SecondsAt

#: Longer than the longest that has a use: every field with all its numbers listed.
MAX_CHARACTERS: Final = 500
_CRON: Final = TriggerField(
    "cron",
    FieldType.TEXT,
    "A cron expression: five fields, @daily and the like, or six fields with seconds; L, W and # as in"
    " Quartz; 0 and 7 are Sunday",
    example="0 9 * * 1-5",
    max_length=MAX_CHARACTERS,
)
_CRON_SECONDS: Final = TriggerField(
    "cron_seconds",
    FieldType.TEXT,
    "Which of six fields of `cron` are the seconds, where both readings are valid",
    example="first",
    choices=("first", "last"),
)


class Cron(TriggerKind):
    """A cron expression, translated to the recurrence rules that fire at the same times.

    What reads it is imported where one is read: every process knows this kind, and beats and workers read no
    expression.
    """

    fields = (_CRON, _CRON_SECONDS)

    def translate(self, written: Mapping[str, Value], context: TriggerContext) -> Translation:
        """RRULE lines without a DTSTART: cron has no start of its own."""
        from .lost_times import lost_times
        from .reading import reading_of
        from .warnings import warnings_of

        seconds_at = cast("SecondsAt", written["cron_seconds"]) if "cron_seconds" in written else None
        reading = reading_of(written_value(written, "cron", str), seconds_at, context)
        warnings = list(warnings_of(reading.expression))
        if (lost := lost_times(reading.expression, context)) is not None:
            warnings.append(lost)
        return Translation(recurrence=reading.recurrence, warnings=tuple(warnings))

"""`run_at`: one occurrence, at an instant or at a local time."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.local_time import instant_at
from scheduler_app.domain.triggers.kind import (
    FieldType,
    Translation,
    TriggerContext,
    TriggerField,
    TriggerKind,
    Value,
    written_value,
)
from scheduler_app.domain.triggers.single_local_time import at_local_time

_RUN_AT: Final = TriggerField(
    "run_at",
    FieldType.TIME,
    "A single time: with an offset an instant, in which milliseconds count; without one the local time in the"
    " timezone given beside it",
    example="2030-01-05T12:00:00Z",
)


class RunAt(TriggerKind):
    """One occurrence. For a schedule that is to run, a time that has passed is refused.

    A local time becomes a recurrence of one date: it moves with its zone when the zone's rules change.
    """

    fields = (_RUN_AT,)

    def translate(self, written: Mapping[str, Value], context: TriggerContext) -> Translation:
        """The instant itself, or the date in the context's timezone."""
        run_at = written_value(written, "run_at", datetime)
        if run_at.tzinfo is not None:
            _refuse_past(run_at, context)
            return Translation(instant=run_at)
        if not context.timezone_given:
            raise InvalidField(
                "run_at", "needs an offset, as in 2025-01-05T12:00:00Z, or a timezone beside it"
            )
        if run_at.microsecond:
            raise InvalidField("run_at", "has a fraction of a second: leave it out, or give an offset too")
        found = at_local_time("run_at", run_at, context.timezone, context.gap, context.overlap)
        _refuse_past(instant_at(run_at, context.timezone, context.overlap), context)
        return found

    def uses_timezone(self, written: Mapping[str, Value]) -> bool:
        """Only a local time does."""
        return written_value(written, "run_at", datetime).tzinfo is None


def _refuse_past(instant: datetime, context: TriggerContext) -> None:
    if context.active and instant <= context.at:
        raise InvalidField(
            "run_at",
            f"lies in the past (it is {context.at:%Y-%m-%dT%H:%M:%SZ}); give a later instant, or trigger it",
        )

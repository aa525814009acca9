"""`run_at`: a single instant, or a single local time."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.triggers.kind import (
    FieldType,
    Translation,
    TriggerContext,
    TriggerField,
    TriggerKind,
    Value,
    written_value,
)

_RUN_AT: Final = TriggerField(
    "run_at",
    FieldType.TIME,
    "A single time: an instant with an offset, in which milliseconds count",
    example="2030-01-05T12:00:00Z",
)


class RunAt(TriggerKind):
    """One occurrence. What has passed is refused for a schedule that is to run."""

    fields = (_RUN_AT,)

    def translate(self, written: Mapping[str, Value], context: TriggerContext) -> Translation:
        """The instant itself."""
        run_at = written_value(written, "run_at", datetime)
        if context.active and run_at <= context.at:
            raise InvalidField(
                "run_at",
                f"lies in the past (it is {context.at:%Y-%m-%dT%H:%M:%SZ});"
                " give a later instant, or trigger it",
            )
        return Translation(instant=run_at)

"""`every_seconds`: at equal distances of elapsed time, whatever clocks show."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.recurrence import Recurrence
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
    from scheduler_app.domain.triggers.trigger import Trigger

#: The largest INTERVAL of a rule, some 31 years.
MAX_SECONDS: Final = 1_000_000_000
_SECOND: Final = timedelta(seconds=1)
_EVERY_SECONDS: Final = TriggerField(
    "every_seconds",
    FieldType.WHOLE,
    "Again and again, so many seconds of elapsed time apart: first at start_at, or so long after it is given",
    example=300,
    minimum=1,
    maximum=MAX_SECONDS,
)
_START_AT: Final = TriggerField(
    "start_at",
    FieldType.TIME,
    "The first occurrence of every_seconds, in whole seconds; from one in the past it is counted on",
    example="2030-01-05T12:00:00Z",
)


class EverySeconds(TriggerKind):
    """A SECONDLY rule, whose occurrences no clock change moves."""

    fields = (_EVERY_SECONDS, _START_AT)

    def translate(self, written: Mapping[str, Value], context: TriggerContext) -> Translation:
        """A rule that starts at `start_at`, or one interval after the context's instant, never earlier."""
        seconds = written_value(written, "every_seconds", int)
        if "start_at" in written:
            start = written_value(written, "start_at", datetime)
            if start.microsecond:
                raise InvalidField("start_at", "has a fraction of a second; give whole seconds")
        else:
            whole = context.at.replace(microsecond=0)
            given_at = whole if whole == context.at else whole + _SECOND
            start = given_at + timedelta(seconds=seconds)
        return Translation(recurrence=f"{_dtstart(start)}\nRRULE:FREQ=SECONDLY;INTERVAL={seconds}")

    def uses_timezone(self, written: Mapping[str, Value]) -> bool:
        """Only a local `start_at` does."""
        start = written.get("start_at")
        return isinstance(start, datetime) and start.tzinfo is None

    def portable(self, trigger: "Trigger", created_at: datetime) -> Mapping[str, Value]:
        """With the start made explicit."""
        recurrence = trigger.recurrence(created_at)
        if "start_at" in trigger.written or not isinstance(recurrence, Recurrence):
            return trigger.written
        return {**trigger.written, "start_at": recurrence.dtstart}


def _dtstart(start: datetime) -> str:
    """The content line; a local time is a floating one."""
    if start.tzinfo is None:
        return f"DTSTART:{_basic(start)}"
    return f"DTSTART:{_basic(start.astimezone(UTC).replace(tzinfo=None))}Z"


def _basic(naive: datetime) -> str:
    """The time as RFC 5545 writes it: 20300105T120000."""
    return naive.isoformat(timespec="seconds").replace("-", "").replace(":", "")

"""`rrule`: a recurrence as RFC 5545 writes it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from scheduler_app.domain.recurrence import Recurrence
from scheduler_app.domain.resource_fields import Text
from scheduler_app.domain.triggers.translation import (
    Translation,
    TriggerContext,
    Value,
    trigger_field,
    written_value,
)
from scheduler_app.domain.triggers.trigger import Trigger, TriggerKind

MAX_CHARACTERS: Final = 64 * 1024
_RRULE: Final = trigger_field(
    "rrule",
    Text(1, MAX_CHARACTERS),
    "An RFC 5545 rule, with or without DTSTART",
    example="FREQ=DAILY;INTERVAL=1",
)


class RRule(TriggerKind):
    """An RFC 5545 recurrence set. A missing DTSTART is the second after it was given."""

    fields = (_RRULE,)

    def translate(self, written: Mapping[str, Value], context: TriggerContext) -> Translation:
        """The text itself."""
        return Translation(recurrence=written_value(written, "rrule", str))

    def reread(self, trigger: Trigger, context: TriggerContext, created_at: datetime) -> Translation:
        """The text with the start that it was pinned to."""
        from scheduler_app.domain.recurrence.kept_start import kept_start

        text = written_value(trigger.written, "rrule", str)
        recurrence = trigger.recurrence(created_at)
        if self.names_start(trigger.written) or not isinstance(recurrence, Recurrence) or recurrence.is_once:
            return Translation(recurrence=text)
        start, warnings = kept_start(recurrence, context.timezone, context.at)
        return Translation(recurrence=f"{start}\n{text}", warnings=warnings)

    def names_start(self, written: Mapping[str, Value]) -> bool:
        """Whether the text has a DTSTART."""
        return "DTSTART" in written_value(written, "rrule", str).upper()

    def portable(self, trigger: Trigger, created_at: datetime) -> Mapping[str, Value]:
        """The rule with its DTSTART made explicit."""
        return {"rrule": trigger.recurrence_text(created_at) or ""}

    def restates(self, written: Mapping[str, Value], trigger: Trigger, created_at: datetime) -> bool:
        """Also true of the pinned text that an earlier release exported."""
        if trigger.kind is self and written["rrule"] == trigger.pinned:
            return True
        return super().restates(written, trigger, created_at)

"""`delay_seconds`: one occurrence, that many seconds after the trigger was given."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from scheduler_app.domain.resource_fields import Whole
from scheduler_app.domain.triggers.translation import (
    Translation,
    TriggerContext,
    Value,
    trigger_field,
    written_value,
)
from scheduler_app.domain.triggers.trigger import Trigger, TriggerKind

#: A hundred years.
MAX_DELAY_SECONDS: Final = 36_525 * 86_400
_DELAY_SECONDS: Final = trigger_field(
    "delay_seconds",
    Whole(1, MAX_DELAY_SECONDS),
    "A single time, this many seconds after the field is given; the same value given again restarts nothing",
    example=90,
)


class DelaySeconds(TriggerKind):
    """One occurrence after a delay, which counts from the creation or from the edit that gives it."""

    fields = (_DELAY_SECONDS,)

    def translate(self, written: Mapping[str, Value], context: TriggerContext) -> Translation:
        """The instant after the delay, in whole milliseconds."""
        instant = context.at + timedelta(seconds=written_value(written, "delay_seconds", int))
        return Translation(instant=instant.replace(microsecond=instant.microsecond // 1000 * 1000))

    def uses_timezone(self, written: Mapping[str, Value]) -> bool:
        """No: seconds elapse alike everywhere."""
        return False

    def portable(self, trigger: Trigger, created_at: datetime) -> Mapping[str, Value]:
        """The instant that it became."""
        return dict(trigger.written) if trigger.instant is None else {"run_at": trigger.instant}

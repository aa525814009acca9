"""When a message is to be delivered: a text as the field "When" of a schedule takes it, for a single time."""

from datetime import UTC, datetime

from scheduler_app.api.pages.when import trigger_fields
from scheduler_app.api.wire.preview import PreviewInput
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.message import Timing
from scheduler_app.domain.triggers import FIELDS, TriggerContext, new_trigger

_TRIGGER = PreviewInput(only=tuple(name for name in PreviewInput().fields if name in FIELDS))
_EVER = datetime(1970, 1, 1, tzinfo=UTC)


def timing_of(text: str, timezone: str, now: datetime) -> Timing:
    """At once without a text; a time that has passed means at once, too. `timezone` is that of a local time.

    Raises InvalidField and ValidationError for what is not understood, and for what recurs.
    """
    if not text.strip():
        return Timing()
    written = _TRIGGER.load(trigger_fields(text))
    trigger = new_trigger(written, TriggerContext(now, timezone=timezone, active=False))
    recurrence = trigger.recurrence(now)
    first = recurrence.after(_EVER)
    if first is None:
        raise InvalidField("when", "names no time: give one, or leave it empty for at once")
    if recurrence.after(first) is not None:
        raise InvalidField("when", "comes again, and a message is delivered once: make a schedule of it")
    return Timing(scheduled_at=first)

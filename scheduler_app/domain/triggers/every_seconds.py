"""`every_seconds`: at equal distances of elapsed time, whatever clocks show."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.recurrence import Recurrence
from scheduler_app.domain.recurrence.rule_text import write_time
from scheduler_app.domain.recurrence.timeline import DAY, ceil_second, floor_second, local_second, to_datetime
from scheduler_app.domain.recurrence.zones import find_zone
from scheduler_app.domain.resource_fields import Moment, Whole
from scheduler_app.domain.triggers.translation import (
    Translation,
    TriggerContext,
    Value,
    trigger_field,
    written_value,
)
from scheduler_app.domain.triggers.trigger import Trigger, TriggerKind

#: The largest INTERVAL of a rule, some 31 years.
MAX_SECONDS: Final = 1_000_000_000
_EVERY_SECONDS: Final = trigger_field(
    "every_seconds",
    Whole(1, MAX_SECONDS),
    "Repeatedly, with this many seconds of elapsed time between: first at start_at, or one interval from now",
    example=300,
)
_START_AT: Final = trigger_field(
    "start_at",
    Moment(local=True),
    "The first occurrence of every_seconds, in whole seconds; from one in the past it is counted on",
    example="2030-01-05T12:00:00Z",
    is_main=False,
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
            start = to_datetime(ceil_second(context.at)) + timedelta(seconds=seconds)
        # A local time is a floating one, which has no Z.
        utc = start.tzinfo is not None
        dtstart = write_time(local_second(start.astimezone(UTC) if utc else start), utc)
        text = f"DTSTART:{dtstart}\nRRULE:FREQ=SECONDLY;INTERVAL={seconds}"
        return Translation(recurrence=text, warnings=_clock_changes(seconds, context))

    def uses_timezone(self, written: Mapping[str, Value]) -> bool:
        """Only a local `start_at` does."""
        start = written.get("start_at")
        return isinstance(start, datetime) and start.tzinfo is None

    def portable(self, trigger: Trigger, created_at: datetime) -> Mapping[str, Value]:
        """With the start made explicit."""
        recurrence = trigger.recurrence(created_at)
        if "start_at" in trigger.written or not isinstance(recurrence, Recurrence):
            return trigger.written
        return {**trigger.written, "start_at": recurrence.dtstart}


def _clock_changes(seconds: int, context: TriggerContext) -> tuple[str, ...]:
    """A warning where whole days of elapsed time do not keep the time of day of the schedule's zone, whose
    clocks change within a year."""
    now = floor_second(context.at)
    if seconds % DAY or find_zone(context.timezone).segment(now)[1] > now + 366 * DAY:
        return ()
    days = seconds // DAY
    every = "" if days == 1 else f";INTERVAL={days}"
    elapsed = f"These are {seconds} seconds of elapsed time, and clocks change in {context.timezone}"
    same = f"for the same time of day give the rrule FREQ=DAILY{every}"
    return (f"{elapsed}: the time of day moves with them; {same}.",)

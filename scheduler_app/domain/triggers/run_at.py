"""`run_at`: one occurrence, at an instant or at a local time.

A single local time is a recurrence of one date, which moves with its zone when the zone's rules change.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.recurrence.zones import instant_at, read_local
from scheduler_app.domain.resource_fields import Moment
from scheduler_app.domain.triggers.translation import (
    Translation,
    TriggerContext,
    Value,
    trigger_field,
    written_value,
)
from scheduler_app.domain.triggers.trigger import TriggerKind


def at_local_time(
    field: str, local: datetime, context: TriggerContext, *, names_zone: bool = False
) -> Translation:
    """The one occurrence at `local` (naive, in whole seconds) in the context's timezone, and what a clock
    change does to it.

    The zone is the schedule's, unless the text of `field` `names_zone` itself. Raises InvalidField for a time
    that a clock change leaves out where `gap` is "skip": it would never run.
    """
    stamp = f"{local:%Y%m%dT%H%M%S}"
    date = f"RDATE:{stamp}"
    if names_zone:
        # A date alone has no zone of its own: that of the set would be the schedule's.
        zone = context.timezone
        date = f"DTSTART:{stamp}Z" if zone == "UTC" else f"DTSTART;TZID={zone}:{stamp}"
    return Translation(recurrence=date, warnings=_clock_change(field, local, context))


def _clock_change(field: str, local: datetime, context: TriggerContext) -> tuple[str, ...]:
    timezone = context.timezone
    kind = read_local(local, timezone).kind
    clock = f"{local:%H:%M} on {local:%Y-%m-%d}"
    if kind == "gap":
        missing = f"{clock} does not exist in {timezone}, where clocks are put forward then"
        if context.gap == "skip":
            raise InvalidField(
                field, f"{missing}: with gap=skip it would never run; give another time, or gap=shift"
            )
        return (f"{missing}; it runs at {instant_at(local, timezone):%H:%M} UTC.",)
    if kind == "overlap":
        twice = f"{clock} comes twice in {timezone}, where clocks are put back then"
        return (f"{twice}; it runs the {context.overlap} time.",)
    return ()


_RUN_AT: Final = trigger_field(
    "run_at",
    Moment(local=True),
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
        found = at_local_time("run_at", run_at, context)
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

"""How far a schedule's callbacks are spread after their occurrences."""

from marshmallow import fields, validate

from scheduler_app.api.wire.field_types import Instant
from scheduler_app.api.wire.schedule_fields.field import ScheduleField
from scheduler_app.domain.jitter import MAX_JITTER_SECONDS, due


def _seconds() -> fields.Float:
    return fields.Float(validate=validate.Range(0, MAX_JITTER_SECONDS))


JITTER = (
    ScheduleField(
        name="jitter_seconds",
        meaning="Each callback falls due up to this many seconds after its occurrence, by a hash of the"
        " schedule's id and the instant: the same whenever it is asked, and another for each schedule",
        default="0",
        input=_seconds(),
        preview=_seconds(),
        output=fields.Float(),
        shown=lambda it: it.schedule.jitter_seconds,
        aliases="jitter spread splay random_delay randomized_delay",
    ),
    ScheduleField(
        name="next_due_at",
        meaning="When the callback of `next_run_at` falls due; only of a schedule with jitter",
        output=Instant(),
        shown=lambda it: (
            due(it.schedule.id, it.facts.next_run_at, it.schedule.jitter_seconds)
            if it.schedule.jitter_seconds and it.facts.next_run_at
            else None
        ),
    ),
)

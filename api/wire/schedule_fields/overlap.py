"""What events do while earlier ones are not finished, and who says that they are."""

from dataclasses import fields as dataclass_fields
from typing import get_args

from marshmallow import fields, validate

from scheduler_app.api.wire.schedule_fields.field import ScheduleField, Show, ShownSchedule
from scheduler_app.domain.completion import (
    DEFAULT_TIMEOUT_SECONDS,
    LEAST_TIMEOUT_SECONDS,
    MAX_TIMEOUT_SECONDS,
    Completion,
)
from scheduler_app.domain.overlap import DEFAULT_QUEUE_LIMIT, MAX_QUEUE_LIMIT, OverlapScope, RunOverlap
from scheduler_app.domain.schedule import Schedule

_DEFAULTS = {field.name: field.default for field in dataclass_fields(Schedule)}


def _unless_default(name: str) -> Show:
    """A file of exports stays readable: most schedules have none of these policies."""

    def of(it: ShownSchedule) -> object:
        value = getattr(it.schedule, name)
        return None if value == _DEFAULTS[name] else value

    return of


OVERLAP = (
    ScheduleField(
        name="run_overlap",
        meaning="What an occurrence does while an earlier one is not finished: it runs beside it (`allow`),"
        " is left out (`skip`), waits for it (`queue`), or runs and ends the earlier one's retries"
        " (`cancel_earlier`)",
        default="`allow`",
        input=fields.String(validate=validate.OneOf(get_args(RunOverlap))),
        output=fields.String(),
        shown=lambda it: it.schedule.run_overlap,
        exported=_unless_default("run_overlap"),
        aliases="overlap_policy concurrency_policy concurrency",
    ),
    ScheduleField(
        name="overlap_scope",
        meaning="What `skip` and `queue` count as not finished: an `event` with its retries, or only an"
        " `attempt` that is running",
        default="`event`",
        input=fields.String(validate=validate.OneOf(get_args(OverlapScope))),
        output=fields.String(),
        shown=lambda it: it.schedule.overlap_scope,
        exported=_unless_default("overlap_scope"),
    ),
    ScheduleField(
        name="queue_limit",
        meaning=f"How many occurrences may wait where `run_overlap` is `queue`, 1 to {MAX_QUEUE_LIMIT}; the"
        " others are left out",
        default=f"{DEFAULT_QUEUE_LIMIT}",
        input=fields.Integer(strict=True, validate=validate.Range(1, MAX_QUEUE_LIMIT)),
        output=fields.Integer(),
        shown=lambda it: it.schedule.queue_limit,
        exported=_unless_default("queue_limit"),
        aliases="max_queue queue_size buffer_limit",
    ),
    ScheduleField(
        name="completion",
        meaning="Who says that an event's work is done: the `response` to its request, or the receiver by a"
        " `callback` of its own, until which the event is running",
        default="`response`",
        input=fields.String(validate=validate.OneOf(get_args(Completion))),
        output=fields.String(),
        shown=lambda it: it.schedule.completion,
        exported=_unless_default("completion"),
    ),
    ScheduleField(
        name="completion_timeout_seconds",
        meaning="How long an event waits for that callback before its attempt has failed,"
        f" {LEAST_TIMEOUT_SECONDS:g} to {MAX_TIMEOUT_SECONDS:g} seconds",
        default=f"{DEFAULT_TIMEOUT_SECONDS:g}",
        input=fields.Float(validate=validate.Range(LEAST_TIMEOUT_SECONDS, MAX_TIMEOUT_SECONDS)),
        output=fields.Float(),
        shown=lambda it: it.schedule.completion_timeout_seconds,
        exported=_unless_default("completion_timeout_seconds"),
    ),
)

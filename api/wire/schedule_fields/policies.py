"""Policies: what becomes of events that are late, or fall due while earlier ones are not finished."""

from dataclasses import fields as dataclass_fields
from typing import get_args

from marshmallow import fields, validate

from scheduler_app.api.wire.schedule_fields.field import ScheduleField, Show, ShownSchedule
from scheduler_app.domain.event import (
    DEFAULT_COMPLETION_TIMEOUT,
    LEAST_COMPLETION_TIMEOUT,
    MAX_COMPLETION_TIMEOUT,
    Completion,
)
from scheduler_app.domain.lateness import (
    DEFAULT_LATE_AFTER_SECONDS,
    DEFAULT_WINDOW_SECONDS,
    LEAST_SECONDS,
    MAX_SECONDS,
    CatchUp,
)
from scheduler_app.domain.schedule import (
    DEFAULT_QUEUE_LIMIT,
    MAX_QUEUE_LIMIT,
    OverlapScope,
    RunOverlap,
    Schedule,
)

_SPAN = validate.Range(LEAST_SECONDS, MAX_SECONDS)
_CATCH_UP = tuple(each.value for each in CatchUp)

POLICIES = (
    ScheduleField(
        name="catch_up",
        meaning="Which occurrences are still sent that were missed: `all`; `latest`, the newest one alone;"
        " `none`. The others expire",
        default="`all`",
        input=fields.String(validate=validate.OneOf(_CATCH_UP)),
        output=fields.String(validate=validate.OneOf(_CATCH_UP)),
        read=CatchUp,
        shown=lambda it: it.schedule.lateness.catch_up.value,
        # A file of exports stays readable: most schedules have no policy of their own.
        exported=lambda it: _unless_equal(it.schedule.lateness.catch_up.value, CatchUp.ALL.value),
        aliases="catchup misfire misfire_policy missed missed_runs missed_run_policy catch_up_policy",
    ),
    ScheduleField(
        name="catch_up_window_seconds",
        meaning="With `catch_up` `latest`: how late the newest one may still be sent. `all` means all,"
        " however late",
        default=f"{DEFAULT_WINDOW_SECONDS:g}",
        input=fields.Float(validate=_SPAN),
        output=fields.Float(),
        shown=lambda it: it.schedule.lateness.window_seconds,
        exported=lambda it: _unless_equal(it.schedule.lateness.window_seconds, DEFAULT_WINDOW_SECONDS),
        aliases="catchup_window catch_up_window",
    ),
    ScheduleField(
        name="late_after_seconds",
        meaning="How late an occurrence must be to count as missed, for `catch_up`",
        default=f"{DEFAULT_LATE_AFTER_SECONDS:g}",
        input=fields.Float(validate=_SPAN),
        output=fields.Float(),
        shown=lambda it: it.schedule.lateness.late_after_seconds,
        exported=lambda it: _unless_equal(
            it.schedule.lateness.late_after_seconds, DEFAULT_LATE_AFTER_SECONDS
        ),
        aliases="late_after misfire_grace_time starting_deadline_seconds",
    ),
    ScheduleField(
        name="expire_after_seconds",
        meaning="How long after it was due an event is given up, its retries included; null for never",
        input=fields.Float(validate=_SPAN, allow_none=True),
        output=fields.Float(),
        shown=lambda it: it.schedule.lateness.expire_after_seconds,
        aliases="expire_after expires expires_after ttl deadline",
    ),
)


def _unless_equal(value: object, default: object) -> object:
    return None if value == default else value


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
        f" {LEAST_COMPLETION_TIMEOUT:g} to {MAX_COMPLETION_TIMEOUT:g} seconds",
        default=f"{DEFAULT_COMPLETION_TIMEOUT:g}",
        input=fields.Float(validate=validate.Range(LEAST_COMPLETION_TIMEOUT, MAX_COMPLETION_TIMEOUT)),
        output=fields.Float(),
        shown=lambda it: it.schedule.completion_timeout_seconds,
        exported=_unless_default("completion_timeout_seconds"),
    ),
)
